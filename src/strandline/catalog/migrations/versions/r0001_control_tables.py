"""The first control tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

MOMENT = sa.DateTime(timezone=True)
ROW_NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Create all tables."""
    op.create_table(
        "warehouse",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("uuid", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("newest_csn", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_warehouse"),
    )
    op.create_table(
        "warehouse_lock",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("host", sa.Text()),
        sa.Column("machine", sa.Text()),
        sa.Column("pid", sa.BigInteger()),
        sa.Column("process_start", sa.Text()),
        sa.Column("purpose", sa.Text()),
        sa.Column("acquired_at", MOMENT),
        sa.Column("heartbeat_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_warehouse_lock"),
    )
    op.create_table(
        "settings",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key", name="pk_settings"),
    )
    _create_sources()
    _create_views()
    _create_refreshes()
    _create_states()


def _create_sources() -> None:
    op.create_table(
        "sources",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("name", name="pk_sources"),
    )
    op.create_table(
        "leaves",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("table_name", sa.Text(), nullable=False),
        sa.Column("location", sa.Text()),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("note", sa.Text()),
        sa.PrimaryKeyConstraint("name", name="pk_leaves"),
        sa.ForeignKeyConstraint(["source"], ["sources.name"], name="fk_leaves_source"),
    )
    op.create_table(
        "unit_of_work",
        sa.Column("csn", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("leaf", sa.Text(), nullable=False),
        sa.Column("position", sa.Text(), nullable=False),
        sa.Column("position_digest", sa.Text(), nullable=False),
        sa.Column("txid", sa.Text()),
        sa.Column("committed_at", MOMENT),
        sa.PrimaryKeyConstraint("csn", name="pk_unit_of_work"),
        sa.ForeignKeyConstraint(["leaf"], ["leaves.name"], name="fk_unit_of_work_leaf", ondelete="CASCADE"),
        sa.UniqueConstraint("leaf", "position_digest", name="uq_unit_of_work_leaf_position_digest"),
    )
    op.create_index("ix_unit_of_work_leaf_csn", "unit_of_work", ["leaf", "csn"])


def _create_views() -> None:
    op.create_table(
        "views",
        sa.Column("id", ROW_NUMBER, autoincrement=True, nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("sql", sa.Text(), nullable=False),
        sa.Column("options", sa.Text(), nullable=False),
        sa.Column("definition", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("columns", sa.Text(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("location", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text()),
        sa.Column("created_at", MOMENT, nullable=False),
        sa.Column("dropped_at", MOMENT),
        sa.PrimaryKeyConstraint("id", name="pk_views"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "uq_views_live_name",
        "views",
        [sa.text("lower(name)")],
        unique=True,
        sqlite_where=sa.text("dropped_at IS NULL"),
        postgresql_where=sa.text("dropped_at IS NULL"),
    )
    op.create_table(
        "view_versions",
        sa.Column("seq", ROW_NUMBER, autoincrement=True, nullable=False),
        sa.Column("view_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("inputs", sa.Text(), nullable=False),
        sa.Column("positions", sa.Text(), nullable=False),
        sa.Column("step_id", sa.Text(), nullable=False),
        sa.Column("recorded_at", MOMENT, nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_view_versions"),
        sa.UniqueConstraint("view_id", "step_id", name="uq_view_versions_view_id_step_id"),
        sqlite_autoincrement=True,
    )


def _create_refreshes() -> None:
    op.create_table(
        "refreshes",
        sa.Column("seq", ROW_NUMBER, autoincrement=True, nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("plan", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("started_at", MOMENT, nullable=False),
        sa.Column("finished_at", MOMENT),
        sa.Column("state", sa.BigInteger()),
        sa.Column("error", sa.Text()),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("seq", name="pk_refreshes"),
        sa.UniqueConstraint("id", name="uq_refreshes_id"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_refreshes_status", "refreshes", ["status"])
    op.create_table(
        "steps",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("refresh_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("view", sa.Text()),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("started_at", MOMENT),
        sa.Column("finished_at", MOMENT),
        sa.Column("seconds", sa.Double()),
        sa.Column("result", sa.Text(), nullable=False),
        sa.Column("error", sa.Text()),
        sa.PrimaryKeyConstraint("id", name="pk_steps"),
        sa.ForeignKeyConstraint(["refresh_id"], ["refreshes.id"], name="fk_steps_refresh_id"),
        sa.UniqueConstraint("refresh_id", "seq", name="uq_steps_refresh_id_seq"),
    )
    op.create_index("ix_steps_view", "steps", ["view"])


def _create_states() -> None:
    op.create_table(
        "states",
        sa.Column("number", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("published_at", MOMENT, nullable=False),
        sa.Column("refresh_id", sa.Text()),
        sa.PrimaryKeyConstraint("number", name="pk_states"),
        sa.ForeignKeyConstraint(["refresh_id"], ["refreshes.id"], name="fk_states_refresh_id"),
    )
    op.create_index("ix_states_published_at", "states", ["published_at"])
    op.create_table(
        "state_entries",
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("view", sa.Text(), nullable=False),
        sa.Column("view_id", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("positions", sa.Text(), nullable=False),
        sa.Column("problem", sa.Text()),
        sa.PrimaryKeyConstraint("number", "view", name="pk_state_entries"),
        sa.ForeignKeyConstraint(["number"], ["states.number"], name="fk_state_entries_number"),
    )
    op.create_index("ix_state_entries_view_id_version", "state_entries", ["view_id", "version"])
