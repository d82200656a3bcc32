"""What PostgreSQL holds, Spark holds: the same text from the log and from a SELECT, and the same values of it."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import Connection

from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.postgres.arrays import as_json
from strandline.sources.postgres.connect import set_session
from strandline.sources.postgres.introspect import named_tables
from strandline.sources.postgres.pgoutput import Insert, decode
from strandline.sources.postgres.tables import PgColumn, PgType
from strandline.sources.postgres.types import ColumnType, Special, Unsupported, mapping
from strandline.sql.names import literal

pytestmark = pytest.mark.postgres

LONG = "äöü€😀 \"quoted\" back\\slash 'single' " * 25_000
NASTY = [
    "",
    " ",
    "NULL",
    "null",
    "a,b",
    "{}",
    "{a}",
    '"',
    "\\",
    "\\x41",
    "\\N",
    "it's",
    "${env:HOME}",
    "%s",
    "naïve 😀",
]
NASTY += ["line\nfeed", "tab\t", "\x01\x1f\x7f", "\u2028\u2029\ufeff", " padded ", "e\u0301", "[["]
NASTY += ["[1:2]={a}", "\r\n"]

DDL = """
CREATE TYPE mood AS ENUM ('sad', 'it''s, "fine"', 'NULL', '');
CREATE DOMAIN price AS numeric(12,2) CHECK (value > -1000000);
CREATE DOMAIN dear_price AS price;
CREATE DOMAIN flag AS bool;
CREATE DOMAIN prices AS price[];
CREATE DOMAIN code AS char(4);
CREATE TYPE pair AS (a int, b text);
"""


@dataclass(frozen=True)
class Case:
    """Values of a type in PostgreSQL, as literals, and the type they have in Spark.

    They are compared with what psycopg reads; after a cast to *read_as* where it does not know the type. Strings are
    compared with the text that PostgreSQL prints.
    """

    pg: str
    spark: str
    values: Sequence[object]
    read_as: str | None = None


MOMENTS = ["2024-02-29 23:59:59.999999", "1970-01-01 00:00:00", "0001-01-02 00:00:00", "9999-12-30 23:59:59.999999"]
MOMENTS += ["1582-10-10 12:00:00.1", "1883-11-18 12:03:58", "2024-03-31 02:30:00", "1969-12-31 23:59:59.999999"]

CASES = [
    Case("int2", "smallint", [0, -32768, 32767]),
    Case("int4", "int", [0, -(2**31), 2**31 - 1]),
    Case("int8", "bigint", [0, -(2**63), 2**63 - 1]),
    Case("oid", "bigint", [0, 2**32 - 1]),
    Case("numeric(12,2)", "decimal(12,2)", ["0", "-0.00", "9999999999.99", "-9999999999.99", "0.01", "1e3"]),
    Case("numeric(38,0)", "decimal(38,0)", ["9" * 38, "-" + "9" * 38, "0"]),
    Case("numeric(38,38)", "decimal(38,38)", ["0." + "9" * 38, "-0." + "0" * 37 + "1", "0"]),
    Case("numeric(3,-2)", "decimal(5,0)", ["99900", "-12345", "49", "0"]),
    Case("numeric(2,5)", "decimal(5,5)", ["0.00099", "-0.00001", "0"]),
    Case(
        "numeric",
        "decimal(38,18)",
        ["0", "1.0", "1.00", "9" * 20 + "." + "9" * 18, "-0." + "0" * 17 + "1", "1." + "0" * 500, "1e19", "-1e-18"],
    ),
    Case("float4", "float", ["0", "-0", "NaN", "Infinity", "-Infinity", "1e-45", "3.4028235e38", "0.1", "16777217"]),
    Case(
        "float8",
        "double",
        ["0", "-0", "NaN", "Infinity", "-Infinity", "5e-324", "1.7976931348623157e308", "0.1", "1e20", "1e-7"],
    ),
    Case("text", "string", [*NASTY, LONG]),
    Case("varchar(9)", "string", ["", "123456789", "a  "]),
    Case("bpchar(4)", "string", ["", "a", "é😀", "abcd"]),
    Case("name", "string", ["", "a" * 63]),
    Case('"char"', "string", ["", "a", "\\303"]),
    Case("bool", "boolean", [True, False]),
    Case("date", "date", ["0001-01-01", "9999-12-31", "1582-10-10", "1970-01-01", "2024-02-29"]),
    Case("timestamp", "timestamp_ntz", MOMENTS),
    Case("timestamp(0)", "timestamp_ntz", MOMENTS),
    Case("timestamptz", "timestamp", [f"{moment}+00" for moment in MOMENTS] + ["2024-06-01 00:00:00 Asia/Kathmandu"]),
    Case("time", "string", ["00:00", "24:00:00", "23:59:59.999999"]),
    Case("timetz", "string", ["00:00+14", "24:00:00-15:59:59"]),
    Case("interval", "string", ["1 year 2 mons -3 days 04:05:06.789", "0", "-1 mon 1 day", "infinity"]),
    Case("json", "string", ['{"a": [1,  2]}', "null", '"x"', "1.10", "{}"]),
    Case("jsonb", "string", ['{"b": 1, "a": 1.10, "a": "😀"}', "null", "[]"]),
    Case("uuid", "string", ["A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"]),
    Case("inet", "string", ["1.2.3.4", "1.2.3.4/8", "::1", "::ffff:1.2.3.4/128"]),
    Case("cidr", "string", ["10.0.0.0/8", "1.2.3.4", "2001:db8::/32"]),
    Case("macaddr", "string", ["08-00-2B-01-02-03"]),
    Case("macaddr8", "string", ["08-00-2B-01-02-03-04-05"]),
    Case("bit(3)", "string", ["101", "000"]),
    Case("varbit", "string", ["", "1", "10101"]),
    Case("bytea", "binary", [b"", b"\x00\xff", bytes(range(256)) * 4000]),
    Case("mood", "string", ["sad", 'it\'s, "fine"', "NULL", ""]),
    Case("price", "decimal(12,2)", ["1.5"]),
    Case("dear_price", "decimal(12,2)", ["-1.555"]),
    Case("flag", "boolean", [True]),
    Case("code", "string", ["ab"]),
    Case("int4[]", "array<int>", ["{}", "{1,NULL,-3}", "[2:3]={1,2}", "{2147483647}"]),
    Case("numeric(12,2)[]", "array<decimal(12,2)>", ["{1.5,-0.001,NULL}"]),
    Case("float8[]", "array<double>", ["{NaN,-0,Infinity,1e20}"]),
    Case("text[]", "array<string>", ["{}", [*NASTY, None], [None], [""], ["a"], [LONG]]),
    Case("bool[]", "array<boolean>", ["{t,f,NULL}", "{}"]),
    Case("bpchar(3)[]", "array<string>", ["{a,NULL,abc}"]),
    Case("date[]", "array<date>", ["{2024-02-29,NULL}"]),
    Case("timestamp[]", "array<timestamp_ntz>", [[datetime(2024, 1, 2, 3, 4, 5, 6), None]]),
    Case("timestamptz[]", "array<timestamp>", [[datetime(2024, 1, 2, 3, 4, 5, 6, UTC), None]]),
    Case("bytea[]", "array<binary>", [[b"", b'\x00\\"', None]]),
    Case("inet[]", "array<string>", ["{1.2.3.4/24,::1/64}"], "text[]"),
    Case("jsonb[]", "array<string>", [['{"a": "\\"x\\""}', "null", None]], "text[]"),
    Case("mood[]", "array<string>", [["sad", 'it\'s, "fine"', "NULL", "", None]], "text[]"),
    Case("prices", "array<decimal(12,2)>", ["{1,2.5,NULL}"], "numeric[]"),
    Case("flag[]", "array<boolean>", ["{t,NULL}"], "bool[]"),
]


@pytest.fixture(scope="module")
def connection(server: PostgresServer) -> Iterator[Connection[Any]]:
    """A database with some types of its own, whose changes a slot keeps."""
    with psycopg.connect(server.dsn_for(SUPERUSER, server.password), autocommit=True) as maker:
        maker.execute("CREATE DATABASE types")
    with psycopg.connect(server.dsn_for(SUPERUSER, server.password, "types"), autocommit=True) as connection:
        connection.execute(set_session().encode())
        connection.execute(DDL.encode())
        connection.execute("CREATE PUBLICATION everything FOR ALL TABLES")
        connection.execute("SELECT pg_create_logical_replication_slot('types', 'pgoutput')")
        yield connection
        connection.execute("SELECT pg_drop_replication_slot('types')")


def logged(connection: Connection[Any]) -> list[tuple[Any, ...]]:
    """The rows that were inserted since this was last asked, as the log has them."""
    data = connection.execute(
        "SELECT data FROM pg_logical_slot_get_binary_changes('types', NULL, NULL, "
        "'proto_version', '1', 'publication_names', 'everything')"
    ).fetchall()
    return [message.new for (one,) in data if isinstance(message := decode(one), Insert)]


def filled(connection: Connection[Any], cases: Sequence[Case]) -> dict[str, PgColumn]:
    """A table with a column for each case, c0 and so on, and its values in rows; its columns."""
    connection.execute("DROP TABLE IF EXISTS held")
    columns = ", ".join(f"c{number} {case.pg}" for number, case in enumerate(cases))
    connection.execute(f"CREATE TABLE held (id int PRIMARY KEY, {columns})".encode())
    logged(connection)
    placed = ", ".join(["%s"] * (len(cases) + 1))
    rows = enumerate(zip_longest(*(case.values for case in cases)))
    with connection.transaction(), connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO held VALUES ({placed})".encode(), [(number, *row) for number, row in rows])
    return {
        column.name: column
        for column in named_tables(connection, ["held"], schema="public", source="shop")["held"].columns
    }


def supported(column: PgColumn, declared: str | None = None, special: Special = "fail") -> ColumnType:
    found = mapping(column, declared, special=special, label=f"shop.held.{column.name}")
    assert isinstance(found, ColumnType), found
    return found


def assert_held(connection: Connection[Any], engine: Engine, folder: Path, cases: Sequence[Case]) -> None:
    """Log and SELECT give the same text, and Spark makes of it what psycopg reads."""
    columns = filled(connection, cases)
    names = [f"c{number}" for number in range(len(cases))]
    types = {name: supported(columns[name]) for name in names}
    assert {case.pg: types[name].type for name, case in zip(names, cases, strict=True)} == {
        case.pg: case.spark for case in cases
    }
    texts = connection.execute(
        f"SELECT {', '.join(types[name].read(columns[name].quoted) for name in names)} FROM held ORDER BY id".encode()
    ).fetchall()
    in_log = [row[1:] for row in logged(connection)]
    assert [[_canonical(types[n], text) for n, text in zip(names, row, strict=True)] for row in in_log] == [
        list(row) for row in texts
    ]
    parsed = in_spark(engine, folder, [types[name] for name in names], texts)
    for number, (name, case) in enumerate(zip(names, cases, strict=True)):
        if case.spark == "string":
            read = [row[number] for row in in_log]
        else:
            cast = f"::{case.read_as}" if case.read_as else ""
            found = connection.execute(f"SELECT {name}{cast} FROM held ORDER BY id".encode()).fetchall()
            read = [row[0] for row in found]
        expected = [comparable(value, case.spark) for value in read]
        assert [comparable(row[number], case.spark) for row in parsed] == expected, case.pg


def _canonical(type_: ColumnType, text: str | None) -> str | None:
    return text if text is None or type_.canonical is None else type_.canonical(text)


def in_spark(
    engine: Engine, folder: Path, types: Sequence[ColumnType], texts: Sequence[Sequence[str | None]]
) -> list[tuple[Any, ...]]:
    """The values of *texts*, in one job; timestamps as microseconds, which no time zone of Python's changes."""
    names = [f"c{number}" for number in range(len(types))]
    arrays = [pa.array([row[number] for row in texts], pa.string()) for number in range(len(names))]
    file = folder / "texts.parquet"
    pq.write_table(pa.table([pa.array(range(len(texts))), *arrays], names=["id", *names]), file)
    shown = []
    for name, type_ in zip(names, types, strict=True):
        value = type_.parse(name)
        if type_.type == "timestamp":
            value = f"unix_micros({value})"
        elif type_.type == "array<timestamp>":
            value = f"transform({value}, y -> unix_micros(y))"
        shown.append(f"{value} AS {name}")
    with engine.step("types", "parse", small=True):
        frame = engine.worker.sql(f"SELECT {', '.join(shown)} FROM (SELECT * FROM parquet.`{file}` ORDER BY id)")
        numbers = {"timestamp": "bigint", "array<timestamp>": "array<bigint>"}
        assert [kind for _, kind in frame.dtypes] == [numbers.get(type_.type, type_.type) for type_ in types]
        return [tuple(row) for row in frame.collect()]


