"""Purging: rows go that no state which is kept, and no refresh to come, will look at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import CursorResult, Delete, delete, select, update
from sqlalchemy.orm import InstrumentedAttribute, Session

from strandline.catalog.database import Database
from strandline.catalog.jsontext import Json
from strandline.catalog.lease import Lease, require_held
from strandline.catalog.models import Base, StateEntryRow, StateRow, TransactionRow, VersionRow, ViewRow

AT_ONCE = 500


@dataclass(frozen=True)
class Outlived:
    """What can go: states by number, versions by view and step, transactions of a leaf before a csn, dropped views.

    *inputs* are those of versions that stay, as they are to be without what goes.
    """

    states: tuple[int, ...] = ()
    versions: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    inputs: Mapping[tuple[int, str], Mapping[str, Json]] = field(default_factory=dict)
    transactions: Mapping[str, int] = field(default_factory=dict)
    views: tuple[int, ...] = ()


class Purging:
    """Removes rows for good."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def purge(self, outlived: Outlived, lease: Lease) -> dict[str, int]:
        """Remove what is outlived, all at once; how many rows of each kind went."""
        with self._database.writing() as session:
            require_held(session, lease)
            _remove(session, StateEntryRow, StateEntryRow.number, outlived.states)
            states = _remove(session, StateRow, StateRow.number, outlived.states)
            versions = sum(
                _deleted(session, delete(VersionRow).where(VersionRow.view_id == view, VersionRow.step_id == step))
                for view, steps in outlived.versions.items()
                for step in steps
            )
            for (view, step), inputs in outlived.inputs.items():
                found = session.scalar(select(VersionRow).where(VersionRow.view_id == view, VersionRow.step_id == step))
                if found is not None:
                    found.inputs = dict(inputs)
            transactions = sum(
                _deleted(session, delete(TransactionRow).where(TransactionRow.leaf == leaf, TransactionRow.csn < csn))
                for leaf, csn in outlived.transactions.items()
            )
            views = _remove(session, ViewRow, ViewRow.id, outlived.views)
            return {"states": states, "versions": versions, "transactions": transactions, "views": views}

    def rename_version(self, view_id: int, version: int, same: int, lease: Lease) -> None:
        """Name the table version *same*, which holds the same rows, wherever *version* is named."""
        with self._database.writing() as session:
            require_held(session, lease)
            for table in (VersionRow, StateEntryRow):
                session.execute(
                    update(table).where(table.view_id == view_id, table.version == version).values(version=same)
                )
            before, after = {"view": view_id, "version": version}, {"view": view_id, "version": same}
            for row in session.scalars(select(VersionRow)):
                if before in row.inputs.values():
                    row.inputs = {name: after if pin == before else pin for name, pin in row.inputs.items()}


def _remove(session: Session, table: type[Base], column: InstrumentedAttribute[int], values: Sequence[int]) -> int:
    """Delete the rows with these values, some at a time; how many there were."""
    parts = [values[start : start + AT_ONCE] for start in range(0, len(values), AT_ONCE)]
    return sum(_deleted(session, delete(table).where(column.in_(part))) for part in parts)


def _deleted(session: Session, statement: Delete) -> int:
    result = session.execute(statement)
    assert isinstance(result, CursorResult)
    return result.rowcount
