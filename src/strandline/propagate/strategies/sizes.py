"""How large views are before and after a refresh, and how large their deltas are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.errors import RefreshError


@dataclass(frozen=True)
class Size:
    """``|V|``, ``|V'|`` and ``|δV|`` in rows, known or estimated."""

    before: int
    after: int
    delta: int

    def __post_init__(self) -> None:
        if min(self.before, self.after) < 0 or self.delta < abs(self.growth):
            raise RefreshError(
                "STRATEGY_SIZE",
                f"{self.delta} changed rows cannot make {self.after} rows of {self.before}; "
                "a delta has at least as many rows as its view gains or loses: estimate it again.",
            )

    @property
    def growth(self) -> int:
        """``|V'| - |V|``."""
        return self.after - self.before

    @classmethod
    def growing(cls, before: int, by: int) -> Size:
        """*before* rows, and *by* rows that are only inserted, or only deleted if *by* is negative."""
        return cls(before, before + by, abs(by))


Sizes = Mapping[str, Size]
