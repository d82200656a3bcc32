"""Run the migrations in the transaction that the catalog has begun."""

from __future__ import annotations

from alembic import context

from strandline.catalog.models import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    version_table=context.config.attributes["version_table"],
    # Off by default on SQLite, whose driver ends transactions before DDL; the catalog's connections do not.
    transactional_ddl=True,
)
context.run_migrations()
