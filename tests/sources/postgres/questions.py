"""Questions to PostgreSQL: of which source and tables, and random rows and conditions for them."""

from __future__ import annotations

import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from strandline.algebra.bag import Row
from strandline.algebra.plan import At, Scan
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text, Value
from strandline.algebra.schema import Column, Schema
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.source import PostgresSource

COLUMNS: Schema = (
    Column("k", "int"),
    Column("w", "bigint"),
    Column("t", "string"),
    Column("n", "decimal(8,2)"),
    Column("d", "date"),
    Column("f", "double"),
    Column("u", "string"),
    Column("c", "string"),
    Column("b", "boolean"),
    Column("z", "timestamp"),
    Column("y", "binary"),
)
DDL = (
    "k int4, w int8, t text, n numeric(8,2), d date, f float8, u uuid, c char(2), b bool, z timestamptz, y bytea, "
    "unused text"
)
UUIDS = [str(uuid.UUID(int=number)) for number in (1, 2)]

VALUES: dict[str, st.SearchStrategy[Any]] = {
    "k": st.integers(0, 2),
    "w": st.integers(0, 2) | st.just(2**40),
    "t": st.sampled_from(["", "a", "A", "ä", "a ", "%s", "\\", "'", '"{', "NULL", "😀"]),
    "n": st.sampled_from([Decimal("0.00"), Decimal("1.00"), Decimal("1.50"), Decimal("-1.50")]),
    "d": st.sampled_from([date(2024, 2, 29), date(1, 1, 1)]),
    "f": st.sampled_from([0.0, -0.0, 1.5, float("nan"), float("inf"), 2.0]),
    "u": st.sampled_from(UUIDS),
    "c": st.sampled_from(["a ", "ab", "  "]),
    "b": st.booleans(),
    "z": st.sampled_from([datetime(2024, 1, 1, tzinfo=UTC), datetime(2024, 1, 1, 0, 0, 0, 1, UTC)]),
    "y": st.sampled_from([b"", b"\x00\\", b"\xff"]),
}
GIVEN = {**VALUES, "u": VALUES["u"] | st.sampled_from(["no uuid", "\0"]), "c": VALUES["c"] | st.sampled_from(["a", ""])}


def rows_of(values: dict[str, st.SearchStrategy[Any]], most: int) -> st.SearchStrategy[list[Row]]:
    """Rows of a table, or of what is given with a question."""
    return st.lists(st.tuples(*(st.none() | values[column.name] for column in COLUMNS)), max_size=most)


ALIKE = [("k", "k"), ("k", "w"), ("k", "n"), ("w", "n"), ("t", "t"), ("t", "u"), ("t", "c"), ("u", "u"), ("c", "c")]
ALIKE += [("d", "d"), ("f", "f"), ("b", "b"), ("z", "z"), ("y", "y"), ("n", "n"), ("k", "f")]
LITERALS: dict[str, Value] = {
    "k": 1,
    "w": 1,
    "n": Decimal("1.5"),
    "f": 1,
    "t": "a",
    "u": UUIDS[0],
    "c": "a ",
    "b": True,
}
OPERATORS = st.sampled_from(["=", "=", "=", "<>", "<", "<=", ">", ">=", "<=>"])


@st.composite
def comparisons(draw: st.DrawFn, aliases: list[str]) -> Scalar:
    one = draw(st.sampled_from(aliases))
    kind = draw(st.integers(0, 5))
    if kind == 0:
        name, value = draw(st.sampled_from(list(LITERALS.items())))
        return Call(draw(OPERATORS), (Col(f"{one}.{name}"), Lit(value)))
    if kind == 1:
        return Call(draw(st.sampled_from(["is null", "is not null"])), (Col(f"{one}.{draw(NAMES)}"),))
    first, second = draw(st.sampled_from(ALIKE))
    if draw(st.booleans()):
        first, second = second, first
    other = draw(st.sampled_from(aliases))
    return Call(draw(OPERATORS), (Col(f"{one}.{first}"), Col(f"{other}.{second}")))


NAMES = st.sampled_from([column.name for column in COLUMNS])


@st.composite
def conditions(draw: st.DrawFn, aliases: list[str]) -> Scalar:
    """What a question may ask for."""
    first = draw(comparisons(aliases))
    match draw(st.sampled_from(["plain", "plain", "and", "or", "not", "text", "other"])):
        case "and" | "or" as op:
            return Call(op, (first, draw(comparisons(aliases))))
        case "not":
            return Call("not", (first,))
        case "text":
            return Text(tuple(Col(name) for name in sorted(_read(first))), first)
        case "other":
            # Outside of what is translated.
            return Call("coalesce", (first, Lit(True)))
    return first


def _read(scalar: Scalar) -> set[str]:
    match scalar:
        case Col(name):
            return {name}
        case Call(args=args):
            return set().union(*map(_read, args))
    return set()


def source(**options: Any) -> PostgresSource:
    """A source whose tables are not copied, in the database of ASKED_DSN."""
    return PostgresSource("src", Address(dsn_env="ASKED_DSN"), owner="test", patience=2, **options)


def table(name: str, alias: str, columns: Schema = COLUMNS) -> Scan:
    """A table of it."""
    return Scan(At(f"src.{name}"), alias, columns)
