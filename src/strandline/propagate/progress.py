"""What a running refresh tells whoever watches it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Event:
    """A plan is about to be carried out; or a step of one began, is tried again after a fault that may pass, or ended.

    *place* is how many steps had ended before.
    """

    what: Literal["planned", "started", "retried", "done", "failed", "skipped"]
    step: str
    subject: str
    place: int
    total: int
    seconds: float = 0.0
    detail: str = ""
    steps: tuple[tuple[str, str], ...] = ()
    """Of a plan: kind and subject of each step that is still to be done."""


Watcher = Callable[[Event], None]


def nobody(event: Event) -> None:
    """Watch without a word."""
