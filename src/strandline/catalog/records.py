"""What the catalog hands out: frozen values, detached from any database session."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from strandline.algebra.schema import Column
from strandline.catalog.jsontext import Json

ViewKind: TypeAlias = Literal["view", "block", "base", "copy"]
RefreshStatus: TypeAlias = Literal["running", "done", "failed", "abandoned"]
StepStatus: TypeAlias = Literal["pending", "running", "done", "failed", "skipped"]


@dataclass(frozen=True)
class SourceRecord:
    """A registered source."""

    name: str
    kind: str
    config: Mapping[str, Json]
    created_at: datetime


@dataclass(frozen=True)
class LeafRecord:
    """A source table; *position* is the newest one whose transactions are in the unit-of-work log."""

    name: str
    source: str
    table: str
    location: str | None
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    position: Json
    note: str | None


@dataclass(frozen=True)
class Transaction:
    """A transaction of a source that touched a leaf, not yet logged.

    *place* is a number that grows in commit order, where the source has one; *summary* counts what was done.
    """

    position: Json
    txid: str | None = None
    committed_at: datetime | None = None
    place: int | None = None
    summary: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class TransactionRecord:
    """A logged transaction; *csn* orders it among all transactions of the warehouse."""

    csn: int
    leaf: str
    position: Json
    txid: str | None
    committed_at: datetime | None
    place: int | None = None
    summary: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class LoggedTable:
    """The log of one table: where it is, and which version of its Delta table counts; none before the first entry.

    *broken* is why it lacks the changes from the place *broken_at* on, if it does.
    """

    path: str
    version: int | None
    broken: str | None = None
    broken_at: int | None = None


@dataclass(frozen=True)
class CaptureRecord:
    """How far the changes of a source are durable here.

    All that was committed before *place* is there. *log* names the unbroken stretch of changes it belongs to; after
    a gap a new one begins. *details* is what the source needs to go on.
    """

    source: str
    log: str
    place: int
    details: Mapping[str, Json]
    tables: Mapping[str, LoggedTable]


@dataclass(frozen=True)
class ViewRecord:
    """A user's view, a hidden block of one or several views, or the copy of a source table.

    *dropped_at* is when it was dropped or redefined.
    """

    id: int
    name: str
    kind: ViewKind
    sql: str
    options: Mapping[str, Json]
    definition: Json
    fingerprint: str
    columns: tuple[Column, ...]
    inputs: tuple[str, ...]
    location: str
    origin: str | None
    created_at: datetime
    dropped_at: datetime | None = None


@dataclass(frozen=True)
class NewVersion:
    """The table version that a step made of a view, and what it was computed from."""

    view_id: int
    version: int
    inputs: Mapping[str, Json]
    positions: Mapping[str, Json]


@dataclass(frozen=True)
class VersionRecord:
    """A table version that counts."""

    view_id: int
    version: int
    inputs: Mapping[str, Json]
    positions: Mapping[str, Json]
    step_id: str
    recorded_at: datetime


@dataclass(frozen=True)
class RefreshRecord:
    """A refresh; *state* is the state it published, *owner* the process that last worked on it.

    *profile* says where its seconds went, apart from what its steps say of theirs.
    """

    id: str
    plan: Json
    status: RefreshStatus
    started_at: datetime
    finished_at: datetime | None
    state: int | None
    error: str | None
    owner: str
    profile: Json = None


@dataclass(frozen=True)
class StepRecord:
    """A step of a refresh; *error* says why it failed or was skipped."""

    id: str
    refresh_id: str
    seq: int
    kind: str
    view: str | None
    status: StepStatus
    started_at: datetime | None
    finished_at: datetime | None
    seconds: float | None
    result: Mapping[str, Json]
    error: str | None


@dataclass(frozen=True)
class HistoryEntry:
    """A step of a view together with the refresh it belonged to."""

    step: StepRecord
    refresh: RefreshRecord


@dataclass(frozen=True)
class StateEntry:
    """What a published state says of one view; *problem* is why the view was left behind, if it was."""

    view: str
    view_id: int
    version: int
    positions: Mapping[str, Json]
    problem: str | None = None


@dataclass(frozen=True)
class StateRecord:
    """A published state of the warehouse; it never changes."""

    number: int
    published_at: datetime
    refresh_id: str | None
    entries: Mapping[str, StateEntry]
