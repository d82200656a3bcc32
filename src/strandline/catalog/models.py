"""The control tables. A change here needs a migration; a test compares the two.

Rows of history (versions, states and their entries) name a view by its id. The row of a view that was dropped
or redefined stays, so that they can be read; its name is free again.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import BigInteger, Double, ForeignKey, Index, Integer, MetaData, Text, UniqueConstraint, text
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column
from sqlalchemy.types import TypeEngine

from strandline.catalog.jsontext import JsonText
from strandline.catalog.moments import UtcDateTime

# SQLite gives out row numbers only for a column declared INTEGER.
RowNumber = BigInteger().with_variant(Integer(), "sqlite")

# Without AUTOINCREMENT SQLite hands the number of a deleted last row out again.
NEVER_REUSED = {"sqlite_autoincrement": True}


class Base(DeclarativeBase):
    """The metadata of all control tables."""

    metadata = MetaData(
        naming_convention={
            "pk": "pk_%(table_name)s",
            "uq": "uq_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_N_name)s",
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, TypeEngine[Any]]] = {
        str: Text(),
        int: BigInteger(),
        float: Double(),
        datetime: UtcDateTime(),
    }


class WarehouseRow(Base):
    """The single row that says which warehouse this is."""

    __tablename__ = "warehouse"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    uuid: Mapped[str]
    created_at: Mapped[datetime]
    newest_csn: Mapped[int]


class LockRow(Base):
    """The single row of the warehouse lock; without a holder all but the token is empty."""

    __tablename__ = "warehouse_lock"

    id: Mapped[int] = mapped_column(Integer, primary_key=True, autoincrement=False)
    token: Mapped[int]
    host: Mapped[str | None]
    machine: Mapped[str | None]
    pid: Mapped[int | None]
    process_start: Mapped[str | None]
    purpose: Mapped[str | None]
    acquired_at: Mapped[datetime | None]
    heartbeat_at: Mapped[datetime | None]


class SettingRow(Base):
    """A setting of the warehouse."""

    __tablename__ = "settings"

    key: Mapped[str] = mapped_column(primary_key=True)
    value: Mapped[str]


class SourceRow(Base):
    """A source."""

    __tablename__ = "sources"

    name: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    config: Mapped[Any] = mapped_column(JsonText, nullable=False)
    created_at: Mapped[datetime]


class LeafRow(Base):
    """A table of a source."""

    __tablename__ = "leaves"

    name: Mapped[str] = mapped_column(primary_key=True)
    source: Mapped[str] = mapped_column(ForeignKey("sources.name"))
    table_name: Mapped[str]
    location: Mapped[str | None]
    columns: Mapped[Any] = mapped_column(JsonText, nullable=False)
    key: Mapped[Any] = mapped_column(JsonText, nullable=False)
    position: Mapped[Any] = mapped_column(JsonText, nullable=False)
    note: Mapped[str | None]


class TransactionRow(Base):
    """A transaction in the unit-of-work log."""

    __tablename__ = "unit_of_work"
    __table_args__ = (
        UniqueConstraint("leaf", "position_digest"),
        Index(None, "leaf", "csn"),
        Index(None, "leaf", "place"),
    )

    csn: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    leaf: Mapped[str] = mapped_column(ForeignKey("leaves.name", ondelete="CASCADE"))
    position: Mapped[Any] = mapped_column(JsonText, nullable=False)
    position_digest: Mapped[str]
    txid: Mapped[str | None]
    committed_at: Mapped[datetime | None]
    place: Mapped[int | None]
    summary: Mapped[Any | None] = mapped_column(JsonText, nullable=True)


class CaptureRow(Base):
    """How far the changes of a source are in the warehouse's own log."""

    __tablename__ = "captures"

    source: Mapped[str] = mapped_column(ForeignKey("sources.name", ondelete="CASCADE"), primary_key=True)
    log: Mapped[str]
    place: Mapped[int]
    details: Mapped[Any] = mapped_column(JsonText, nullable=False)
    tables: Mapped[Any] = mapped_column(JsonText, nullable=False)


