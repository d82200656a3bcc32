"""Questions to a source whose tables are not copied: joins of its tables with rows that are sent along.

A maintenance query reads tables in one state of the source and takes rows of a delta with it. A source that can hold a
state still answers several questions in it, and says which of its transactions that state shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Protocol, Self, runtime_checkable

from strandline.algebra.bag import SignedBag
from strandline.algebra.plan import Operand, Scan
from strandline.algebra.scalar import Scalar
from strandline.algebra.schema import Schema
from strandline.sources.protocol import Baseline, CapturedSource


@dataclass(frozen=True)
class Question:
    """A join of tables of one source and of rows that are sent along.

    A scan of ``At("source.table")`` reads a table; one of a ``Bag`` or a ``Change`` reads the rows that *given* has for
    it, in the order of the scan's fields. *wanted* are the columns of the scans that the asker needs; what it needs
    for conditions that the source leaves to it comes along.
    """

    scans: tuple[Scan, ...]
    conditions: tuple[Scalar, ...]
    wanted: tuple[str, ...]
    given: Mapping[Operand, SignedBag] = field(default_factory=dict)


@dataclass(frozen=True)
class Reply:
    """Rows over *columns*, which are those wanted and those that the conditions in *left* read.

    The count of a row is the product of the counts of the given rows in it, added up over all ways to make it: a row
    of a table counts 1. *left* are the conditions that the source has not evaluated; the asker has to.
    """

    rows: SignedBag
    columns: Schema
    left: tuple[Scalar, ...]
    fetched_rows: int
    fetched_bytes: int
    sent_bytes: int
    queries: int


class HeldSnapshot(Protocol):
    """A state of a source that stays as it is until it is closed, whatever others write."""

    seen: str
    """Which transactions it shows, as :meth:`~strandline.sources.protocol.CapturedSource.sees` understands it."""

    place: int
    """A place in the source's log: all transactions that the state shows were committed before it."""

    def ask(self, question: Question) -> Reply:
        """Answer in this state. SNAPSHOT_LOST means that the state is gone: hold another one and ask anew."""

    def copy(self, table: str, columns: Sequence[str]) -> Baseline:
        """All rows of a table in this state, to be read while it is held."""

    def close(self) -> None:
        """Let go of the state."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


@runtime_checkable
class AskedSource(CapturedSource, Protocol):
    """A source that reports its changes and answers questions about its tables as they are now."""

    def hold(self) -> HeldSnapshot:
        """Hold the state of this moment."""

    def values(self, table: str) -> Mapping[str, Callable[[str], Any]]:
        """From the text form to values outside Spark, by column: those that :meth:`parsers` make in it."""

    def untranslatable(self, scans: tuple[Scan, ...], conditions: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
        """The conditions of a question over *scans* that would be left to the asker."""
