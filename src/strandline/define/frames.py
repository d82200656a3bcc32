"""Views that are defined in Python: by SQL text, by a DataFrame, or by a function that returns either."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from strandline.algebra.schema import Schema
from strandline.engine.frames import columns_of_frame, frame_over, is_frame, plan_of
from strandline.engine.session import Engine
from strandline.errors import SqlError
from strandline.sql.ddl import parse_select
from strandline.sql.frames.placeholder import placeholder
from strandline.sql.frames.plan import query_of
from strandline.sql.references import replaced, unknown_relation
from strandline.sql.relations import Relations, empty_relation

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame

Table = Callable[[str], "DataFrame"]


def empty_frame(name: str, relations: Relations, engine: Engine) -> DataFrame:
    """A DataFrame with the columns of a table or view and no rows, to define views by."""
    relation = relations.find(name)
    if relation is None:
        raise unknown_relation(name, relations)
    return frame_over(engine.spark, placeholder(relation), relation.name.rsplit(".", 1)[-1])


def query_text(definition: Any, table: Table, relations: Relations, engine: Engine) -> str:
    """The query that a definition stands for; a function is called, with *table* if it takes an argument."""
    found = _called(definition, table) if callable(definition) and not is_frame(definition) else definition
    if isinstance(found, str):
        return _as_written(found)
    if not is_frame(found):
        raise SqlError(
            "NOT_A_DEFINITION",
            f"a view is defined by SQL text or a DataFrame, or by a function that returns one; "
            f"this is {'nothing' if found is None else 'of type ' + type(found).__name__}.",
        )
    text = query_of(plan_of(found), relations)
    _check_same(columns_of_frame(found), engine.analyse(replaced(parse_select(text), relations, empty_relation)))
    return text


def _called(function: Callable[..., Any], table: Table) -> Any:
    wanted = [
        parameter
        for parameter in inspect.signature(function).parameters.values()
        if parameter.default is parameter.empty
        and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]
    if len(wanted) > 1:
        raise SqlError(
            "NOT_A_DEFINITION",
            f"a function that defines a view takes no argument, or one: what gives it tables by name; "
            f"{getattr(function, '__name__', 'this one')} takes {len(wanted)}.",
        )
    return function(table) if wanted else function()


def _as_written(text: str) -> str:
    """One query, without the semicolon behind it."""
    return parse_select(text).text.strip()


def _check_same(frame: Schema, query: Schema) -> None:
    """Spark must give the query the very columns of the DataFrame; else the text means something else."""
    own = [(column.name, column.type) for column in frame]
    made = [(column.name, column.type) for column in query]
    if own != made:
        pairs = [f"{a[0]} {a[1]} became {b[0]} {b[1]}" for a, b in zip(own, made, strict=False) if a != b]
        what = pairs[0] if pairs else f"{len(own)} columns became {len(made)}"
        raise SqlError(
            "DATAFRAME_DIFFERS",
            f"the SQL that was made of the DataFrame has other columns: {what}; "
            "give every computed column a name with alias, or write the view as SQL.",
        )
