"""Whether nodes can read source tables as they are now."""

from __future__ import annotations

from strandline.algebra.schema import Schema
from strandline.reasons import Reason
from strandline.store.node import Node


def schema_problem(node: Node, leaf: str, now: Schema) -> Reason | None:
    """Why a node cannot read a table as it is now: a column that it uses is gone or has another type."""
    types = {column.name.lower(): column.type for column in now}
    for column in node.uses(leaf):
        found = types.get(column.name.lower())
        if found is None:
            return Reason(
                "SOURCE_SCHEMA_CHANGED",
                f"{leaf} has no column {column.name} any more; redefine the view with CREATE OR REPLACE",
            )
        if found != column.type:
            return Reason(
                "SOURCE_SCHEMA_CHANGED",
                f"{leaf}.{column.name} was {column.type} and is {found} now; a full refresh takes it as it is now",
            )
    return None
