"""What a source offers that has neither a log of changes nor a past: its tables can only be read whole.

The warehouse copies such tables, as those of a :class:`~strandline.sources.protocol.CapturedSource`; what changed is
found by comparing what is read with the copy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol, runtime_checkable

from strandline.algebra.schema import Schema
from strandline.catalog import Json
from strandline.differential.snapshot import Snapshot
from strandline.differential.unreadable import Policy
from strandline.reasons import Reason
from strandline.sources.protocol import Finding, TableInfo


@dataclass(frozen=True)
class Dump:
    """A table, whole, as it was at one moment.

    *identity* is what the source finds it again by, and what tells it from any other; ``dump`` in it is its name.
    """

    identity: Mapping[str, Json]
    made_at: datetime | None = None
    bytes: int | None = None

    @property
    def name(self) -> str:
        return str(self.identity["dump"])


@dataclass(frozen=True)
class Newest:
    """The newest whole dump of a table; None if there is none, or none that came after the one asked about.

    *skipped* are whole ones between the two, *waiting* newer ones that are not whole yet. *problem* is why the newest
    cannot be taken.
    """

    dump: Dump | None = None
    skipped: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    problem: Reason | None = None


@dataclass(frozen=True)
class Contents:
    """How many rows a dump has, and a text that is equal for equal contents; None where only reading it tells."""

    rows: int | None = None
    fingerprint: str | None = None


@dataclass(frozen=True)
class Rules:
    """What is declared of a table: a dump with fewer rows than the fraction *shrink* of the last one is held back."""

    shrink: float = 0.5
    unreadable: Policy = "fail"


@runtime_checkable
class SnapshotSource(Protocol):
    """A source whose tables can be read whole, as they are now, and nothing else."""

    name: str
    kind: str
    peekable: bool
    """Whether looking for a newer dump is cheap; if not, only a refresh finds out, by reading the table."""

    def check(self) -> None:
        """Raise SourceError, with what to do, unless the source can be used as it is declared."""

    def tables(self) -> Mapping[str, TableInfo]:
        """The tables that are declared, as their newest whole dumps have them; without columns if there is none."""

    def newest(self, table: str, after: Mapping[str, Json] | None) -> Newest:
        """The newest whole dump, if it came after the one with the identity *after*."""

    def contents(self, table: str, dump: Dump) -> Contents:
        """What can be told of a dump without comparing it."""

    def opened(
        self, table: str, identity: Mapping[str, Json], columns: Schema, folder: str
    ) -> AbstractContextManager[Snapshot]:
        """The rows of a dump, for as long as the context; what has to be read beforehand is put below *folder*.

        Raises SourceError if the dump is gone, or is another one at the end.
        """

    def rules(self, table: str) -> Rules:
        """What is declared of a table."""

    def findings(self) -> Sequence[Finding]:
        """What ``source check`` tells."""

    def close(self) -> None:
        """Let go of connections."""