class ViewRow(Base):
    """A view or block; with *dropped_at*, one that was."""

    __tablename__ = "views"
    __table_args__ = (
        Index(
            "uq_views_live_name",
            text("lower(name)"),
            unique=True,
            sqlite_where=text("dropped_at IS NULL"),
            postgresql_where=text("dropped_at IS NULL"),
        ),
        NEVER_REUSED,
    )

    id: Mapped[int] = mapped_column(RowNumber, primary_key=True)
    name: Mapped[str]
    kind: Mapped[str]
    sql: Mapped[str]
    options: Mapped[Any] = mapped_column(JsonText, nullable=False)
    definition: Mapped[Any] = mapped_column(JsonText, nullable=False)
    fingerprint: Mapped[str]
    columns: Mapped[Any] = mapped_column(JsonText, nullable=False)
    inputs: Mapped[Any] = mapped_column(JsonText, nullable=False)
    location: Mapped[str]
    origin: Mapped[str | None]
    created_at: Mapped[datetime]
    dropped_at: Mapped[datetime | None]


class VersionRow(Base):
    """A recorded table version; *seq* is the order of recording."""

    __tablename__ = "view_versions"
    __table_args__ = (UniqueConstraint("view_id", "step_id"), NEVER_REUSED)

    seq: Mapped[int] = mapped_column(RowNumber, primary_key=True)
    view_id: Mapped[int]
    version: Mapped[int]
    inputs: Mapped[Any] = mapped_column(JsonText, nullable=False)
    positions: Mapped[Any] = mapped_column(JsonText, nullable=False)
    step_id: Mapped[str]
    recorded_at: Mapped[datetime]


class RefreshRow(Base):
    """A refresh; *seq* is the order of beginning."""

    __tablename__ = "refreshes"
    __table_args__ = (UniqueConstraint("id"), Index(None, "status"), NEVER_REUSED)

    seq: Mapped[int] = mapped_column(RowNumber, primary_key=True)
    id: Mapped[str]
    plan: Mapped[Any] = mapped_column(JsonText, nullable=False)
    status: Mapped[str]
    started_at: Mapped[datetime]
    finished_at: Mapped[datetime | None]
    state: Mapped[int | None]
    error: Mapped[str | None]
    owner: Mapped[str]
    profile: Mapped[Any | None] = mapped_column(JsonText, nullable=True)


class StepRow(Base):
    """A step of a refresh."""

    __tablename__ = "steps"
    __table_args__ = (UniqueConstraint("refresh_id", "seq"), Index(None, "view"))

    id: Mapped[str] = mapped_column(primary_key=True)
    refresh_id: Mapped[str] = mapped_column(ForeignKey("refreshes.id"))
    seq: Mapped[int]
    kind: Mapped[str]
    view: Mapped[str | None]
    status: Mapped[str]
    started_at: Mapped[datetime | None]
    finished_at: Mapped[datetime | None]
    seconds: Mapped[float | None]
    result: Mapped[Any] = mapped_column(JsonText, nullable=False)
    error: Mapped[str | None]


class StateRow(Base):
    """A published state."""

    __tablename__ = "states"
    __table_args__ = (Index(None, "published_at"),)

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    published_at: Mapped[datetime]
    refresh_id: Mapped[str | None] = mapped_column(ForeignKey("refreshes.id"))


class StateEntryRow(Base):
    """What a published state says of one view."""

    __tablename__ = "state_entries"
    __table_args__ = (Index(None, "view_id", "version"),)

    number: Mapped[int] = mapped_column(ForeignKey("states.number"), primary_key=True)
    view: Mapped[str] = mapped_column(primary_key=True)
    view_id: Mapped[int]
    version: Mapped[int]
    positions: Mapped[Any] = mapped_column(JsonText, nullable=False)
    problem: Mapped[str | None]
