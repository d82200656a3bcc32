"""The examples of the pages about operators: strategies, reasons, outputs and rows are those that Spark gives."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from strandline import Warehouse
from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, delta_of
from strandline.algebra.schema import Column, Schema, names
from strandline.engine.session import Engine
from strandline.propagate.applying import _AFFECTED
from strandline.sql import ddl
from strandline.sql.compile import Compiled, compile_view
from strandline.sql.names import literal, quoted
from strandline.sql.references import replaced
from strandline.sql.relations import Relation
from strandline.sql.render import SIGN
from strandline.sql.statements import CreateView, Query
from tests.docs.worked_examples import PAGES, Example, Table, examples, source_columns
from tests.sql.before_and_after import View, part_of, show_change
from tests.sql.shop import Known

EXAMPLES = [example for page in PAGES for example in examples(page)]
COLUMNS = source_columns()
RELATIONS = Known([Relation(name, columns) for name, columns in COLUMNS.items()])


def test_every_page_has_an_example_with_its_explanation() -> None:
    assert [page.stem for page in PAGES if not examples(page)] == []
    assert [str(example) for example in EXAMPLES if not (example.explain and example.strategy)] == []


@pytest.fixture(scope="module")
def lake(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    """A warehouse over the tables of the examples, which are empty."""
    folder = tmp_path_factory.mktemp("operators")
    for name, columns in COLUMNS.items():
        listed = ", ".join(f"{quoted(column.name)} {column.type}" for column in columns)
        path = folder / "lake" / name.removeprefix("lake.")
        engine.run(f"CREATE TABLE delta.{quoted(str(path))} ({listed}) USING delta")
    with Warehouse.open(folder / "project", spark=engine.spark) as warehouse:
        warehouse.add_source("lake", kind="delta", path=str(folder / "lake"))
        yield warehouse


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_explain_prints_what_the_page_shows(lake: Warehouse, example: Example) -> None:
    printed = lake.sql(f"EXPLAIN {example.sql}")
    assert re.fullmatch(pattern(example.explain), str(printed)), f"EXPLAIN prints:\n{printed}"


def pattern(shown: str) -> str:
    """What an output must match: its text, with anything inside a line for ``...``."""
    return ".*".join(re.escape(part) for part in shown.strip().split("..."))


@pytest.mark.spark
@pytest.mark.parametrize("example", EXAMPLES, ids=str)
def test_a_refresh_reports_what_the_page_says(engine: Engine, example: Example) -> None:
    assert reported(compiled(engine, example)) == (example.strategy, example.reason)


def reported(view: Compiled) -> tuple[str, str]:
    """Strategy and reason of a refresh after insertions and deletions in all inputs."""
    if view.reason is not None:
        return "full", view.reason.code
    delta = delta_of(view.blocks[-1], view.blocks[-1].inputs, insert_only=False)
    assert delta is not None
    if delta.strategy == "affected":
        return "affected", _AFFECTED.get(delta.operators[-1], "KEYS_AFFECTED")
    return delta.strategy, "CHANGES"


@pytest.mark.spark
@pytest.mark.parametrize("example", [example for example in EXAMPLES if example.shown], ids=str)
def test_rows_change_as_the_page_shows(engine: Engine, example: Example) -> None:
    view, query = compiled(engine, example), created(example).query
    for name, table in example.sources.items():
        rows = [[values(COLUMNS[name], table, row) for row in table.rows(mark)] for mark in ("", "-", "+")]
        show_change(engine, name, COLUMNS[name], *rows)
    for title, table in example.shown.items():
        before, delta = changed(engine, view, query, title)
        assert (before, delta) == (table.before, table.delta), f"{title}: {before}, then {delta}"


def created(example: Example) -> CreateView:
    statement = ddl.parse(example.sql)
    assert isinstance(statement, CreateView)
    return statement


def compiled(engine: Engine, example: Example) -> Compiled:
    statement = created(example)
    return compile_view(statement.name, statement.query, RELATIONS, engine.analyse)


def values(columns: Schema, table: Table, row: tuple[str, ...]) -> str:
    """A row of a source table as SQL; columns that the page does not show are NULL."""
    shown = dict(zip(table.columns, row, strict=True))
    return f"({', '.join(value(column, shown.get(column.name, 'NULL')) for column in columns)})"


def value(column: Column, text: str) -> str:
    if text == "NULL":
        return f"CAST(NULL AS {column.type})"
    if column.type.startswith("array<"):
        items = [item.strip() for item in text.strip("[]").split(",") if item.strip()]
        return f"CAST(array({', '.join(literal(item) for item in items)}) AS {column.type})"
    return f"CAST({literal(text)} AS {column.type})"


def changed(engine: Engine, view: Compiled, query: Query, title: str) -> tuple[SignedBag, SignedBag]:
    """What a table of the page shows, before the change; and the change of it.

    Of a view the query as written says both, and the delta of its compiled form must say the same.
    """
    over = View(view.blocks)
    if title.endswith(", stored"):
        block = shown_block(view, title)
        before, after = (rows(engine, over.stored(block, state), block.stored, view) for state in ("pre", "post"))
        delta = rows(engine, over.stored_delta(block), block.stored, view)
    else:
        before, after = (rows(engine, written(query, state), view.columns, view) for state in ("pre", "post"))
        delta = rows(engine, over.delta(), view.columns, view)
    assert after - before == delta
    return before, delta


def written(query: Query, state: str) -> str:
    """The query as written, over the tables before or after the change."""
    return replaced(query, RELATIONS, lambda relation: part_of(relation.name, state))


def shown_block(view: Compiled, title: str) -> Block:
    """The view's own block, or the hidden one of that number."""
    if title.startswith("`"):
        return view.blocks[-1]
    number = re.search(r"\d", title)
    return view.blocks[int(number[0]) - 1 if number else 0]


def rows(engine: Engine, sql: str, columns: Schema, view: Compiled) -> SignedBag:
    """Rows as text, under their signs if they have any; lists that may come in any order are sorted."""
    listed = [
        f"array_sort({quoted(c.name)})" if c.name in view.loose and c.type.startswith("array<") else quoted(c.name)
        for c in columns
    ]
    shown = ", ".join(f"coalesce(CAST({text} AS STRING), 'NULL')" for text in listed)
    signed = SIGN in names(engine.analyse(f"SELECT * FROM ({sql})"))
    found = engine.rows(f"SELECT {shown}, {SIGN if signed else '1'} FROM ({sql})")
    return SignedBag((tuple(row[:-1]), row[-1]) for row in found)
