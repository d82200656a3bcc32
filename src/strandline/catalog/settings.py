"""Settings of the warehouse itself."""

from __future__ import annotations

from strandline.catalog.database import Database
from strandline.catalog.models import SettingRow


class Settings:
    """Texts by key."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, key: str) -> str | None:
        """The value of *key*."""
        with self._database.reading() as session:
            row = session.get(SettingRow, key)
            return row.value if row else None

    def put(self, key: str, value: str) -> None:
        """Set *key* to *value*."""
        with self._database.writing() as session:
            session.merge(SettingRow(key=key, value=value))
