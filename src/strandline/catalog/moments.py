"""Points in time: aware, in UTC, whichever database keeps them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeAlias

from sqlalchemy import DateTime, Dialect
from sqlalchemy.types import TypeDecorator

from strandline.catalog.jsontext import Unreadable

Clock: TypeAlias = Callable[[], datetime]


def utc_now() -> datetime:
    """The wall clock."""
    return datetime.now(UTC)


def in_utc(moment: datetime) -> datetime:
    """*moment* in UTC; a moment without a time zone is refused, since nobody can say when it was."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment!r} has no time zone")
    return moment.astimezone(UTC)


class UtcDateTime(TypeDecorator[datetime]):
    """A column of aware UTC moments; SQLite keeps no time zone, so it is put back on reading."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment in UTC."""
        return None if value is None else in_utc(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any] | None:
        """The driver's reading of a moment, where a text that is none is named."""
        read = super().result_processor(dialect, coltype)

        def readable(value: Any) -> Any:
            try:
                return value if read is None else read(value)
            except (ValueError, TypeError):
                raise Unreadable(str(value)) from None

        return readable

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The moment with its time zone."""
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
