"""What a query's table names stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from strandline.algebra.schema import Schema
from strandline.sql.names import quoted


@dataclass(frozen=True)
class Relation:
    """A leaf (``source.table``), a view or a stored block: what a scan can read."""

    name: str
    columns: Schema
    key: tuple[str, ...] = ()


class Relations(Protocol):
    """The relations that a query may name."""

    def find(self, name: str) -> Relation | None:
        """The relation of that name, whatever the case of its letters."""

    def names(self) -> list[str]:
        """All names that :meth:`find` knows."""


class Analyser(Protocol):
    """Spark's own analysis of a query: its column names and types."""

    def __call__(self, sql: str) -> Schema: ...


def empty_relation(relation: Relation) -> str:
    """A relation of the right columns and no rows: enough for analysis, without touching a table."""
    return f"({empty_select(relation.columns)})"


def empty_select(columns: Schema) -> str:
    """A SELECT of *columns* without rows."""
    items = ", ".join(f"CAST(NULL AS {c.type}) AS {quoted(c.name)}" for c in columns)
    return f"SELECT {items} WHERE false"
