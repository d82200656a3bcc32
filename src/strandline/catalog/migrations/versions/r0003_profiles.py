"""Where the seconds of a refresh went."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add the profile of a refresh; that of a step is part of its result."""
    op.add_column("refreshes", sa.Column("profile", sa.Text()))
