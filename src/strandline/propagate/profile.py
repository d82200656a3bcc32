"""The profile of a refresh: where each second of it went, and what its steps read and wrote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from strandline.catalog import RefreshRecord, StepRecord
from strandline.propagate.timeline import PARTS


@dataclass(frozen=True)
class TableRead:
    """What a step read of a table, or of stored changes, in so many scans.

    All numbers are for these scans together: *of_files* and *of_bytes* what they had read without skipping any file,
    *holding* and *holding_bytes* what they had read of only those with touched keys, as
    :mod:`strandline.propagate.touched` says what these are. None is not known.
    """

    table: str
    scans: int
    files: int
    bytes: int
    rows: int
    of_files: int | None = None
    of_bytes: int | None = None
    holding: int | None = None
    holding_bytes: int | None = None


@dataclass(frozen=True)
class StepProfile:
    """Where the seconds of one step went; *seconds* are those of its own thread, by the kind of work.

    *start* is counted from the beginning of the refresh. Before that the step waited for what it reads, once there was
    a plan, and then for its turn, as only so many run at a time. What was taken in before there was a plan waited for
    its turn alone.
    """

    id: str
    kind: str
    subject: str
    status: str
    start: float | None
    elapsed: float
    waited_for_steps: float = 0.0
    waited_for_turn: float = 0.0
    recording: float = 0.0
    """Writing down what came of it, once its thread had ended."""
    seconds: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, Any] = field(default_factory=dict)
    """What the engine counted."""
    read: tuple[TableRead, ...] | None = None
    """None is not known, and so below."""
    wrote: tuple[Mapping[str, Any], ...] | None = None
    """Its commits."""

    @property
    def files(self) -> tuple[int, int] | None:
        """How many files of tables were read, in all scans, and how many these would be without skipping."""
        known = [table for table in self.read or () if table.of_files is not None]
        return (sum(t.files for t in known), sum(t.of_files or 0 for t in known)) if known else None

    def to_dict(self) -> dict[str, Any]:
        """As ``history --profile --json`` shows it."""
        return {
            **self.__dict__,
            "seconds": dict(self.seconds),
            "measured": dict(self.measured),
            "read": None if self.read is None else [table.__dict__ for table in self.read],
            "wrote": None if self.wrote is None else [dict(commit) for commit in self.wrote],
        }


@dataclass(frozen=True)
class Profile:
    """Where the seconds of a refresh went: *parts* add up to *seconds*.

    Of a second in which several steps worked each has its share in *parts*. *planning* has more of that part: peeking
    at sources (``log``, or ``own`` for others), the catalog, and weighing (``own``).
    """

    refresh: str
    state: int | None
    started_at: datetime
    seconds: float
    parts: Mapping[str, float]
    planning: Mapping[str, float]
    steps: tuple[StepProfile, ...]

    def in_steps(self) -> dict[str, float]:
        """The seconds of all steps by the kind of work, those that ran side by side counted each."""
        total = {part: sum(step.seconds.get(part, 0.0) for step in self.steps) for part in PARTS}
        return {part: spent for part, spent in total.items() if spent}

    def to_dict(self) -> dict[str, Any]:
        """As ``history --profile --json`` prints it."""
        return {
            "refresh": self.refresh,
            "state": self.state,
            "started_at": self.started_at.isoformat(),
            "seconds": self.seconds,
            "parts": dict(self.parts),
            "planning": dict(self.planning),
            "in_steps": {part: round(spent, 3) for part, spent in self.in_steps().items()},
            "steps": [step.to_dict() for step in self.steps],
        }


def profile_of(refresh: RefreshRecord, steps: Iterable[StepRecord]) -> Profile:
    """The profile of a refresh that has one, its steps in the order in which they began."""
    stored: Any = refresh.profile
    moments: Mapping[str, Mapping[str, float]] = stored["steps"]
    planned = [found for found in moments.values() if "taken up" not in found]
    first = min((found["ready"] for found in planned if "ready" in found), default=0.0)
    profiles = [_step(record, moments.get(record.id, {}), first) for record in steps]
    return Profile(
        refresh.id,
        refresh.state,
        refresh.started_at,
        stored["seconds"],
        stored["parts"],
        stored["planning"],
        tuple(sorted(profiles, key=_place)),
    )


def _place(step: StepProfile) -> float:
    return step.start if step.start is not None else float("inf")


def _step(record: StepRecord, moments: Mapping[str, float], first: float) -> StepProfile:
    result: Any = record.result
    profile = result.get("profile") or {}
    start, ready, ended = (moments.get(what) for what in ("began", "ready", "ended"))
    elapsed = record.seconds if record.seconds is not None else _between(start, ended)
    return StepProfile(
        record.id,
        record.kind,
        record.view or "",
        record.status,
        start,
        round(elapsed, 3),
        _between(first, ready),
        _between(ready, start),
        _between(moments.get("taken up", ended), moments.get("recorded")),
        profile.get("seconds", {}),
        result.get("measured") or {},
        tuple(TableRead(**table) for table in profile["read"]) if "read" in profile else None,
        tuple(profile["wrote"]) if "wrote" in profile else None,
    )


def _between(start: float | None, end: float | None) -> float:
    return 0.0 if start is None or end is None else round(max(0.0, end - start), 3)
