"""Capture logs of copied sources, and what each transaction did."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add the table of captures, and the columns that order and sum up transactions."""
    op.create_table(
        "captures",
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("log", sa.Text(), nullable=False),
        sa.Column("place", sa.BigInteger(), nullable=False),
        sa.Column("details", sa.Text(), nullable=False),
        sa.Column("tables", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("source", name="pk_captures"),
        sa.ForeignKeyConstraint(["source"], ["sources.name"], name="fk_captures_source", ondelete="CASCADE"),
    )
    op.add_column("unit_of_work", sa.Column("place", sa.BigInteger()))
    op.add_column("unit_of_work", sa.Column("summary", sa.Text()))
    op.create_index("ix_unit_of_work_leaf_place", "unit_of_work", ["leaf", "place"])
