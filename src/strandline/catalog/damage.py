"""Damage: rows of the control tables that say what cannot be. They are named, and nothing is built on them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, get_args

from sqlalchemy import Text, cast, select
from sqlalchemy.orm import Session

from strandline.catalog.jsontext import JsonText, Unreadable
from strandline.catalog.models import Base
from strandline.catalog.moments import UtcDateTime
from strandline.errors import CatalogError

_Row = TypeVar("_Row", bound=Base)

SHOWN = 60
"""So many characters of a text that cannot be read are repeated."""


def damaged(table: str, row: str, what: str) -> CatalogError:
    """``CATALOG_DAMAGED``: a row that strandline wrote is not as it wrote it, or is gone."""
    return damaged_catalog(f"in its table {table}, {row} {what}", "or correct the row, ")


def damaged_catalog(what: str, otherwise: str = "") -> CatalogError:
    """``CATALOG_DAMAGED``, where no single row can be named."""
    return CatalogError(
        "CATALOG_DAMAGED",
        f"the catalog is damaged: {what}; nothing was changed; put the catalog back from a backup of the same time as "
        f"the tables, {otherwise}and run the command again.",
    )


@contextmanager
def understanding(table: str, row: str) -> Iterator[None]:
    """Within, what a row says is made into values; if that cannot be, the row is damaged."""
    try:
        yield
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        told = f"there is no {error}" if isinstance(error, KeyError) else str(error)
        raise damaged(table, row, f"does not say what it must ({told[:200]})") from error


def mapping(value: Any) -> Mapping[str, Any]:
    """A JSON object."""
    if not isinstance(value, Mapping):
        raise ValueError(f"{str(value)[:SHOWN]!r} is no JSON object")
    return value


def one_of(known: Any, value: str) -> Any:
    """*value*, which must be among those that a literal type lists."""
    if value not in get_args(known):
        raise ValueError(f"{value[:SHOWN]!r} is none of {', '.join(get_args(known))}")
    return value


def required(session: Session, table: type[_Row], key: object) -> _Row:
    """The row with that key, which must be there."""
    row = session.get(table, key)
    if row is None:
        raise damaged(table.__tablename__, f"row {key}", "is missing")
    return row


def where_unreadable(session: Session, error: Unreadable) -> CatalogError:
    """The error that names the row which holds an unreadable text."""
    for table in Base.metadata.sorted_tables:
        for column in table.columns:
            if not isinstance(column.type, JsonText | UtcDateTime):
                continue
            key = list(table.primary_key.columns)
            found = session.execute(select(*key).where(cast(column, Text) == error.text).limit(1)).first()
            if found is not None:
                row = ", ".join(f"{part.name} {value}" for part, value in zip(key, found, strict=True))
                return damaged(table.name, f"row {row}", f"has an unreadable {column.name} ({error.text[:SHOWN]!r})")
    return damaged_catalog(f"it holds an unreadable value ({error.text[:SHOWN]!r})")
