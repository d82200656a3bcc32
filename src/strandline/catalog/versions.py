"""Table versions that count: what is in a view's table at any other version is not part of the warehouse."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from strandline.catalog.damage import mapping, understanding
from strandline.catalog.database import Database
from strandline.catalog.jsontext import Json
from strandline.catalog.lease import Lease, require_held
from strandline.catalog.models import VersionRow
from strandline.catalog.moments import Clock
from strandline.catalog.records import NewVersion, VersionRecord
from strandline.errors import CatalogError


class Versions:
    """Recorded versions by view id."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock

    def record(
        self,
        view_id: int,
        version: int,
        inputs: Mapping[str, Json],
        positions: Mapping[str, Json],
        step_id: str,
        *,
        lease: Lease | None = None,
    ) -> VersionRecord:
        """Record the version that a step made; a second time it returns what the first recorded."""
        with self._database.writing() as session:
            if lease is not None:
                require_held(session, lease)
            new = NewVersion(view_id, version, inputs, positions)
            return insert_version(session, new, step_id, self._clock)

    def baseline(self, view_id: int) -> VersionRecord | None:
        """The version recorded last, to which a table is restored after a crash."""
        with self._database.reading() as session:
            row = session.scalar(
                select(VersionRow).where(VersionRow.view_id == view_id).order_by(VersionRow.seq.desc()).limit(1)
            )
            return _record(row) if row else None

    def baselines(self) -> dict[int, VersionRecord]:
        """The version recorded last of each view, by its id."""
        newest = select(func.max(VersionRow.seq)).group_by(VersionRow.view_id)
        with self._database.reading() as session:
            rows = session.scalars(select(VersionRow).where(VersionRow.seq.in_(newest)))
            return {row.view_id: _record(row) for row in rows}

    def all(self, view_id: int) -> tuple[VersionRecord, ...]:
        """All versions of a view, in the order they were recorded."""
        with self._database.reading() as session:
            rows = session.scalars(select(VersionRow).where(VersionRow.view_id == view_id).order_by(VersionRow.seq))
            return tuple(map(_record, rows))


def insert_version(session: Session, new: NewVersion, step_id: str, clock: Clock) -> VersionRecord:
    """Record *new* in a transaction that is under way, once per step."""
    row = session.scalar(select(VersionRow).where(VersionRow.view_id == new.view_id, VersionRow.step_id == step_id))
    if row is None:
        row = VersionRow(
            view_id=new.view_id,
            version=new.version,
            inputs=dict(new.inputs),
            positions=dict(new.positions),
            step_id=step_id,
            recorded_at=clock(),
        )
        session.add(row)
        session.flush()
    elif row.version != new.version:
        raise CatalogError(
            "VERSION_CONFLICT",
            f"step {step_id} reports version {new.version} of view {new.view_id}; version {row.version} is "
            "recorded for that step; restore the view's table to the recorded version and plan anew.",
        )
    return _record(row)


def _record(row: VersionRow) -> VersionRecord:
    with understanding("view_versions", f"row {row.seq} (view {row.view_id}, version {row.version})"):
        seen, shown = mapping(row.inputs), mapping(row.positions)
        return VersionRecord(row.view_id, row.version, seen, shown, row.step_id, row.recorded_at)
