"""Scalars over columns have the values and types that they have in Spark, NULLs and extremes among them."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.algebra.scalar import Col, Text
from strandline.columnar.scalars import column
from strandline.columnar.types import NotHere, arrow_type
from strandline.engine.session import Engine

DAY = datetime(2026, 1, 1, tzinfo=UTC)

VALUES: dict[str, tuple[str, list[Any]]] = {
    "t": ("tinyint", [None, 0, 1, -128, 127, 5]),
    "h": ("smallint", [None, 0, -1, -32768, 32767, 7]),
    "i": ("int", [None, 0, 1, -1, 2147483647, -2147483648]),
    "j": ("int", [None, 0, 3, -7, 12, 5]),
    "n": ("bigint", [None, 0, 4, 9223372036854775807, -9223372036854775808, -6]),
    "m": ("bigint", [None, 2, 4, 40, -6, 0]),
    "p": ("decimal(15,2)", ["0.00", None, "12.34", "-9999999999999.99", "1.00", "0.05"]),
    "q": ("decimal(7,4)", [None, "0.0500", "12.3400", "-999.9999", "1.0000", "0.0001"]),
    "d": ("date", [None, "1994-01-01", "1996-02-29", "1970-01-01", "9999-12-31", "1998-09-02"]),
    "e": ("date", ["1994-01-01", None, "1996-02-29", "1582-10-15", "1900-03-01", "2000-12-31"]),
    "s": ("string", [None, "", "green", "a forest\nGREEN green", "ß%_éé😀x", "BRASS PROMO"]),
    "u": ("string", ["13-345", None, "green", "Customer Complaints", "😀😀", "z"]),
    "b": ("boolean", [None, True, False, True, False, None]),
    "c": ("boolean", [True, None, False, False, True, None]),
    "f": ("double", [None, 0.5, -0.25, 1e300, 3.0, -0.0]),
    "g": ("double", [2.0, None, 0.1, 1e300, -3.5, 7.25]),
    "w": ("timestamp", [None, DAY, DAY - timedelta(microseconds=1), DAY, DAY.replace(year=1969), None]),
    "x": ("timestamp", [DAY, DAY, DAY, None, DAY.replace(year=2000), None]),
}

KNOWN, LEFT = (
    [line for line in part.splitlines() if line and not line.startswith("#")]
    for part in Path(__file__).with_name("expressions.txt").read_text(encoding="utf-8").split("\n\n")
)


def rows() -> pa.Table:
    return pa.table({name: pa.array(map(value, values), arrow_type(kind)) for name, (kind, values) in VALUES.items()})


def value(written: Any) -> Any:
    """A decimal or date for its text."""
    if not isinstance(written, str) or not re.fullmatch(r"-?[\d.]+|\d{4}-\d\d-\d\d", written):
        return written
    return date.fromisoformat(written) if written.count("-") == 2 else Decimal(written)


def text(expression: str) -> Text:
    """The expression, cut at its columns as the compiler cuts it."""
    parts: list[Any] = []
    for quoted, part in [(bool(n % 2), part) for n, part in enumerate(re.split(r"('[^']*')", expression))]:
        found = [part] if quoted else re.split(r"(?<![\w.])([a-z])(?![\w(])", part)
        parts += [p if quoted or n % 2 == 0 else Col(p) for n, p in enumerate(found)]
    return Text(tuple(part for part in parts if part != ""))


@pytest.mark.spark
@pytest.mark.parametrize("expression", KNOWN)
def test_values_and_types_are_those_of_spark(engine: Engine, expression: str) -> None:
    frame = engine.worker.createDataFrame(rows()).selectExpr(f"{expression} AS found")
    kind = frame.schema[0].dataType.simpleString()
    found = column(text(expression), rows(), kind)
    assert found.to_pylist() == frame.toArrow().column(0).cast(arrow_type(kind)).to_pylist()


@pytest.mark.parametrize("expression", LEFT)
def test_what_is_not_certain_is_left_to_spark(expression: str) -> None:
    with pytest.raises((NotHere, pa.ArrowException, ArithmeticError)):
        found = column(text(expression), rows())
        pytest.fail(f"{expression} gives {found}")


def test_a_type_that_is_not_the_recorded_one_is_left_to_spark() -> None:
    with pytest.raises(NotHere, match="int32 for bigint"):
        column(text("j + 1"), rows(), "bigint")


@settings(max_examples=200, deadline=None, derandomize=True)
@given(
    st.decimals(-(10**13) + 1, 10**13 - 1, places=2, allow_nan=False),
    st.decimals(-999, 999, places=4, allow_nan=False),
    st.integers(-(2**31), 2**31 - 1),
)
def test_decimals_are_computed_without_rounding(price: Decimal, rate: Decimal, number: int) -> None:
    table = pa.table({
        "p": pa.array([price], pa.decimal128(15, 2)), "q": pa.array([rate], pa.decimal128(7, 4)),
        "i": pa.array([number], pa.int32()),
    })  # fmt: skip
    assert column(text("p * (1 - q)"), table).to_pylist() == [price * (1 - rate)]
    assert column(text("p + q - i"), table).to_pylist() == [price + rate - number]
    assert column(text("p < q"), table).to_pylist() == [price < rate]
