"""Published states of the warehouse: a reader of one sees it unchanged until it is purged."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from sqlalchemy import ColumnElement, insert, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from strandline.catalog.damage import mapping, understanding
from strandline.catalog.database import Database
from strandline.catalog.lease import Lease, require_held
from strandline.catalog.models import StateEntryRow, StateRow
from strandline.catalog.moments import Clock, in_utc
from strandline.catalog.records import StateEntry, StateRecord
from strandline.catalog.refreshes import mark_published
from strandline.errors import CatalogError


class States:
    """Published states by number."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def publish(self, refresh_id: str | None, entries: Iterable[StateEntry], lease: Lease) -> StateRecord:
        """Publish the next state and, in the same transaction, mark its refresh done."""
        listed = tuple(entries)
        try:
            with self._database.writing() as session:
                require_held(session, lease)
                row = _next(session, self._clock())
                row.refresh_id = refresh_id
                if refresh_id is not None:
                    mark_published(session, refresh_id, row.number, row.published_at)
                session.add(row)
                session.flush()
                if listed:
                    session.execute(insert(StateEntryRow), [_entry_values(row.number, one) for one in listed])
                return StateRecord(row.number, row.published_at, refresh_id, {one.view: one for one in listed})
        except IntegrityError as error:
            names = [one.view for one in listed]
            twice = ", ".join(sorted({name for name in names if names.count(name) > 1}))
            found = f"{twice} is in it more than once" if twice else f"the database refused it ({error.orig})"
            raise CatalogError(
                "STATE_INVALID",
                f"the state cannot be published; {found}; publish one complete entry per view.",
            ) from None

    def newest(self) -> StateRecord | None:
        """The state published last."""
        return self._newest_where()

    def get(self, number: int) -> StateRecord | None:
        """The state *number*."""
        return self._newest_where(StateRow.number == number)

    def as_of(self, moment: datetime) -> StateRecord | None:
        """The newest state published at or before *moment*."""
        return self._newest_where(StateRow.published_at <= in_utc(moment))

    def all(self, limit: int | None = None) -> tuple[StateRecord, ...]:
        """The published states, newest first."""
        with self._database.reading() as session:
            rows = session.scalars(select(StateRow).order_by(StateRow.number.desc()).limit(limit))
            return _records(session, rows.all())

    def referenced_versions(self, view_id: int) -> tuple[int, ...]:
        """The table versions of a view that some state shows, ascending."""
        with self._database.reading() as session:
            versions = session.scalars(
                select(StateEntryRow.version)
                .where(StateEntryRow.view_id == view_id)
                .distinct()
                .order_by(StateEntryRow.version)
            )
            return tuple(versions)

    def _newest_where(self, *criteria: ColumnElement[bool]) -> StateRecord | None:
        with self._database.reading() as session:
            newest_first = select(StateRow).where(*criteria).order_by(StateRow.number.desc())
            found = _records(session, session.scalars(newest_first.limit(1)).all())
            return found[0] if found else None


def _next(session: Session, moment: datetime) -> StateRow:
    newest = session.scalar(select(StateRow).order_by(StateRow.number.desc()).limit(1))
    if newest is None:
        return StateRow(number=1, published_at=in_utc(moment))
    # `as_of` searches by time: were a clock set back, a later state would hide behind an earlier one.
    return StateRow(number=newest.number + 1, published_at=max(in_utc(moment), newest.published_at))


def _entry_values(number: int, entry: StateEntry) -> dict[str, object]:
    return {
        "number": number,
        "view": entry.view,
        "view_id": entry.view_id,
        "version": entry.version,
        "positions": dict(entry.positions),
        "problem": entry.problem,
    }


def _records(session: Session, rows: Iterable[StateRow]) -> tuple[StateRecord, ...]:
    states = {row.number: StateRecord(row.number, row.published_at, row.refresh_id, {}) for row in rows}
    if not states:
        return ()
    entries: dict[int, dict[str, StateEntry]] = {number: {} for number in states}
    found = session.scalars(
        select(StateEntryRow)
        .where(StateEntryRow.number.between(min(states), max(states)))
        .order_by(StateEntryRow.number, StateEntryRow.view)
    )
    for row in found:
        with understanding("state_entries", f"row number {row.number}, view {row.view}"):
            shown = mapping(row.positions)
            entries[row.number][row.view] = StateEntry(row.view, row.view_id, row.version, shown, row.problem)
    return tuple(
        StateRecord(one.number, one.published_at, one.refresh_id, entries[one.number]) for one in states.values()
    )