def comparable(value: Any, spark: str) -> Any:
    """A value with which ``==`` tells apart what is not the same, and nothing else."""
    if isinstance(value, list):
        return [comparable(item, spark.removeprefix("array<").removesuffix(">")) for item in value]
    if isinstance(value, float):
        if spark == "float" and math.isfinite(value):
            value = struct.unpack("f", struct.pack("f", value))[0]
        return repr(value)
    if isinstance(value, datetime) and value.tzinfo is not None:
        return (value - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    return bytes(value) if isinstance(value, bytearray) else value


@pytest.mark.spark
def test_every_type_comes_the_same_by_log_and_by_copy(
    connection: Connection[Any], engine: Engine, tmp_path: Path
) -> None:
    assert_held(connection, engine, tmp_path, CASES)


TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
ARRAY = st.lists(st.none() | TEXT, max_size=5)
RANDOM = {
    "text": ("string", TEXT),
    "float8": ("double", st.floats()),
    "float4": ("float", st.floats(width=32)),
    "int8": ("bigint", st.integers(-(2**63), 2**63 - 1)),
    "numeric": ("decimal(38,18)", st.decimals(-(10**19), 10**19, places=18)),
    "numeric(9,4)": ("decimal(9,4)", st.decimals(-99999, 99999, places=4)),
    "date": ("date", st.dates()),
    "timestamp": ("timestamp_ntz", st.datetimes()),
    "timestamptz": ("timestamp", st.datetimes(timezones=st.just(UTC))),
    "bytea": ("binary", st.binary()),
    "text[]": ("array<string>", ARRAY),
    "float8[]": ("array<double>", st.lists(st.none() | st.floats(), max_size=5)),
}


@pytest.mark.spark
@settings(max_examples=3, deadline=None, database=None)
@given(st.tuples(*(st.lists(st.none() | values, min_size=30, max_size=30) for _, values in RANDOM.values())))
def test_random_values_come_the_same_by_log_and_by_copy(
    connection: Connection[Any],
    engine: Engine,
    tmp_path_factory: pytest.TempPathFactory,
    values: tuple[list[object], ...],
) -> None:
    cases = [Case(pg, spark, column) for (pg, (spark, _)), column in zip(RANDOM.items(), values, strict=True)]
    assert_held(connection, engine, tmp_path_factory.mktemp("random"), cases)


@settings(max_examples=200, deadline=None, database=None)
@given(ARRAY | st.lists(st.lists(TEXT | st.none(), min_size=2, max_size=2), min_size=1, max_size=3))
def test_an_array_is_rewritten_as_the_server_does_it(connection: Connection[Any], value: list[Any]) -> None:
    row = connection.execute(
        "SELECT a::text, array_to_json(a)::text FROM (SELECT %s::text[] AS a)", (value,)
    ).fetchone()
    assert row is not None
    assert as_json(row[0]) == row[1]
    assert json.loads(row[1]) == value


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("{}", "[]"),
        ("{1,NULL,3}", '["1",null,"3"]'),
        ('{"NULL",""}', '["NULL",""]'),
        ("[2:3]={1,2}", '["1","2"]'),
        ("[0:0][5:6]={{1,2}}", '[["1","2"]]'),
        ('{{"a,b",NULL},{"{","}"}}', '[["a,b",null],["{","}"]]'),
        ('{"\\"","\\\\","\n="}', '["\\"","\\\\","\\n="]'),
    ],
)
def test_array_notation(text: str, expected: str) -> None:
    assert as_json(text) == expected


