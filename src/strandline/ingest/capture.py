"""Capturing: a source's changes, once and in commit order, into the change logs of its tables.

No Spark runs. The order of writing makes it safe to be killed anywhere: rows into the logs, then one catalog
transaction that makes them count, then the source is told that it may forget them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from strandline.catalog import CaptureRecord, Catalog, Lease, LoggedTable, Transaction
from strandline.ingest.change_log import ChangeLog
from strandline.ingest.logged import position_of
from strandline.sources.protocol import Begun, CapturedSource, Ended, Entry, Unloggable, Wanted


@dataclass(frozen=True)
class TableToCapture:
    """A table whose changes are taken in: what of it is wanted, and where its log is."""

    wanted: Wanted
    path: str


@dataclass
class Captured:
    """What a capture took in, for people and reports: per table, rows by what was done to them."""

    transactions: int = 0
    rows: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, more: Captured) -> None:
        """Take in what another capture of the same source took in."""
        self.transactions += more.transactions
        for table, counts in more.rows.items():
            total = self.rows.setdefault(table, {})
            for what, count in counts.items():
                total[what] = total.get(what, 0) + count


_COUNTED = {"I": "inserted", "U": "updated", "D": "deleted", "T": "truncated"}


def logged(record: CaptureRecord, table: str, path: str) -> int | None:
    """The version of the log at *path* that counts, if it has entries that do."""
    found = record.tables.get(table)
    return found.version if found is not None and found.path == path else None


def capture(
    source: CapturedSource,
    catalog: Catalog,
    record: CaptureRecord,
    tables: Mapping[str, TableToCapture],
    upto: int,
    storage_options: Mapping[str, str],
    lease: Lease,
) -> tuple[CaptureRecord, Captured]:
    """Take in the changes of *source* up to the place *upto*, and acknowledge them."""
    taken = _Taken(record, tables, storage_options)
    if upto > record.place:
        wanted = {name: table.wanted for name, table in tables.items()}
        for event in source.captured(wanted, record.place, upto, record.details):
            taken.take(event)
        record = catalog.captures.record(
            source.name, upto, position_of(record.log, upto), taken.finish(), taken.transactions, lease
        )
    source.acknowledge(record.place, record.details)
    return record, taken.captured


class _Taken:
    """What one capture has read so far."""

    def __init__(
        self, record: CaptureRecord, tables: Mapping[str, TableToCapture], storage_options: Mapping[str, str]
    ) -> None:
        self._log = record.log
        self._logs = {
            name: ChangeLog(table.path, len(table.wanted.columns), logged(record, name, table.path), storage_options)
            for name, table in tables.items()
        }
        # What broke a log stays known: whoever is still before that place cannot go on.
        self._broken = {name: (logged.broken, logged.broken_at) for name, logged in record.tables.items()}
        self._begun: Begun | None = None
        self._number = 0
        self._counts: dict[str, dict[str, int]] = {}
        self.transactions: dict[str, list[Transaction]] = {name: [] for name in tables}
        self.captured = Captured()

    def take(self, event: Begun | Entry | Ended | Unloggable) -> None:
        match event:
            case Entry():
                assert self._begun is not None
                self._logs[event.table].add(self._number, event, self._log, self._begun.place, self._begun.xid)
                self._number += 1
                counts = self._counts.setdefault(event.table, {})
                for what in (_COUNTED[event.op], *(["unchanged"] if event.unchanged else [])):
                    counts[what] = counts.get(what, 0) + 1
            case Begun():
                self._begun, self._number, self._counts = event, 0, {}
            case Ended():
                self._end()
            case Unloggable(table, reason):
                assert self._begun is not None
                self._broken[table] = (str(reason), self._begun.place)

    def _end(self) -> None:
        begun = self._begun
        assert begun is not None
        position = position_of(self._log, begun.place)
        for table, counts in self._counts.items():
            self.transactions[table].append(
                Transaction(position, str(begun.xid), begun.committed_at, begun.place, dict(counts))
            )
            total = self.captured.rows.setdefault(table, {})
            for what, count in counts.items():
                if what != "unchanged":
                    total[what] = total.get(what, 0) + count
        self.captured.transactions += bool(self._counts)

    def finish(self) -> dict[str, LoggedTable]:
        """Write the rest; which version of each log counts now."""
        found = {}
        for table, log in self._logs.items():
            log.flush()
            found[table] = LoggedTable(log.path, log.version, *self._broken.get(table, (None, None)))
        return found
