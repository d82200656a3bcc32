"""Soundness: rows of the control tables that need each other are all there.

It is looked at before anything is changed. A view without a recorded version would be filled anew, and its table
removed first: that must not happen to a table that published states show.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from strandline.catalog.damage import damaged, required
from strandline.catalog.models import (
    LockRow,
    RefreshRow,
    StateEntryRow,
    StateRow,
    StepRow,
    VersionRow,
    ViewRow,
    WarehouseRow,
)
from strandline.errors import CatalogError


def check(session: Session) -> None:
    """Raise ``CATALOG_DAMAGED`` for a row that is missing."""
    required(session, WarehouseRow, 1)
    required(session, LockRow, 1)
    for found in (_lost_view(session), _lost_version(session), _lost_step(session)):
        if found is not None:
            raise found


def _lost_view(session: Session) -> CatalogError | None:
    """A published state shows a view that is not known."""
    known = select(ViewRow.id)
    row = session.scalar(select(StateEntryRow).where(StateEntryRow.view_id.not_in(known)).limit(1))
    if row is None:
        return None
    return damaged("views", f"row {row.view_id}", f"is missing: state {row.number} shows {row.view} by it")


def _lost_version(session: Session) -> CatalogError | None:
    """The newest state shows a version that is not recorded, or any state a view without recorded versions."""
    recorded = select(VersionRow.seq).where(
        VersionRow.view_id == StateEntryRow.view_id, VersionRow.version == StateEntryRow.version
    )
    newest = select(StateRow.number).order_by(StateRow.number.desc()).limit(1).scalar_subquery()
    row = session.scalar(select(StateEntryRow).where(StateEntryRow.number == newest, ~recorded.exists()).limit(1))
    if row is None:
        row = session.scalar(
            select(StateEntryRow).where(StateEntryRow.view_id.not_in(select(VersionRow.view_id))).limit(1)
        )
    if row is None:
        return None
    return damaged(
        "view_versions",
        f"the row of view {row.view_id} ({row.view}) and version {row.version}",
        f"is missing: state {row.number} shows it",
    )


def _lost_step(session: Session) -> CatalogError | None:
    """A refresh that is not finished lacks a step."""
    for refresh in session.scalars(select(RefreshRow).where(RefreshRow.status == "running")):
        plan: Any = refresh.plan
        listed = (plan.get("steps") or plan.get("upkeep") or ()) if isinstance(plan, dict) else ()
        there = set(session.scalars(select(StepRow.id).where(StepRow.refresh_id == refresh.id)))
        for step in listed:
            if step["id"] not in there:
                return damaged("steps", f"row {step['id']}", f"is missing: refresh {refresh.id} has that step")
    return None
