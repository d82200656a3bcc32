"""A source whose tables are not copied: its changes are taken into logs, and it is asked about now.

Of its past the warehouse holds only what base views made of it. A log entry has the row that came or went, whole.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow.compute as pc
from deltalake import DeltaTable

from strandline.algebra.bag import Row, SignedRow
from strandline.algebra.plan import Plan
from strandline.algebra.schema import Schema, names
from strandline.catalog import CaptureRecord, Catalog, Json, Lease, VersionRecord, ViewRecord
from strandline.errors import SourceError
from strandline.ingest.advance import take_in
from strandline.ingest.capture import Captured, TableToCapture, logged
from strandline.ingest.change_log import column
from strandline.ingest.copies import place_of
from strandline.ingest.logged import SourceLog, log_of, position_of
from strandline.reasons import Reason
from strandline.sources.protocol import Answer, Peek, Position, Size, TableInfo, Wanted
from strandline.sources.questions import AskedSource

NOTED = "@noted"
"""Among the inputs of a base view's version: what its sources noted of each table when it was filled."""

LOG = "log"
"""Among what is noted of a table: the log that holds its changes from then on."""

FILLED = "@filled"
"""Among them: why the version was filled from the tables themselves, if it was."""

HISTORY = "@history"
"""Among them: where the changes of single updates since the version before are, if they are kept, and which updates."""


@dataclass(frozen=True)
class LoggedTransaction:
    """What one transaction did to one table: where it stands in the log, and the rows that came and went."""

    place: int
    rows: tuple[SignedRow, ...]


