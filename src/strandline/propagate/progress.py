"""What a running refresh tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Event:
    """A step began or ended."""

    what: Literal["started", "done", "failed", "skipped"]
    step: str
    subject: str
    place: int
    total: int
    seconds: float = 0.0
    detail: str = ""


Watcher = Callable[[Event], None]


def nobody(event: Event) -> None:
    """Watch without a word."""
