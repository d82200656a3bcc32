"""Changed column types of sources: which of them only widen, and which views read such a column."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from strandline.algebra.schema import Schema
from strandline.define.views import Definitions
from strandline.errors import SqlError
from strandline.propagate.vdag import Vdag
from strandline.sql.relations import Relations
from strandline.store.node import Node

_INTEGERS = ("tinyint", "smallint", "int", "bigint")
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


def widens(before: str, now: str) -> bool:
    """Whether every value of type *before* is one of type *now*."""
    if before in _INTEGERS and now in _INTEGERS:
        return _INTEGERS.index(before) < _INTEGERS.index(now)
    if (before, now) in {("float", "double"), ("date", "timestamp_ntz")}:
        return True
    old, new = _DECIMAL.fullmatch(before), _DECIMAL.fullmatch(now)
    if old is None or new is None:
        return False
    scale, wider = int(old[2]), int(new[2])
    return wider >= scale and int(new[1]) - wider >= int(old[1]) - scale


def follow_types(definitions: Definitions, vdag: Vdag, relations: Relations, rebaselined: Sequence[str]) -> None:
    """Compile views anew whose source columns have wider types now, or other ones, and they are in *rebaselined*."""
    columns: dict[str, Schema] = {}
    for leaf in (*vdag.leaves(), *(node.name for node in vdag.nodes.values() if node.copied)):
        relation = relations.find(leaf)
        columns[leaf] = relation.columns if relation else ()
    asked = {name.lower() for name in rebaselined}
    for node in vdag.nodes.values():
        types = retyped(node, columns)
        if not types:
            continue
        for name in definitions.users_of(node.name) if node.hidden else [node.name]:
            create = definitions.created(name)
            if create is not None and (name.lower() in asked or all(widens(*pair) for pair in types)):
                # What else became of the tables the plan will tell, view by view.
                with suppress(SqlError):
                    definitions.apply(create)
    definitions.follow_tables()
    definitions.note_columns()


def retyped(node: Node, columns: Mapping[str, Schema]) -> list[tuple[str, str]]:
    """Types before and now of the columns that *node* reads from leaves, where they differ."""
    found = []
    for leaf in node.inputs:
        now = {column.name.lower(): column.type for column in columns.get(leaf, ())}
        for column in node.uses(leaf):
            type_now = now.get(column.name.lower(), column.type)
            if type_now != column.type:
                found.append((column.type, type_now))
    return found