class UncopiedSource:
    """The tables of *inner*, which is asked where their rows are needed. Positions are places in its log."""

    copied = False

    def __init__(self, inner: AskedSource, catalog: Catalog, root: str, storage_options: Mapping[str, str]) -> None:
        self.name = inner.name
        self.kind = inner.kind
        self.inner = inner
        self.log = SourceLog(inner, catalog)
        self._catalog = catalog
        self._root = root.rstrip("/")
        self._storage_options = dict(storage_options)

    def check(self) -> None:
        """Raise SourceError unless the source can be used as it is declared."""
        self.inner.check()

    def tables(self) -> Mapping[str, TableInfo]:
        """The tables as they are now; while the source does not answer, those that are known, as they were."""
        try:
            return self.inner.tables()
        except SourceError:
            known = [leaf for leaf in self._catalog.leaves.all() if leaf.source == self.name]
            if not known:
                raise
            return {leaf.table: TableInfo(leaf.table, leaf.columns, leaf.key, leaf.location) for leaf in known}

    def position(self, table: str) -> Position:
        """The newest position, captured or not."""
        return self.log.end()

    def peek(self, table: str, after: Position, upto: Position) -> Peek:
        """The transactions between two positions; those that are not captured yet are only counted."""
        return self.log.peek(table, after, upto)

    def changes(self, table: str, after: Position, upto: Position, columns: Schema) -> str:
        """Only base views read changes, by :meth:`logged`."""
        raise self._not_copied(table)

    def snapshot(self, table: str, at: Position, columns: Schema | None) -> str:
        """The source has no past, and the warehouse keeps none of its tables."""
        raise self._not_copied(table)

    def size(self, table: str, at: Position) -> Size:
        """As the source estimates it now."""
        info = self.tables().get(table)
        return Size(None, (info.bytes if info else None) or 0)

    def query(self, plan: Plan) -> Answer:
        """It is asked in a snapshot of its own instead, by ``inner.hold()``."""
        raise SourceError("NOT_COPIED", f"source {self.name} is asked in a snapshot that it holds; use inner.hold().")

    def acknowledge(self, table: str, position: Position) -> None:
        """Capturing acknowledges what is in the log."""

    # Its log

    def lost(self) -> Reason | None:
        """Why the log does not go on where it was left, if it does not."""
        record = self._catalog.captures.get(self.name)
        return None if record is None else self.inner.health(record.place, record.details).lost

    def take_in(self, to_read: Sequence[str], lease: Lease, upto: int | None = None) -> Captured:
        """Capture the changes of all tables that base views read, up to now or to a place.

        Base views over the tables *to_read* will be filled next, so from here on their changes must reach the log.
        """
        return take_in(self._catalog, self.inner, self._followed, to_read, self._storage_options, lease, upto)

    def logged(self, table: str, columns: Sequence[str], after: Position, upto: int) -> Iterator[LoggedTransaction]:
        """The transactions of a table after a position and before a place, in commit order, as rows of *columns*."""
        record = self._catalog.captures.get(self.name)
        path, known = self._log_path(table), names(self._logged_columns(table))
        version = None if record is None else logged(record, table, path)
        counted = {t.place for t in self.log.transactions(table, after, upto) if t.place is not None}
        if version is None or not counted:
            return
        places = [column(known.index(name)) for name in columns]
        readers = self.inner.values(table)
        read = [readers[name] for name in columns]
        log = DeltaTable(path, version=version, storage_options=self._storage_options or None)
        here = (pc.field("_place") >= min(counted)) & (pc.field("_place") <= max(counted))
        entries = log.to_pyarrow_dataset().to_table(
            columns=["_place", "_n", "_op", *places], filter=here & (pc.field("_log") == log_of(after))
        )
        entries = entries.sort_by([("_place", "ascending"), ("_n", "ascending")])
        rows: list[SignedRow] = []
        current: int | None = None
        for place, _, op, *values in zip(*(each.to_pylist() for each in entries.columns), strict=True):
            if place not in counted:
                continue
            if current is not None and place != current:
                yield LoggedTransaction(current, tuple(rows))
                rows = []
            current = place
            row: Row = tuple(None if v is None else value(v) for value, v in zip(read, values, strict=True))
            rows.append((row, -1 if op == "D" else 1))
        if current is not None:
            yield LoggedTransaction(current, tuple(rows))

    def reached(self, seen: str, tables: Mapping[str, Sequence[Position]]) -> int | None:
        """The place of the log up to which a snapshot that saw *seen* shows all transactions, and beyond which none.

        Transactions of *tables* count, of each those from the places of the positions that are given, for a place says
        nothing of what was seen beyond it. None if there is no such place: the snapshot shows a transaction that stands
        in the log after one that it does not show.
        """
        record = self._catalog.captures.get(self.name)
        assert record is not None
        upto = record.place
        pairs = [(table, position_of(log_of(p), place_of(p))) for table, since in tables.items() for p in since]
        found = [t for table, after in pairs for t in self.log.transactions(table, after, upto)]
        shown = {t.place or 0: self.inner.sees(seen, str(t.txid)) for t in found}
        first_hidden = min((place for place, there in shown.items() if not there), default=upto)
        return None if any(there and place > first_hidden for place, there in shown.items()) else first_hidden

    def anew(self, node: ViewRecord, base: VersionRecord, lost: Reason | None) -> Reason | None:
        """Why a base view cannot go on from its version *base* as far as this source is concerned, if it cannot."""
        record = self._catalog.captures.get(self.name)
        tables = [leaf.split(".", 1)[1] for leaf in node.inputs if leaf.split(".", 1)[0] == self.name]
        if lost is not None:
            return lost
        if record is None:
            return Reason("SLOT_LOST")
        for table in tables:
            position = base.positions[f"{self.name}.{table}"]
            if log_of(position) != record.log:
                was = record.details.get("lost")
                return Reason(str(was["code"]), str(was["text"])) if isinstance(was, dict) else Reason("SLOT_LOST")
            if _noted(base, f"{self.name}.{table}").get(LOG) != self._log_path(table):
                return Reason("SOURCE_TABLE_REWRITTEN", f"other columns of {self.name}.{table} are logged than before")
            found = record.tables.get(table)
            if found is not None and found.broken_at is not None and found.broken_at >= place_of(position):
                code, _, text = (found.broken or "").partition(": ")
                return Reason(code, text)
            if any("truncated" in t.summary for t in self.log.transactions(table, position, record.place)):
                return Reason("SOURCE_TRUNCATED", f"{self.name}.{table}")
        noted = {table: self._wanted(table, _noted(base, f"{self.name}.{table}")) for table in tables}
        return next(iter(self.inner.changed_since(noted).values()), None)

    def noted(self, table: str, details: Mapping[str, Json]) -> dict[str, Json]:
        """What is to be remembered of a table that a base view was filled from; *details* as the source gave them."""
        return {**details, LOG: self._log_path(table)}

    def start(self, seen: str) -> Position:
        """The position of what a snapshot shows, which was taken after the last capture."""
        record = self._catalog.captures.get(self.name)
        assert record is not None
        return {"log": record.log, "place": record.place, "seen": seen}

    def at(self, place: int) -> Position:
        """A place of the log as a position."""
        record = self._catalog.captures.get(self.name)
        assert record is not None
        return position_of(record.log, place)

    def _followed(self, record: CaptureRecord) -> dict[str, TableToCapture]:
        """The tables that base views read which were filled from this log, as the newest of them know each."""
        found: dict[str, TableToCapture] = {}
        newest: dict[str, int] = {}
        for view in self._catalog.views.all():
            base = self._catalog.versions.baseline(view.id) if view.kind == "base" else None
            for leaf in view.inputs if base is not None else ():
                source, _, table = leaf.partition(".")
                if source != self.name or base is None or log_of(base.positions[leaf]) != record.log:
                    continue
                place = place_of(base.positions[leaf])
                if place >= newest.get(table, 0):
                    wanted = self._wanted(table, _noted(base, leaf))
                    found[table], newest[table] = TableToCapture(wanted, self._log_path(table)), place
        return found

    def _wanted(self, table: str, details: Mapping[str, Json]) -> Wanted:
        """All columns that views may read; no key, so that old rows are logged whole."""
        return Wanted(names(self._logged_columns(table)), (), details)

    def _logged_columns(self, table: str) -> Schema:
        leaf = self._catalog.leaves.get(f"{self.name}.{table}")
        assert leaf is not None
        return leaf.columns

    def _log_path(self, table: str) -> str:
        """A log holds the columns that its table had when a view was last defined over it."""
        text = json.dumps(names(self._logged_columns(table)))
        plain = "".join(c if c.isalnum() or c == "_" else "_" for c in f"{self.name}.{table}".lower())
        return f"{self._root}/logs/{plain}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    def _not_copied(self, table: str) -> SourceError:
        return SourceError(
            "NOT_COPIED",
            f"{self.name}.{table} is not copied (`copies: false`), so the warehouse cannot read it as it was; "
            "read a view over it.",
        )


def _noted(base: VersionRecord, leaf: str) -> dict[str, Any]:
    noted = base.inputs.get(NOTED)
    found = noted.get(leaf) if isinstance(noted, dict) else None
    assert isinstance(found, dict)
    return found
