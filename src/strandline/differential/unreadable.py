"""Rows that cannot be read: a line with another number of fields, a value that is not of its column's type.

Either the comparison fails with the first of them, or they are set aside and counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from strandline.errors import DifferentialError

Policy = Literal["fail", "set-aside"]

SHOWN = 5
"""Unreadable rows that are shown."""


@dataclass
class Unreadable:
    """The unreadable rows of one snapshot."""

    name: str
    count: int = 0
    first: list[str] = field(default_factory=list)

    def add(self, count: int, texts: list[str]) -> None:
        """Note *count* more of them, *texts* being some."""
        self.count += count
        self.first += texts[: SHOWN - len(self.first)]

    def refuse(self, policy: Policy) -> None:
        """Fail if there are any and that is the policy."""
        if self.count and policy == "fail":
            shown = "\n".join(f"  {text[:200]}" for text in self.first)
            raise DifferentialError(
                "UNREADABLE_ROWS",
                f"{self.count:,} rows of {self.name} cannot be read; put them right, or compare without them "
                "(--unreadable set-aside). The first are:",
                excerpt=shown,
            )

    def to_dict(self) -> dict[str, object]:
        """What the ``--json`` output shows."""
        return {"count": self.count, "first": self.first}
