"""Bringing the control tables to the form that this version knows."""

from __future__ import annotations

import uuid

from sqlalchemy import column, inspect, select, table
from sqlalchemy.orm import Session

from strandline.catalog.damage import damaged
from strandline.catalog.database import Database
from strandline.catalog.models import LockRow, WarehouseRow
from strandline.catalog.moments import Clock
from strandline.errors import CatalogError

# Kept here, not asked of Alembic, so that opening a catalog that is up to date need not load it.
REVISIONS = ("0001", "0002", "0003")
REVISION_TABLE = "catalog_revision"


def bring_up_to_date(database: Database, clock: Clock) -> None:
    """Create or upgrade the control tables if they need it."""
    with database.reading() as session:
        if revision(session) == REVISIONS[-1]:
            return
    with database.writing() as session:
        # Another process may have been first while this one waited for its turn.
        if revision(session) == REVISIONS[-1]:
            return
        _migrate(session)
        _create_single_rows(session, clock)


def revision(session: Session) -> str | None:
    """The revision of the tables, ``None`` for an empty database; one that is not known is refused."""
    if not inspect(session.connection()).has_table(REVISION_TABLE):
        return None
    found = session.scalar(select(table(REVISION_TABLE, column("version_num")).c.version_num))
    if found is None:
        raise damaged(REVISION_TABLE, "its only row", "is missing")
    if found in REVISIONS:
        return str(found)
    raise CatalogError(
        "CATALOG_TOO_NEW",
        f"the catalog has revision {found}; this version of strandline knows {', '.join(REVISIONS)}; "
        "upgrade strandline to the version that last opened this warehouse, or a later one.",
    )


def _migrate(session: Session) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", "strandline.catalog:migrations")
    config.attributes["connection"] = session.connection()
    config.attributes["version_table"] = REVISION_TABLE
    command.upgrade(config, "head")


def _create_single_rows(session: Session, clock: Clock) -> None:
    if session.get(WarehouseRow, 1) is None:
        session.add(WarehouseRow(id=1, uuid=str(uuid.uuid4()), created_at=clock(), newest_csn=0))
        session.add(LockRow(id=1, token=0))