def column(pg: PgType, type_: str = "?") -> PgColumn:
    return PgColumn("c", type_, 0, -1, pg)


def numeric(precision: int, scale: int) -> PgType:
    return PgType("numeric", typmod=(precision << 16 | scale & 0x7FF) + 4)


ANY_NUMERIC = PgType("numeric")

REFUSED = [
    (numeric(12, 2), None, "NaN"),
    (numeric(12, 2), None, "1.001"),
    (ANY_NUMERIC, None, "Infinity"),
    (ANY_NUMERIC, None, "-Infinity"),
    (ANY_NUMERIC, None, "0.0000000000000000001"),
    (ANY_NUMERIC, None, "1" + "0" * 20),
    (ANY_NUMERIC, "decimal(3,1)", "100"),
    (ANY_NUMERIC, "decimal(3,1)", "0.15"),
    (ANY_NUMERIC, "bigint", "9223372036854775808"),
    (ANY_NUMERIC, "bigint", "0.5"),
    (ANY_NUMERIC, "bigint", "1" + "0" * 40),
    (ANY_NUMERIC, "double", "1234567890.123456"),
    (ANY_NUMERIC, "double", "1" + "0" * 400),
    (PgType("date"), None, "infinity"),
    (PgType("date"), None, "-infinity"),
    (PgType("date"), None, "100000-01-01"),
    (PgType("timestamp"), None, "infinity"),
    (PgType("timestamp"), None, "294276-12-31 23:59:59.999999"),
    (PgType("timestamptz"), None, "-infinity"),
    (PgType("_int4", element=PgType("int4")), None, '[["1"],["2"]]'),
    (PgType("_numeric", element=ANY_NUMERIC), None, '["NaN"]'),
]


