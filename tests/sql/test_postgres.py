"""A condition that is translated has the result in PostgreSQL that it has in Spark; what is not certain is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import combinations_with_replacement, product
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from psycopg import Connection

from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text, Value
from strandline.demo.server import PostgresServer
from strandline.engine.session import Engine
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.connect import set_session
from strandline.sources.postgres.joins import AskedTable
from strandline.sources.postgres.source import PostgresSource
from strandline.sql.names import quoted
from strandline.sql.postgres import Comparand, comparand, text_literal, translated
from strandline.sql.render import scalar_sql
from tests.conftest import new_database

TYPES: dict[str, Sequence[object]] = {
    "int2": [0, 1, -1, 7, 32767],
    "int4": [0, 1, -1, 7, 2**31 - 1],
    "int8": [0, 1, -1, 7, 2**63 - 1],
    "oid": [0, 1, 7, 2**32 - 1],
    "numeric(12,2)": ["0", "1.00", "-1", "7.5", "9999999999.99"],
    "numeric": ["0", "1", "-1.000000000000000001", "7.5", "99999999999999999999.999999999999999999"],
    "numeric(38,0)": ["0", "1", "-1", "7", "9" * 38],
    "numeric(2,5)": ["0", "0.00099", "-0.00001"],
    "float4": ["0", "-0", "NaN", "Infinity", "0.1"],
    "float8": ["0", "-0", "NaN", "-Infinity", "0.1", "7.5"],
    "text": ["", "a", "A", "a ", "ä", "😀"],
    "varchar(9)": ["", "a", "B", "a ", "ab", "sad"],
    "char(3)": ["", "a", "A", "ab", "abc", "1"],
    "name": ["", "a", "A", "a ", "ä"],
    '"char"': ["", "a", "A"],
    "uuid": ["00000000-0000-0000-0000-000000000001", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"],
    "jsonb": ['{"a": 1.0}', "1.0", "1", '"a"', "null"],
    "mood": ["sad", "ok", "a"],
    "inet": ["1.2.3.4", "1.2.3.4/32", "10.0.0.0/8", "9.0.0.1"],
    "time": ["24:00", "00:00", "09:00:00.5"],
    "interval": ["1 day", "24 hours", "1 mon", "30 days"],
    "bool": [True, False],
    "date": ["2024-02-29", "0001-01-01", "9999-12-31", "0044-03-15 BC"],
    "timestamp": ["2024-02-29 00:00:00", "2024-02-29 00:00:00.000001", "0044-03-15 00:00:00 BC"],
    "timestamptz": ["2024-02-29 00:00:00+00", "2024-02-29 05:45:00+05:45", "2024-02-29 00:00:00.000001+00"],
    "bytea": [b"", b"\x00", b"\x7f", b"\xff", b"a"],
    "int4[]": ["{}", "{1}", "{NULL}"],
}
NAMES = {pg: f"c{number}" for number, pg in enumerate(TYPES)}
CONSTANTS: list[Value] = [
    0,
    1,
    -1,
    7,
    2**40,
    10**30,
    Decimal("0.1"),
    Decimal("7.50"),
    Decimal("1E-20"),
    0.1,
    True,
    "",
    "a",
    "A",
    "a  ",
]
CONSTANTS += ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "2024-02-29", "😀", "1.0"]
CONSTANTS += ["sad", "it's", "\\", None]


@pytest.fixture(scope="module")
def held(server: PostgresServer) -> Iterator[tuple[Connection[Any], AskedTable]]:
    """A table with a column for each type, and a row for each value."""
    with new_database(server) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(set_session().encode())
        connection.execute("CREATE TYPE mood AS ENUM ('sad', 'ok', 'a')")
        columns = ", ".join(f"{NAMES[pg]} {pg}" for pg in TYPES)
        connection.execute(f"CREATE TABLE held ({columns})".encode())
        placed = ", ".join(["%s"] * len(TYPES))
        longest = max(map(len, TYPES.values()))
        rows = [[v[n] if n < len(v) else None for v in TYPES.values()] for n in range(longest + 1)]
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO held VALUES ({placed})".encode(), rows)
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HELD_DSN", dsn)
            source = PostgresSource("src", Address(dsn_env="HELD_DSN"), owner="test")
            yield connection, source._asked_table("held")
            source.close()


def conditions() -> list[Scalar]:
    """Comparisons of all columns with each other and with constants; negated, false and NULL are told apart."""
    found: list[Scalar] = []
    for one, other in combinations_with_replacement(NAMES.values(), 2):
        same = Call("=", (Col(f"x.{one}"), Col(f"y.{other}")))
        less = Call("<", (Col(f"y.{other}"), Col(f"x.{one}")))
        found += [same, Call("not", (same,)), less]
    for name, constant in product(NAMES.values(), CONSTANTS):
        found += [Call(op, (Col(f"x.{name}"), Lit(constant))) for op in ("=", "<")]
    for name in NAMES.values():
        null = Call("is null", (Col(f"x.{name}"),))
        both = Call("<=>", (Col(f"x.{name}"), Col(f"y.{name}")))
        found += [null, Call("or", (Call("not", (null,)), both)), both]
    return found


@pytest.mark.postgres
@pytest.mark.spark
def test_what_is_translated_is_what_spark_computes(
    held: tuple[Connection[Any], AskedTable], engine: Engine, tmp_path: Path
) -> None:
    connection, table = held
    there: dict[str, Comparand] = {}
    for alias in ("x", "y"):
        there |= {f"{alias}.{name}": column.comparand(alias, utf8=True) for name, column in table.columns.items()}
    sent: list[tuple[Scalar, str]] = []
    for condition in conditions():
        parts, whole = translated(condition, there)
        if whole:
            sent.append((condition, " AND ".join(part.sql for part in parts)))
    assert len(sent) > 600

    read = ", ".join(column.type.read(column.column.quoted) for column in table.columns.values())
    texts = connection.execute(f"SELECT {read} FROM held".encode()).fetchall()
    arrays = [pa.array([row[number] for row in texts], pa.string()) for number in range(len(NAMES))]
    file = tmp_path / "texts.parquet"
    pq.write_table(pa.table([pa.array(range(len(texts))), *arrays], names=["id", *NAMES.values()]), file)
    values = ", ".join(f"{column.type.parse(name)} AS {name}" for name, column in table.columns.items())
    here = {f"{alias}.{name}": f"{alias}.{quoted(name)}" for alias in ("x", "y") for name in NAMES.values()}

    connection.execute("ALTER TABLE held ADD COLUMN IF NOT EXISTS id serial")
    for start in range(0, len(sent), 400):
        some = sent[start : start + 400]
        shown = ", ".join(f"({text}) IS TRUE" for _, text in some)
        original = connection.execute(f"SELECT {shown} FROM held x, held y ORDER BY x.id, y.id".encode()).fetchall()
        items = ", ".join(f"coalesce({scalar_sql(condition, here)}, false)" for condition, _ in some)
        frame = f"(SELECT id, {values} FROM parquet.`{file}`)"
        with engine.step("tests", "conditions", small=True):
            ours = engine.rows(f"SELECT {items} FROM {frame} x CROSS JOIN {frame} y ORDER BY x.id, y.id")
        for number, (condition, text) in enumerate(some):
            assert [row[number] for row in ours] == [row[number] for row in original], (condition, text)


def one(condition: Scalar, **columns: Comparand) -> str | None:
    """The condition in PostgreSQL, if the whole of it can be translated."""
    parts, whole = translated(condition, columns)
    return " AND ".join(part.sql for part in parts) if whole else None


NUMBER, WORD = comparand("t.a", "int"), comparand("t.b", "string")


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Call("=", (Col("a"), Lit(5))), "t.a = (5)"),
        (Call("<=>", (Col("a"), Col("a"))), "(t.a IS NOT DISTINCT FROM t.a)"),
        (Call("<>", (Col("b"), Lit("it's"))), "(t.b <> 'it''s'::text)"),
        (Call("<", (Col("b"), Lit("\\"))), '(t.b COLLATE "C" <  E\'\\\\\'::text COLLATE "C")'),
        (Call("not", (Call("is null", (Col("a"),)),)), "(NOT (t.a IS NULL))"),
        (Text(("my words",), Call("=", (Col("a"), Lit(5)))), "t.a = (5)"),
        (Text(("CAST(", Col("a"), " AS STRING) = '5'"), Call("=", (Col("a"), Lit(5)))), None),
        (Text(("length(", Col("b"), ") = 1")), None),
        (Call("=", (Col("a"), Lit("5"))), None),
        (Call("<", (Col("a"), Lit(2**63))), None),
        (Call("=", (Col("b"), Lit(5))), None),
        (Call("=", (Col("b"), Lit("\0"))), None),
        (Call("=", (Col("a"), Lit(True))), None),
        (Call("=", (Col("a"), Lit(None))), None),
        (Call("=", (Col("a"), Call("+", (Col("a"), Lit(1))))), None),
        (Call("=", (Col("elsewhere"), Lit(1))), None),
        (Lit(True), None),
    ],
)
def test_what_is_translated(condition: Scalar, expected: str | None) -> None:
    assert one(condition, a=NUMBER, b=WORD) == expected


def test_a_part_of_a_conjunction_is_translated_alone() -> None:
    five, other = Call("=", (Col("a"), Lit(5))), Text(("length(", Col("b"), ") = 1"))
    parts, whole = translated(Text(("...",), Call("and", (five, other))), {"a": NUMBER, "b": WORD})
    assert ([part.sql for part in parts], whole) == (["t.a = (5)"], False)
    assert translated(Call("or", (five, other)), {"a": NUMBER, "b": WORD}) == ([], False)


def test_text_is_compared_by_bytes_where_a_collation_would_not() -> None:
    german, swedish = (Comparand(f"t.{n}", "text", collation=n) for n in (12345, 12346))
    blind = Comparand("t.blind", "text", collation=None)
    same = Call("=", (Col("x"), Col("y")))
    assert one(same, x=german, y=WORD) == "t.12345 = t.b"
    assert one(same, x=german, y=german) == "t.12345 = t.12345"
    assert one(same, x=german, y=swedish) == 't.12345 COLLATE "C" = t.12346 COLLATE "C"'
    assert one(same, x=blind, y=WORD) == 't.blind COLLATE "C" = t.b COLLATE "C"'


def test_numbers_that_spark_would_round_to_compare_are_left() -> None:
    wide, fine = comparand("w", "decimal(38,0)"), comparand("f", "decimal(38,18)")
    same = Call("=", (Col("x"), Col("y")))
    assert one(same, x=wide, y=fine) is None
    assert one(same, x=fine, y=comparand("b", "bigint")) == "f = b"
    assert one(same, x=comparand("d", "double"), y=NUMBER) is None


@pytest.mark.parametrize("special", ["fail", "null"])
def test_values_that_spark_cannot_hold(special: Any) -> None:
    odd = Comparand("n", "number", (6, 2), special=special)
    (same,), whole = translated(Call("=", (Col("x"), Lit(5))), {"x": odd})
    assert (whole, same.checked) == (True, frozenset())
    for condition in (
        Call(">", (Col("x"), Lit(5))),
        Call("is null", (Col("x"),)),
        Call("=", (Col("x"), Col("x"))),
        Call("not", (Call("=", (Col("x"), Lit(5))),)),
    ):
        parts, whole = translated(condition, {"x": odd})
        assert whole == (special == "fail")
        assert [part.checked for part in parts] == [frozenset({"x"})] * whole


@pytest.mark.postgres
@pytest.mark.parametrize("setting", ["on", "off"])
def test_a_literal_is_read_as_it_is_meant(held: tuple[Connection[Any], AskedTable], setting: str) -> None:
    connection, _ = held
    for text in ["", "it's", "\\", "\\'", "\\x41", "%s", "$1", "ä😀\n"]:
        with connection.transaction():
            connection.execute(f"SET LOCAL standard_conforming_strings = {setting}".encode())
            row = connection.execute(f"SELECT {text_literal(text)}::text".encode()).fetchone()
        assert row == (text,)
