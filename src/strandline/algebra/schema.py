"""Columns and their types.

Types are Spark's own, written as Spark writes them (``bigint``, ``decimal(12,2)``): what the analyser said
at CREATE is recorded and never derived a second time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A named, typed column of a relation."""

    name: str
    type: str
    nullable: bool = True


Schema = tuple[Column, ...]


def comparable(column: Column) -> bool:
    """Whether rows with such a column can be told to be equal: Spark groups by it, and a map has entries to compare."""
    return "map<" not in column.type.removeprefix("map<") and "variant" not in column.type


def matchable(column: Column) -> bool:
    """Whether Spark compares values of the column with ``=``, so that rows can be found by it."""
    return "map<" not in column.type and "variant" not in column.type


def names(columns: Iterable[Column]) -> tuple[str, ...]:
    """The names of *columns*, in order."""
    return tuple(column.name for column in columns)