@pytest.mark.spark
def test_what_spark_cannot_hold_is_refused(engine: Engine) -> None:
    message = r"\[SOURCE_VALUE\] shop\.held\.c: .* cannot be held by .*; correct it in PostgreSQL"
    with engine.step("types", "refuse", small=True):
        for pg, declared, value in REFUSED:
            parse = supported(column(pg), declared).parse("t")
            with pytest.raises(Exception, match=message) as caught:
                engine.rows(f"SELECT {parse} FROM VALUES ({literal(value)}) AS v (t)")
            assert value.strip('["]')[:50] in str(caught.value)


@pytest.mark.spark
def test_what_spark_cannot_hold_is_null_where_it_is_declared_so(engine: Engine, tmp_path: Path) -> None:
    types = [supported(column(pg), declared, "null") for pg, declared, _ in REFUSED]
    (row,) = in_spark(engine, tmp_path, types, [[value for _, _, value in REFUSED]])
    assert row == (*[None] * (len(REFUSED) - 1), [None])


@pytest.mark.spark
def test_a_declared_type_holds_what_it_can(engine: Engine, tmp_path: Path) -> None:
    held: list[tuple[PgType, str, str, object]] = [
        (ANY_NUMERIC, "decimal(3, 1)", "-99.900", Decimal("-99.9")),
        (numeric(50, 2), "decimal(38,2)", "1.50", Decimal("1.5")),
        (ANY_NUMERIC, "bigint", "-9223372036854775808", -(2**63)),
        (ANY_NUMERIC, "bigint", "5.00", 5),
        (ANY_NUMERIC, "double", "0.10", 0.1),
        (ANY_NUMERIC, "double", "123456789012345000000", 123456789012345e6),
        (ANY_NUMERIC, "double", "0.00", 0.0),
        (ANY_NUMERIC, "double", "-Infinity", -math.inf),
        (ANY_NUMERIC, "string", "NaN", "NaN"),
        (PgType("int4"), "int", "5", 5),
        (PgType("int4range", kind="r"), "string", "[1,3)", "[1,3)"),
        (PgType("_int4", element=PgType("int4")), "string", "{1,2}", "{1,2}"),
        (PgType("_numeric", element=ANY_NUMERIC), "array<decimal(3,1)>", '["1.50"]', [Decimal("1.5")]),
        (PgType("_numeric", element=ANY_NUMERIC), "array<string>", '["NaN"]', ["NaN"]),
    ]
    types = [supported(column(pg), declared) for pg, declared, _, _ in held]
    assert in_spark(engine, tmp_path, types, [[text for _, _, text, _ in held]]) == [tuple(value for *_, value in held)]


