"""Views and blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypedDict, Unpack, cast

from sqlalchemy import select
from sqlalchemy.orm import Session

from strandline.algebra.schema import Column
from strandline.catalog.columns import columns_from_json, columns_to_json
from strandline.catalog.database import Database
from strandline.catalog.jsontext import Json
from strandline.catalog.messages import unknown
from strandline.catalog.models import ViewRow
from strandline.catalog.moments import Clock
from strandline.catalog.records import ViewKind, ViewRecord
from strandline.errors import CatalogError


class ViewChanges(TypedDict, total=False):
    """What of a view can be replaced."""

    kind: ViewKind
    sql: str
    options: Mapping[str, Json]
    definition: Json
    fingerprint: str
    columns: Sequence[Column]
    inputs: Sequence[str]
    location: str
    origin: str | None


class Views:
    """Views by name. An id is never used twice, so history stays clear when a name comes back."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def add(
        self,
        name: str,
        *,
        kind: ViewKind,
        sql: str,
        options: Mapping[str, Json],
        definition: Json,
        fingerprint: str,
        columns: Sequence[Column],
        inputs: Sequence[str],
        location: str,
        origin: str | None = None,
    ) -> ViewRecord:
        """Register a new view; ``VIEW_EXISTS`` if the name is taken."""
        with self._database.writing() as session:
            taken = session.scalar(select(ViewRow).where(ViewRow.name == name))
            if taken is not None:
                raise CatalogError(
                    "VIEW_EXISTS",
                    f"the {taken.kind} {name} cannot be added; there is one of that name since "
                    f"{taken.created_at:%Y-%m-%d %H:%M:%S} UTC; replace or drop it, or choose another name.",
                )
            row = ViewRow(
                name=name,
                kind=kind,
                sql=sql,
                options=dict(options),
                definition=definition,
                fingerprint=fingerprint,
                columns=columns_to_json(columns),
                inputs=list(inputs),
                location=location,
                origin=origin,
                created_at=self._clock(),
            )
            session.add(row)
            session.flush()
            return _record(row)

    def get(self, name: str) -> ViewRecord | None:
        """The view *name*."""
        with self._database.reading() as session:
            row = session.scalar(select(ViewRow).where(ViewRow.name == name))
            return _record(row) if row else None

    def all(self) -> tuple[ViewRecord, ...]:
        """All views and blocks, in the order they were added."""
        with self._database.reading() as session:
            return tuple(map(_record, session.scalars(select(ViewRow).order_by(ViewRow.id))))

    def replace(self, name: str, **changes: Unpack[ViewChanges]) -> ViewRecord:
        """Give the view *name* other values; its id and the rest stay."""
        with self._database.writing() as session:
            row = _existing(session, name)
            stored: dict[str, object] = dict(changes)
            if "columns" in changes:
                stored["columns"] = columns_to_json(changes["columns"])
            if "inputs" in changes:
                stored["inputs"] = list(changes["inputs"])
            for field, value in stored.items():
                setattr(row, field, value)
            return _record(row)

    def drop(self, name: str) -> None:
        """Forget the view *name*; its versions and its part in published states stay."""
        with self._database.writing() as session:
            session.delete(_existing(session, name))

    def dependants(self, name: str) -> tuple[str, ...]:
        """The views that have *name* among their inputs, in the order they were added."""
        with self._database.reading() as session:
            rows = session.execute(select(ViewRow.name, ViewRow.inputs).order_by(ViewRow.id))
            return tuple(view for view, inputs in rows if name in inputs)


def _existing(session: Session, name: str) -> ViewRow:
    row = session.scalar(select(ViewRow).where(ViewRow.name == name))
    if row is None:
        raise unknown("view", name, session.scalars(select(ViewRow.name).order_by(ViewRow.id)))
    return row


def _record(row: ViewRow) -> ViewRecord:
    return ViewRecord(
        id=row.id,
        name=row.name,
        kind=cast(ViewKind, row.kind),
        sql=row.sql,
        options=row.options,
        definition=row.definition,
        fingerprint=row.fingerprint,
        columns=columns_from_json(row.columns),
        inputs=tuple(row.inputs),
        location=row.location,
        origin=row.origin,
        created_at=row.created_at,
    )
