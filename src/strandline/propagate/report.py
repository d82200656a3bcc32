"""What a refresh did, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from strandline.algebra.block import Strategy
from strandline.ingest.capture import Captured
from strandline.reasons import Reason

GROUP_HELD = "GROUP_HELD"
"""How the problem begins of a view that waits for another of its group."""


@dataclass
class ViewReport:
    """What happened to one view."""

    strategy: Strategy
    reason: Reason
    rows_in: int = 0
    rows_irrelevant: int = 0
    """Of these, changed rows that fail a selection on their table; counted before a join that is not small."""
    rows_inserted: int = 0
    rows_deleted: int = 0
    seconds: float = 0.0
    install: str = "none"
    problem: str | None = None
    how: str | None = None
    """Of a dump: the algorithm, why that one, and rows that were set aside. Of a view: constraints that were."""
    retried: int = 0
    """How often a step was tried again after a fault that may pass."""

    @property
    def held(self) -> bool:
        """Whether it could be brought up to date, and is not shown so because another of its group could not."""
        return self.problem is not None and self.problem.startswith(GROUP_HELD)

    def to_dict(self) -> dict[str, Any]:
        """As ``refresh --json`` shows it."""
        return {**self.__dict__, "reason": self.reason.to_dict(), "seconds": round(self.seconds, 3)}


@dataclass(frozen=True)
class RefreshReport:
    """The outcome of a refresh: the number of the state it published, and each view's part in it.

    *state* is the newest state if nothing had to be done, and None if there is none yet.
    """

    refresh_id: str
    state: int | None
    views: Mapping[str, ViewReport]
    hidden: Mapping[str, ViewReport] = field(default_factory=dict)
    seconds: float = 0.0
    resumed: str | None = None
    """The id of the crashed refresh that was finished first, if there was one."""
    captured: Mapping[str, Captured] = field(default_factory=dict)
    """What was taken in of each source first."""
    asked: Mapping[str, Mapping[str, int | str]] = field(default_factory=dict)
    """For each base view over tables that are not copied: its algorithm, updates, and what was asked and fetched."""

    @property
    def ok(self) -> bool:
        """Whether every view, and every copy of a source table, was brought up to date."""
        return all(node.problem is None for node in (*self.views.values(), *self.hidden.values()))

    def to_dict(self) -> dict[str, Any]:
        """As ``refresh --json`` prints it."""
        return {
            "refresh": self.refresh_id,
            "state": self.state,
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "resumed": self.resumed,
            "captured": {name: asdict(captured) for name, captured in self.captured.items()},
            "asked": {name: dict(told) for name, told in self.asked.items()},
            "views": {name: view.to_dict() for name, view in self.views.items()},
            "hidden": {name: view.to_dict() for name, view in self.hidden.items()},
        }
