"""Registered sources."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from strandline.catalog.damage import mapping, understanding
from strandline.catalog.database import Database
from strandline.catalog.jsontext import Json
from strandline.catalog.messages import listing, unknown
from strandline.catalog.models import LeafRow, SourceRow
from strandline.catalog.moments import Clock
from strandline.catalog.records import SourceRecord
from strandline.errors import CatalogError


class Sources:
    """Sources by name."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def put(self, name: str, kind: str, config: Mapping[str, Json]) -> SourceRecord:
        """Register *name*, or give it another kind and configuration."""
        with self._database.writing() as session:
            row = session.get(SourceRow, name)
            if row is None:
                row = SourceRow(name=name, created_at=self._clock())
                session.add(row)
            row.kind, row.config = kind, dict(config)
            return _record(row)

    def get(self, name: str) -> SourceRecord | None:
        """The source *name*."""
        with self._database.reading() as session:
            row = session.get(SourceRow, name)
            return _record(row) if row else None

    def all(self) -> tuple[SourceRecord, ...]:
        """All sources, by name."""
        with self._database.reading() as session:
            return tuple(map(_record, session.scalars(select(SourceRow).order_by(SourceRow.name))))

    def remove(self, name: str) -> None:
        """Forget *name*; refused as ``SOURCE_IN_USE`` while it has leaves."""
        with self._database.writing() as session:
            row = session.get(SourceRow, name)
            if row is None:
                raise unknown("source", name, source_names(session))
            leaves = session.scalars(select(LeafRow.name).where(LeafRow.source == name).order_by(LeafRow.name)).all()
            if leaves:
                raise CatalogError(
                    "SOURCE_IN_USE",
                    f"source {name} cannot be removed; there {listing('leaf', leaves)}; remove those first.",
                )
            session.delete(row)


def source_names(session: Session) -> tuple[str, ...]:
    """The names of all sources."""
    return tuple(session.scalars(select(SourceRow.name).order_by(SourceRow.name)))


def _record(row: SourceRow) -> SourceRecord:
    with understanding("sources", f"the row of {row.name}"):
        return SourceRecord(row.name, row.kind, mapping(row.config), row.created_at)
