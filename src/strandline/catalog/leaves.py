"""Leaves: the tables of sources."""

from __future__ import annotations

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from strandline.algebra.schema import Column
from strandline.catalog.columns import columns_from_json, columns_to_json
from strandline.catalog.damage import understanding
from strandline.catalog.database import Database
from strandline.catalog.jsontext import Json
from strandline.catalog.messages import unknown
from strandline.catalog.models import LeafRow, SourceRow
from strandline.catalog.records import LeafRecord
from strandline.catalog.sources import source_names


class Leaves:
    """Leaves by their name, ``source.table``."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(
        self,
        source: str,
        table: str,
        *,
        location: str | None,
        columns: Sequence[Column],
        key: Sequence[str],
        position: Json,
        note: str | None = None,
    ) -> LeafRecord:
        """Register a table, or replace what is known of it; its logged transactions stay."""
        with self._database.writing() as session:
            if session.get(SourceRow, source) is None:
                raise unknown("source", source, source_names(session))
            row = session.merge(
                LeafRow(
                    name=f"{source}.{table}",
                    source=source,
                    table_name=table,
                    location=location,
                    columns=columns_to_json(columns),
                    key=list(key),
                    position=position,
                    note=note,
                )
            )
            return _record(row)

    def get(self, name: str) -> LeafRecord | None:
        """The leaf *name*."""
        with self._database.reading() as session:
            row = session.get(LeafRow, name)
            return _record(row) if row else None

    def all(self) -> tuple[LeafRecord, ...]:
        """All leaves, by name."""
        with self._database.reading() as session:
            return tuple(map(_record, session.scalars(select(LeafRow).order_by(LeafRow.name))))

    def remove(self, name: str) -> None:
        """Forget *name* and its logged transactions: registered anew, it starts from nothing."""
        with self._database.writing() as session:
            row = session.get(LeafRow, name)
            if row is None:
                raise unknown("leaf", name, leaf_names(session))
            session.delete(row)


def leaf_names(session: Session) -> tuple[str, ...]:
    """The names of all leaves."""
    return tuple(session.scalars(select(LeafRow.name).order_by(LeafRow.name)))


def _record(row: LeafRow) -> LeafRecord:
    with understanding("leaves", f"the row of {row.name}"):
        return LeafRecord(
            name=row.name,
            source=row.source,
            table=row.table_name,
            location=row.location,
            columns=columns_from_json(row.columns),
            key=tuple(row.key),
            position=row.position,
            note=row.note,
        )
