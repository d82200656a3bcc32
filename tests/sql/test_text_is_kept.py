"""What the user wrote reaches Spark as it was written: only the columns in it are replaced."""

from __future__ import annotations

import pytest

from strandline.algebra.schema import Column, Schema
from strandline.sql.compile import compile_view
from strandline.sql.ddl import parse_select
from strandline.sql.references import replaced
from strandline.sql.render import render
from tests.sql.shop import SHOP

EXPRESSIONS = [
    # Functions that a printer for Spark's dialect is known to change.
    "to_char({amount}, '999D99')",
    "to_char({day}, 'yyyy-DD')",
    "parse_json({note})",
    "to_date({note}, 'dd/MM/yyyy')",
    "to_timestamp({note}, 'y')",
    "date_format({day}, 'YYYY')",
    "regexp_extract({note}, 'a(b)', 1)",
    "log2({ratio})",
    "nvl({note}, 'x')",
    "array_size(array({note}))",
    "mod({id}, 2)",
    "named_struct('a', {id}).a",
    "TO_CHAR ( {amount} ,'0' )",
    # Literals.
    "'it\\'s'",
    "'it''s'",
    "'a\\\\b\\n\\u00e9\\t%\\_'",
    "\"double 'quotes'\"",
    "r'raw\\d+'",
    "'one' 'two'",
    "X'1F'",
    "'${not.a.variable}'",
    "'-- no comment' || {note} || '/* nor this */'",
    "'ünïcode \U0001f600' || {note}",
    "1.0BD + 1.50 + 1e3 + 1L + 2S + 3Y + 4.0D + 5F",
    "DATE '2020-02-29'",
    "TIMESTAMP '2020-02-29 12:00:00.123456+02:00'",
    "TIMESTAMP_NTZ '2020-02-29 12:00:00'",
    "{day} + INTERVAL '1-2' YEAR TO MONTH",
    "{day} - INTERVAL 3 DAYS",
    # Casts, operators and forms of their own.
    "CAST({note} AS DECIMAL(10, 2))",
    "TRY_CAST({note} AS INT)",
    "{note}::double",
    "{amount} DIV 2 % 3 - -1",
    "{note} RLIKE r'\\d' AND {note} LIKE 'a\\_%' ESCAPE '!' OR NOT {note} <=> NULL",
    "{day} BETWEEN DATE '2020-01-01' AND DATE '2021-01-01'",
    "{note} IN ('a', 'b')",
    "CASE {customer} WHEN 1 THEN 'x' ELSE {note} END",
    "transform(array({id}), x -> x + {id})",
    "substring({note} FROM 2 FOR 3)",
    "extract(YEAR FROM {day})",
    "{note} COLLATE UTF8_LCASE",
    "if({amount}>1,'y' ,  'n')",
    # Comments and line breaks inside.
    "{id} /* the id */ + 1",
    "{id} -- the id\n + 1",
    "coalesce(\n\t{note},\n\t'-'\n)",
]


def one_column(sql: str) -> Schema:
    """An analyser for queries with one column."""
    return (Column("x", "string"),)


def rendered(sql: str) -> str:
    compiled = compile_view("v", parse_select(sql), SHOP, one_column)
    assert compiled.reason is None
    (block,) = compiled.blocks
    return render(block.reading(block.contents), lambda scan: "SELECT 1")


COLUMNS = ("id", "customer", "amount", "day", "note", "ratio")


def with_columns(text: str, place: str = "{}") -> str:
    """*text* with the names of its columns, written as *place* says."""
    for name in COLUMNS:
        text = text.replace(f"{{{name}}}", place.format(name))
    return text


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_in_the_select_list(text: str) -> None:
    shown = rendered(f"SELECT {with_columns(text)} AS x FROM shop.orders")
    assert shown.startswith(f"SELECT {with_columns(text, '`orders_1`.`{}`')} AS `x`\nFROM ")


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_in_a_condition(text: str) -> None:
    shown = rendered(f"SELECT id AS x FROM shop.orders WHERE {with_columns(text)} IS NULL")
    assert shown.endswith(f"\nWHERE ({with_columns(text, '`orders_1`.`{}`')} IS NULL)")


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_in_an_aggregate_and_in_having(text: str) -> None:
    bare = with_columns(text)
    shown = rendered(f"SELECT max({bare}) AS x FROM shop.orders HAVING max({bare}) > 'a' -- the end")
    assert f"CAST(max({with_columns(text, '`orders_2`.`{}`')}) AS string) AS `__max_1`" in shown
    assert shown.endswith("\nWHERE (`t_1`.`__max_1` > 'a')")


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_in_a_group_key(text: str) -> None:
    shown = rendered(f"SELECT concat(1, {with_columns(text)}) AS x FROM shop.orders GROUP BY {with_columns(text)}")
    key = with_columns(text, "`orders_2`.`{}`")
    assert f"SELECT {key} AS `__key_1`, CAST(count(*) AS bigint) AS `__count`\n" in shown
    assert f"\nGROUP BY {key})" in shown


@pytest.mark.parametrize("text", EXPRESSIONS)
def test_a_full_refresh_runs_the_text(text: str) -> None:
    sql = f"SELECT {with_columns(text)} AS x FROM shop.orders"
    shown = replaced(parse_select(sql), SHOP, lambda relation: f"<{relation.name}>")
    assert shown == f"SELECT {with_columns(text)} AS x FROM <shop.orders> AS `orders`"
