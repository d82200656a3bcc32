"""Values outside Spark are those that Spark makes of the same text."""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from psycopg import Connection

from strandline.algebra.bag import SignedBag
from strandline.demo.server import PostgresServer
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.arrow_types import arrow_type
from strandline.sources.postgres.connect import set_session
from strandline.sources.postgres.introspect import named_tables
from strandline.sources.postgres.tables import PgColumn, PgType
from strandline.sources.postgres.types import Special
from strandline.sources.postgres.values import Value, value
from tests.conftest import new_database
from tests.sources.postgres.test_types import (
    ANY_NUMERIC,
    CASES,
    DDL,
    REFUSED,
    column,
    comparable,
    in_spark,
    supported,
)

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def connection(server: PostgresServer) -> Iterator[Connection[Any]]:
    with new_database(server) as dsn, psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(set_session().encode())
        connection.execute(DDL.encode())
        yield connection


def made(of: PgColumn, declared: str | None = None, special: Special = "fail") -> Value:
    type_ = supported(of, declared, special).type
    return value(of.resolved, type_, special=special, label=f"shop.held.{of.name}")


def without_tuples(found: Any) -> Any:
    return [without_tuples(item) for item in found] if isinstance(found, tuple) else found


@pytest.mark.spark
def test_every_type_has_the_values_that_spark_has(connection: Connection[Any], engine: Engine, tmp_path: Path) -> None:
    columns = ", ".join(f"c{number} {case.pg}" for number, case in enumerate(CASES))
    connection.execute(f"CREATE TABLE held ({columns})".encode())
    longest = max(len(case.values) for case in CASES)
    rows = [[case.values[n] if n < len(case.values) else None for case in CASES] for n in range(longest)]
    placed = ", ".join(["%s"] * len(CASES))
    with connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO held VALUES ({placed})".encode(), rows)
    found = named_tables(connection, ["held"], schema="public", source="shop")["held"].columns
    types = [supported(one) for one in found]
    read = ", ".join(type_.read(one.quoted) for type_, one in zip(types, found, strict=True))
    texts = connection.execute(f"SELECT {read} FROM held".encode()).fetchall()
    in_python = [
        [None if text is None else made(one)(text) for one, text in zip(found, row, strict=True)] for row in texts
    ]
    kinds = [type_.type for type_ in types]

    for here, there in zip(in_python, in_spark(engine, tmp_path, types, texts), strict=True):
        for case, kind, ours, theirs in zip(CASES, kinds, here, there, strict=True):
            assert comparable(without_tuples(ours), kind) == comparable(theirs, kind), case.pg
            if kind.startswith("decimal") and ours is not None:
                assert f",{-ours.as_tuple().exponent})" in kind
    assert len(SignedBag.of(map(tuple, in_python))) == longest
    for place, kind in enumerate(kinds):
        values = [row[place] for row in in_python]
        inner = kind.removeprefix("array<").removesuffix(">")
        arrow = arrow_type(inner) if inner == kind else pa.list_(arrow_type(inner))
        back = pa.array(values, arrow).to_pylist()
        assert [comparable(one, kind) for one in back] == [comparable(without_tuples(one), kind) for one in values]


@pytest.mark.parametrize(("pg", "declared", "text"), REFUSED)
def test_what_spark_cannot_hold_is_refused_or_null(pg: PgType, declared: str | None, text: str) -> None:
    message = r"^\[SOURCE_VALUE\] shop\.held\.c: .* cannot be held by .*; correct it in PostgreSQL"
    with pytest.raises(SourceError, match=message) as caught:
        made(column(pg), declared)(text)
    assert caught.value.code == "SOURCE_VALUE"
    assert text.strip('["]')[:50] in caught.value.message
    expected = (None,) if text == '["NaN"]' else None
    assert made(column(pg), declared, "null")(text) == expected


@pytest.mark.parametrize(
    ("declared", "text", "expected"),
    [
        ("bigint", "-9223372036854775808", -(2**63)),
        ("bigint", "5.00", 5),
        ("double", "0.10", 0.1),
        ("double", "123456789012345000000", 123456789012345e6),
        ("double", "0.00", 0.0),
        ("double", "-Infinity", -math.inf),
        ("string", "NaN", "NaN"),
    ],
)
def test_a_declared_type_holds_what_it_can(declared: str, text: str, expected: object) -> None:
    found = made(column(ANY_NUMERIC), declared)(text)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize("special", ["fail", "null"])
@pytest.mark.parametrize(
    ("pg", "text"),
    [
        ("date", "0001-12-31 BC"),
        ("date", "10000-01-01"),
        ("timestamp", "4713-01-01 00:00:00 BC"),
        ("timestamptz", "20023-05-06 07:08:09.5+00"),
    ],
)
def test_days_that_spark_has_and_python_has_not_are_an_error(pg: str, text: str, special: Special) -> None:
    with pytest.raises(SourceError, match=r"SOURCE_VALUE.* is not within the years 1 to 9999"):
        made(column(PgType(pg)), None, special)(text)


def test_days_and_times() -> None:
    assert made(column(PgType("date")))("0001-01-01") == date(1, 1, 1)
    assert made(column(PgType("timestamp")))("2024-03-31 02:30:00.1") == datetime(2024, 3, 31, 2, 30, 0, 100000)
    assert made(column(PgType("timestamptz")))("9999-12-31 23:59:59.999999+00") == datetime(
        9999, 12, 31, 23, 59, 59, 999999, UTC
    )