@pytest.mark.spark
def test_days_that_python_has_not_are_exact_in_spark(connection: Connection[Any], engine: Engine) -> None:
    texts = {
        "date": ["4713-01-01 BC", "0001-12-31 BC", "0044-03-15 BC", "10000-01-01", "99999-12-31"],
        "timestamp": ["4713-01-01 00:00:00 BC", "0001-12-31 23:59:59.999999 BC", "20023-05-06 07:08:09.5"],
        "timestamptz": ["0001-02-29 23:59:59.999999+00 BC", "20023-05-06 07:08:09.5+00"],
    }
    shown, expected = [], []
    for pg, values in texts.items():
        parse = supported(column(PgType(pg))).parse
        for value in values:
            micros = f"(extract(epoch FROM '{value}'::{pg}) * 1000000)::bigint"
            row = connection.execute(f"SELECT '{value}'::{pg}::text, {micros}".encode()).fetchone()
            assert row is not None and row[0] == value
            shown.append(f"unix_micros(CAST({parse(literal(value))} AS TIMESTAMP))")
            expected.append(row[1])
    with engine.step("types", "days", small=True):
        assert list(engine.rows(f"SELECT {', '.join(shown)}")[0]) == expected


def test_any_type_can_be_taken_as_the_text_that_it_prints(connection: Connection[Any]) -> None:
    values = {
        "point": "(1,2)",
        "int4range": "[1,3)",
        "money": "$1.00",
        "tsvector": "'a' 'b'",
        "pair": '(1,"a b")',
        "pair[]": '{"(1,\\"a b\\")",NULL}',
        "int4[]": "{{1,2},{3,4}}",
        "bool": "t",
        "bpchar(3)": "a  ",
        "inet": "1.2.3.4",
    }
    columns = ", ".join(f"c{number} {pg}" for number, pg in enumerate(values))
    connection.execute("DROP TABLE IF EXISTS odd")
    connection.execute(f"CREATE TABLE odd ({columns}, last pair)".encode())
    placed = ", ".join(["%s"] * len(values))
    connection.execute(f"INSERT INTO odd VALUES ({placed}, ROW(NULL, NULL))".encode(), list(values.values()))
    connection.execute("INSERT INTO odd DEFAULT VALUES")
    found = named_tables(connection, ["odd"], schema="public", source="shop")["odd"].columns
    types = [supported(one, "string") for one in found]
    read = ", ".join(type_.read(one.quoted) for type_, one in zip(types, found, strict=True))
    rows = connection.execute(f"SELECT {read} FROM odd ORDER BY last NULLS LAST".encode()).fetchall()
    assert rows == [(*values.values(), "(,)"), (None,) * (len(values) + 1)]
    assert {type_.canonical for type_ in types} == {None}


