"""Views and blocks."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Unpack

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from strandline.catalog.changes import (
    AddView,
    DropView,
    RedefineView,
    ReplaceView,
    ViewChange,
    ViewChanges,
    ViewValues,
)
from strandline.catalog.columns import columns_from_json, columns_to_json
from strandline.catalog.damage import mapping, one_of, understanding
from strandline.catalog.database import Database
from strandline.catalog.messages import unknown
from strandline.catalog.models import ViewRow
from strandline.catalog.moments import Clock
from strandline.catalog.records import ViewKind, ViewRecord
from strandline.errors import CatalogError

LIVE = ViewRow.dropped_at.is_(None)


class Views:
    """Views by name, in any case. Those that were dropped or redefined stay readable by id, which is never used twice.

    A view keeps the spelling of the name with which it was added.
    """

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def apply(self, changes: Sequence[ViewChange]) -> dict[str, ViewRecord]:
        """Carry out *changes* in order, all or none.

        Returns what they made of the views they name, by name, without those that they dropped.
        """
        with self._database.writing() as session:
            now = self._clock()
            made: dict[str, ViewRow] = {}
            for change in changes:
                match change:
                    case AddView():
                        row = _add(session, change, now)
                    case RedefineView():
                        row = _redefine(session, change, now)
                    case ReplaceView():
                        row = _replace(session, change)
                    case DropView():
                        made.pop(_drop(session, change.name, now).name, None)
                        continue
                made[row.name] = row
            return {name: _record(row) for name, row in made.items()}

    def add(self, name: str, **values: Unpack[ViewValues]) -> ViewRecord:
        """Register a new view; ``VIEW_EXISTS`` if the name is taken."""
        return self._apply_one(AddView(name, **values))

    def redefine(self, name: str, **values: Unpack[ViewValues]) -> ViewRecord:
        """Drop the view *name* and register another in its place, which has a new id."""
        return self._apply_one(RedefineView(name, **values))

    def replace(self, name: str, **changes: Unpack[ViewChanges]) -> ViewRecord:
        """Give the view *name* other values without altering what it computes; its id and the rest stay."""
        return self._apply_one(ReplaceView(name, changes))

    def drop(self, name: str) -> None:
        """Drop the view *name*; its definition, its versions and its part in published states stay."""
        self.apply([DropView(name)])

    def get(self, name: str) -> ViewRecord | None:
        """The view *name*, unless it was dropped."""
        with self._database.reading() as session:
            row = _live(session, name)
            return _record(row) if row else None

    def by_id(self, view_id: int) -> ViewRecord | None:
        """The view with that id, also one that was dropped or redefined."""
        with self._database.reading() as session:
            row = session.get(ViewRow, view_id)
            return _record(row) if row else None

    def all(self) -> tuple[ViewRecord, ...]:
        """All views and blocks but the dropped ones, in the order they were added or last redefined."""
        with self._database.reading() as session:
            return tuple(map(_record, session.scalars(select(ViewRow).where(LIVE).order_by(ViewRow.id))))

    def ever(self) -> tuple[ViewRecord, ...]:
        """All views and blocks that rows of history may name, the dropped ones too."""
        with self._database.reading() as session:
            return tuple(map(_record, session.scalars(select(ViewRow).order_by(ViewRow.id))))

    def reinstate(self, ids: Collection[int]) -> None:
        """Make exactly the views with these ids the live ones: a change of definitions is taken back."""
        with self._database.writing() as session:
            now = self._clock()
            for row in session.scalars(select(ViewRow).where(ViewRow.dropped_at.is_(None))):
                if row.id not in ids:
                    row.dropped_at = now
            session.flush()
            for row in session.scalars(select(ViewRow).where(ViewRow.id.in_(ids))):
                row.dropped_at = None

    def dependants(self, name: str) -> tuple[str, ...]:
        """The views that have *name* among their inputs, in the order they were added or last redefined."""
        with self._database.reading() as session:
            view = _live(session, name)
            spelled = view.name if view else name
            rows = session.execute(select(ViewRow.name, ViewRow.inputs).where(LIVE).order_by(ViewRow.id))
            return tuple(dependant for dependant, inputs in rows if spelled in inputs)

    def _apply_one(self, change: AddView | RedefineView | ReplaceView) -> ViewRecord:
        (record,) = self.apply([change]).values()
        return record


def _add(session: Session, new: AddView, now: datetime) -> ViewRow:
    taken = _live(session, new.name)
    if taken is not None:
        raise CatalogError(
            "VIEW_EXISTS",
            f"the {new.kind} {new.name} cannot be added; there is the {taken.kind} {taken.name} since "
            f"{taken.created_at:%Y-%m-%d %H:%M:%S} UTC; replace or drop it, or choose another name.",
        )
    return _insert(session, new.name, new, now)


def _redefine(session: Session, new: RedefineView, now: datetime) -> ViewRow:
    # Those that have the view among their inputs name it as it was spelled.
    return _insert(session, _drop(session, new.name, now).name, new, now)


def _insert(session: Session, name: str, new: AddView | RedefineView, now: datetime) -> ViewRow:
    row = ViewRow(
        name=name,
        kind=new.kind,
        sql=new.sql,
        options=dict(new.options),
        definition=new.definition,
        fingerprint=new.fingerprint,
        columns=columns_to_json(new.columns),
        inputs=list(new.inputs),
        location=new.location,
        origin=new.origin,
        created_at=now,
    )
    session.add(row)
    session.flush()
    return row


def _replace(session: Session, change: ReplaceView) -> ViewRow:
    row = _existing(session, change.name)
    stored: dict[str, object] = dict(change.changes)
    if "columns" in change.changes:
        stored["columns"] = columns_to_json(change.changes["columns"])
    if "inputs" in change.changes:
        stored["inputs"] = list(change.changes["inputs"])
    for field, value in stored.items():
        setattr(row, field, value)
    session.flush()
    return row


def _drop(session: Session, name: str, now: datetime) -> ViewRow:
    row = _existing(session, name)
    row.dropped_at = now
    # The name is free before a successor is inserted, whatever order the session would choose.
    session.flush()
    return row


def _existing(session: Session, name: str) -> ViewRow:
    row = _live(session, name)
    if row is None:
        raise unknown("view", name, session.scalars(select(ViewRow.name).where(LIVE).order_by(ViewRow.id)))
    return row


def _live(session: Session, name: str) -> ViewRow | None:
    row = session.scalar(select(ViewRow).where(LIVE, func.lower(ViewRow.name) == func.lower(name)))
    if row is not None:
        return row
    # SQLite's lower() changes ASCII letters only, PostgreSQL's those that its locale knows.
    names = session.execute(select(ViewRow.id, ViewRow.name).where(LIVE).order_by(ViewRow.id))
    found = next((view_id for view_id, other in names if other.lower() == name.lower()), None)
    return None if found is None else session.get_one(ViewRow, found)


def _record(row: ViewRow) -> ViewRecord:
    with understanding("views", f"row {row.id} (the {row.kind} {row.name})"):
        return ViewRecord(
            id=row.id,
            name=row.name,
            kind=one_of(ViewKind, row.kind),
            sql=row.sql,
            options=mapping(row.options),
            definition=row.definition,
            fingerprint=row.fingerprint,
            columns=columns_from_json(row.columns),
            inputs=tuple(row.inputs),
            location=row.location,
            origin=row.origin,
            created_at=row.created_at,
            dropped_at=row.dropped_at,
        )
