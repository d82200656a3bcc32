"""The log of a source, as far as it is taken in and beyond: positions in it, and what happened between two of them."""

from __future__ import annotations

from strandline.catalog import Catalog, TransactionRecord
from strandline.ingest.copies import place_of, summed_up
from strandline.reasons import Reason
from strandline.sources.protocol import CapturedSource, Peek, Position


class SourceLog:
    """The log of *source*. A position in it names the log, a place, and what was seen beyond that place already."""

    def __init__(self, source: CapturedSource, catalog: Catalog) -> None:
        self._source = source
        self._catalog = catalog

    def end(self) -> Position:
        """The newest position, captured or not; None if there is no log yet."""
        record = self._catalog.captures.get(self._source.name)
        return None if record is None else position_of(record.log, max(record.place, self._source.end()))

    def peek(self, table: str, after: Position, upto: Position) -> Peek:
        """The transactions between two positions; those that are not captured yet are only counted."""
        record = self._catalog.captures.get(self._source.name)
        first, last = place_of(after), place_of(upto)
        if record is None or log_of(after) != record.log:
            gap = Reason("SLOT_LOST", f"the log of {self._source.name} was begun anew")
            return Peek((), gap=None if after == upto else gap)
        peek = summed_up(self.transactions(table, after, min(last, record.place)))
        if last <= record.place:
            return peek
        pending = self._source.pending(max(first, record.place), last, record.details)
        return both(peek, pending[table]) if table in pending else peek

    def transactions(self, table: str, after: Position, upto: int) -> list[TransactionRecord]:
        """The captured transactions of a table after a position, without those that were seen there already."""
        seen = seen_of(after)
        found = self._catalog.unit_of_work.between(f"{self._source.name}.{table}", place_of(after), upto)
        return [
            t
            for t in found
            if log_of(t.position) == log_of(after) and not (seen is not None and self._source.sees(seen, str(t.txid)))
        ]


def position_of(log: str, place: int) -> Position:
    """A position: all that was committed before *place* of a log."""
    return {"log": log, "place": place}


def log_of(position: Position) -> str:
    """The log that a position belongs to."""
    return str(position["log"]) if isinstance(position, dict) else ""


def seen_of(position: Position) -> str | None:
    """The transactions from the position's place on that were seen there already."""
    seen = position.get("seen") if isinstance(position, dict) else None
    return None if seen is None else str(seen)


def both(first: Peek, second: Peek) -> Peek:
    """Two stretches, one after the other."""
    rows = None if first.rows is None or second.rows is None else first.rows + second.rows
    return Peek(
        (*first.transactions, *second.transactions),
        insert_only=first.insert_only and second.insert_only,
        rows=rows,
    )
