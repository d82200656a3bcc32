"""What a query's table names stand for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from strandline.algebra.schema import Column, Schema
from strandline.sql.names import quoted, split_names


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


def empty_inputs(columns: Schema) -> str:
    """Inputs without rows, beside each other, whose columns are where :func:`strandline.sql.names.places` says."""
    inputs: dict[str, list[Column]] = {}
    for column, (alias, name) in zip(columns, split_names(columns).values(), strict=True):
        inputs.setdefault(alias, []).append(replace(column, name=name))
    return ", ".join(f"({empty_select(tuple(found))}) AS {quoted(alias)}" for alias, found in inputs.items())


def empty_select(columns: Schema) -> str:
    """A SELECT of *columns* without rows."""
    items = ", ".join(f"CAST(NULL AS {c.type}) AS {quoted(c.name)}" for c in columns)
    return f"SELECT {items} WHERE false"
