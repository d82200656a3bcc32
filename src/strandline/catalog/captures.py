"""Captures: how far the changes of copied sources are durable in the warehouse's own log.

A capture is recorded after its rows are written; what was written and not recorded does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict

from strandline.catalog.damage import required, understanding
from strandline.catalog.database import Database
from strandline.catalog.jsontext import Json
from strandline.catalog.lease import Lease, require_held
from strandline.catalog.messages import unknown
from strandline.catalog.models import CaptureRow, SourceRow
from strandline.catalog.records import CaptureRecord, LoggedTable, Transaction
from strandline.catalog.sources import source_names
from strandline.catalog.unit_of_work import log_transactions


class Captures:
    """Captures by source."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, source: str) -> CaptureRecord | None:
        """How far *source* is captured; None if nothing ever was."""
        with self._database.reading() as session:
            row = session.get(CaptureRow, source)
            return _record(row) if row else None

    def begin(self, source: str, log: str, place: int, details: Mapping[str, Json], lease: Lease) -> CaptureRecord:
        """Begin a new log of *source*, in place of the one before."""
        with self._database.writing() as session:
            require_held(session, lease)
            if session.get(SourceRow, source) is None:
                raise unknown("source", source, source_names(session))
            row = session.merge(CaptureRow(source=source, log=log, place=place, details=dict(details), tables={}))
            return _record(row)

    def record(
        self,
        source: str,
        place: int,
        position: Json,
        tables: Mapping[str, LoggedTable],
        transactions: Mapping[str, Sequence[Transaction]],
        lease: Lease,
    ) -> CaptureRecord:
        """The changes of *source* up to *place* are durable: note each leaf's transactions, all at once."""
        with self._database.writing() as session:
            require_held(session, lease)
            row = required(session, CaptureRow, source)
            row.place = place
            row.tables = {**row.tables, **{table: asdict(logged) for table, logged in tables.items()}}
            for table, logged in transactions.items():
                log_transactions(session, f"{source}.{table}", logged, position)
            return _record(row)

    def trimmed(self, source: str, table: str, version: int, lease: Lease) -> None:
        """The log of a table counts from another version on: entries that nobody needs any more are not in it."""
        with self._database.writing() as session:
            require_held(session, lease)
            row = required(session, CaptureRow, source)
            row.tables = {**row.tables, table: {**row.tables[table], "version": version}}

    def remove(self, source: str) -> None:
        """Forget a source's log."""
        with self._database.writing() as session:
            row = session.get(CaptureRow, source)
            if row is not None:
                session.delete(row)


def _record(row: CaptureRow) -> CaptureRecord:
    with understanding("captures", f"the row of source {row.source}"):
        tables = {table: LoggedTable(**logged) for table, logged in row.tables.items()}
        return CaptureRecord(row.source, row.log, row.place, dict(row.details), tables)
