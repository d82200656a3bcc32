"""Rows of a delta found among the rows of a table: conditions, literals, and loud failure."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.algebra.schema import Column
from strandline.sql.names import literal, quoted
from strandline.store.node import Node

BOUNDED = ("tinyint", "smallint", "int", "bigint", "date", "string")
"""Types whose values can be written as literals."""

MISSING_ROW = "[DELETE_WITHOUT_ROW]"


def same(left: str, right: str, columns: Iterable[Column]) -> str:
    """Whether two rows agree in *columns*, NULL being equal to NULL and a map having its entries in no order."""
    return " AND ".join(f"{_value(left, column)} <=> {_value(right, column)}" for column in columns)


def _value(side: str, column: Column) -> str:
    name = f"{side}.{quoted(column.name)}"
    return f"array_sort(map_entries({name}))" if column.type.startswith("map<") else name


def constant(value: str, column: Column) -> str:
    """A key value, given as text because Python does not know all dates that Spark does, as a literal of its type."""
    if column.type in ("date", "string"):
        return literal(value) if column.type == "string" else f"DATE {literal(value)}"
    return f"CAST({value} AS {column.type})"


def missing_row(node: Node, value: str, kind: str = "BOOLEAN") -> str:
    """An expression of a type that fails, because a row to be deleted is not there."""
    message = f"{MISSING_ROW} {node.name}: the delta deletes a row that the table does not hold; left over: "
    return failing(message, value, kind)


def failing(message: str, value: str, kind: str = "BOOLEAN") -> str:
    """Fail; the text ends with a *value*, so that no engine computes the error before it knows whether it is needed.

    In a MERGE a condition is computed for rows to which its clause does not apply, so what fails for a row that matches
    nothing stands among the values to be inserted.
    """
    return f"CAST(raise_error({literal(message)} || coalesce(CAST({value} AS STRING), 'NULL')) AS {kind})"
