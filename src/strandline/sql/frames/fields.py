"""The columns that a relation gives, and which of them a name means.

A DataFrame's columns are found by name, by an alias of the DataFrame before the name, or as a column of one
certain DataFrame (``orders.id``), which a plan notes as the number of that DataFrame's plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.errors import SqlError
from strandline.sql.frames.printed import Printed
from strandline.sql.names import choices


@dataclass(frozen=True)
class Field:
    """A column of a relation."""

    name: str | None
    """As the user knows it; None if only Spark knows how it will be called."""

    sql: Printed

    column: str | None = None
    """Its name in FROM, unless it is computed."""

    plans: frozenset[int] = frozenset()
    """The DataFrames whose column this is."""

    qualifier: tuple[str, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether it stands in FROM as it is."""
        return self.column is not None


Found = tuple[Field, tuple[str, ...]]
"""A column, and the names of the nested fields that are taken out of it."""


def found(fields: Sequence[Field], parts: tuple[str, ...], plan: int | None) -> Found | None:
    """The column that a name means, if there is one."""
    if plan is not None:
        fields = [field for field in fields if plan in field.plans]
    for depth in range(len(parts) - 1, -1, -1):
        qualifier = _folded(parts[:depth])
        matching = [
            field
            for field in fields
            if _same(field.name, parts[depth]) and (not depth or _folded(field.qualifier)[-depth:] == qualifier)
        ]
        if len(matching) > 1:
            raise SqlError(
                "AMBIGUOUS_COLUMN",
                f"{'.'.join(parts)} is the name of {len(matching)} columns; take it from one DataFrame, "
                'as in orders["id"], or give the DataFrames an alias and write col("o.id").',
            )
        if matching:
            return matching[0], parts[depth + 1 :]
    return None


def unknown(fields: Sequence[Field], parts: tuple[str, ...]) -> SqlError:
    """The error for a name that means no column."""
    known = [field.name for field in fields if field.name is not None]
    name = ".".join(parts)
    return SqlError("UNKNOWN_COLUMN", f"the DataFrame has no column {name} here; it has: {choices(known, name)}.")


def named(fields: Sequence[Field], name: str) -> list[Field]:
    """The columns of that very name."""
    return [field for field in fields if _same(field.name, name)]


def _same(one: str | None, other: str) -> bool:
    return one is not None and one.lower() == other.lower()


def _folded(parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)
