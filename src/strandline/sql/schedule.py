"""SCHEDULE EVERY ...: how often a view is refreshed by whoever watches the warehouse."""

from __future__ import annotations

import re
from dataclasses import dataclass

SECONDS = {"SECOND": 1, "MINUTE": 60, "HOUR": 3_600, "DAY": 86_400}

_TEXT = re.compile(r"\s*(?:EVERY\s+)?(\d{1,9})\s+(SECOND|MINUTE|HOUR|DAY)S?\s*", re.IGNORECASE)


@dataclass(frozen=True)
class Schedule:
    """So many units of time."""

    every: int
    unit: str

    @classmethod
    def parse(cls, text: str) -> Schedule | None:
        """What ``EVERY 5 MINUTES``, or only ``5 minutes``, says; None if it says nothing of the kind."""
        found = _TEXT.fullmatch(text)
        return None if found is None or int(found[1]) == 0 else cls(int(found[1]), found[2].upper())

    @property
    def seconds(self) -> int:
        """The interval in seconds."""
        return self.every * SECONDS[self.unit]

    def __str__(self) -> str:
        return f"EVERY {self.every} {self.unit}{'' if self.every == 1 else 'S'}"
