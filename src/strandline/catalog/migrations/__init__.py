"""Alembic's migrations of the control tables, run when a catalog is opened."""
