"""A view's definition: SELECT to blocks of the algebra, or the reason why the view is refreshed in full.

What lies outside today's coverage is not an error: the query is then run as written, and the view says why.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from strandline.algebra.block import Block
from strandline.algebra.plan import scans
from strandline.algebra.prune import pruned
from strandline.algebra.schema import Schema
from strandline.errors import Origin, SqlError
from strandline.reasons import Reason
from strandline.sql.coverage import Uncovered, check_comparable
from strandline.sql.references import references, replaced
from strandline.sql.relations import Analyser, Relations, empty_relation, empty_select
from strandline.sql.render import SIGN, render
from strandline.sql.select import SelectCompiler
from strandline.sql.spans import error_at, position
from strandline.sql.statements import Query


@dataclass(frozen=True)
class Compiled:
    """A definition: its visible columns, what it reads, and its blocks, the view's own last.

    Without blocks the view can only be refreshed in full, for *reason*. *loose* are the columns whose values two
    correct computations may give differently, and *notes* say why.
    """

    columns: Schema
    inputs: tuple[str, ...]
    blocks: tuple[Block, ...]
    reason: Reason | None = None
    loose: tuple[str, ...] = ()
    notes: tuple[Reason, ...] = ()


def compile_view(
    name: str, query: Query, relations: Relations, analyse: Analyser, *, exact_floats: bool = False
) -> Compiled:
    """The definition of view *name*. Raises SqlError for a query that Spark itself would not accept."""
    read = references(query, relations)
    compiler = SelectCompiler(query, read, analyse, exact_floats=exact_floats)
    columns = _analysed(query, relations, analyse, compiler)
    _check_columns(query, columns)
    inputs = tuple(dict.fromkeys(reference.relation.name for reference in read))
    try:
        whole, loose = compiler.blocks(name, columns)
        _check_same_schema(whole, columns, analyse)
        blocks = tuple(pruned(block) for block in whole)
        _check_sign(blocks)
    except Uncovered as uncovered:
        return Compiled(columns, inputs, (), uncovered.reason)
    except SqlError as error:
        # Spark accepts the query: what is not found is a column of a query further out.
        code = "SUBQUERY" if error.code == "UNKNOWN_COLUMN" else "CLAUSE"
        return Compiled(columns, inputs, (), Reason(code, error.message.splitlines()[0]))
    except RecursionError:
        return Compiled(columns, inputs, (), Reason("CLAUSE", "the query is nested too deeply"))
    notes = tuple(Reason("ORDER_DEPENDENT", text) for text in compiler.order_dependence)
    return Compiled(columns, inputs, blocks, loose=loose, notes=notes)


def _analysed(query: Query, relations: Relations, analyse: Analyser, compiler: SelectCompiler) -> Schema:
    """The schema of the query as written. Our own resolution speaks first: it knows file, line and column."""
    try:
        return analyse(replaced(query, relations, empty_relation))
    except SqlError as error:
        compiler.check_names()
        origin = Origin(query.file, *position(query.text, query.start))
        raise SqlError(error.code, error.message, origin=origin) from error


_UNSTORABLE = ("void", "interval", "time")


def _check_columns(query: Query, columns: Schema) -> None:
    seen: set[str] = set()
    for column in columns:
        if column.name.lower() in seen:
            raise _about_query(
                query,
                "DUPLICATE_COLUMN",
                f"the view would have two columns named {column.name}; give one of them another name with AS.",
            )
        seen.add(column.name.lower())
        if column.type.startswith(_UNSTORABLE) and not column.type.startswith("timestamp"):
            raise _about_query(
                query,
                "UNSUPPORTED_TYPE",
                f"column {column.name} has type {column.type}, which a Delta table cannot hold; "
                "cast it, for example to string, bigint or timestamp.",
            )


def _about_query(query: Query, code: str, message: str) -> SqlError:
    return error_at(code, message, query.text, (query.start, query.start + 6), query.file)


def _check_same_schema(blocks: Sequence[Block], columns: Schema, analyse: Analyser) -> None:
    """Spark must give the compiled form the schema of the query as written; else the compiled form is not used."""
    own = blocks[-1]
    for column in own.stored:
        check_comparable(column)
    try:
        found = analyse(render(own.reading(own.contents), lambda scan: empty_select(scan.fields)))
    except SqlError as error:
        raise Uncovered("COMPILED_FORM_DIFFERS", error.message.splitlines()[0]) from error
    if len(found) != len(columns):
        raise Uncovered("COMPILED_FORM_DIFFERS", "the number of columns differs")
    for was, now in zip(columns, found, strict=True):
        if (was.name, was.type) != (now.name, now.type):
            raise Uncovered(
                "COMPILED_FORM_DIFFERS", f"column {was.name} is {was.type}, but {now.name} {now.type} when compiled"
            )


def _check_sign(blocks: Sequence[Block]) -> None:
    """Changed rows have their sign beside their columns, so none of these may be called so."""
    for field in (field for block in blocks for scan in scans(block.body) for field in scan.fields):
        if field.name.lower() == SIGN:
            raise Uncovered("CLAUSE", f"an input column called {field.name} is not maintained incrementally")