@pytest.mark.parametrize(
    ("pg", "type_"),
    [
        (PgType("point"), "point"),
        (PgType("int4range", kind="r"), "int4range"),
        (PgType("money"), "money"),
        (PgType("tsvector"), "tsvector"),
        (PgType("public.pair", kind="c"), "pair"),
        (PgType("public.vector"), "vector(3)"),
        (PgType("public.numeric"), "public.numeric"),
        (PgType("_pair", element=PgType("public.pair", kind="c")), "pair[]"),
        (PgType("_lists", element=PgType("_int4", element=PgType("int4"))), "lists[]"),
    ],
)
def test_a_type_without_counterpart_is_named_with_the_way_out(pg: PgType, type_: str) -> None:
    found = mapping(column(pg, type_), None, special="fail", label="shop.sales.orders.c")
    assert found == Unsupported(
        f"shop.sales.orders.c is of type {type_}, which has no counterpart in Spark; declare "
        "`types: {sales.orders: {c: string}}` in sources/shop.yml to take it as the text that PostgreSQL prints, "
        "or leave the column out of the view."
    )


def test_a_numeric_that_is_too_wide_can_be_declared() -> None:
    found = mapping(column(numeric(50, 2), "numeric(50,2)"), None, special="fail", label="shop.orders.c")
    assert isinstance(found, Unsupported)
    assert "(or decimal(p,s) with p up to 38, bigint, double, if all values fit)" in found.message


@pytest.mark.parametrize("declared", ["int", "decimal(39,2)", "decimal(2,3)", "array<int>", "decimal"])
def test_a_type_that_cannot_be_is_an_error(declared: str) -> None:
    with pytest.raises(SourceError, match="it can be decimal") as caught:
        mapping(column(ANY_NUMERIC, "numeric"), declared, special="fail", label="shop.orders.c")
    assert caught.value.code == "SOURCE_TYPE"
