"""A table that is added up without Spark is what signed bags give."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.errors import StoreError
from strandline.sql.render import SIGN
from strandline.store.small_tables import after, told_apart_by_arrow

TYPES = {
    "k": pa.int64(),
    "f": pa.float64(),
    "s": pa.string(),
    "d": pa.decimal128(38, 2),
    "day": pa.date32(),
    "yes": pa.bool_(),
    "raw": pa.binary(),
}
VALUES: dict[str, list[Any]] = {
    "k": [None, 0, -1, 2**62],
    "f": [None, 0.0, -0.0, float("nan"), 1.5, float("inf")],
    "s": [None, "", "a"],
    "d": [None, Decimal("0.00"), Decimal("1.10")],
    "day": [None, date(1, 1, 1), date(2026, 1, 1)],
    "yes": [None, True, False],
    "raw": [None, b"", b"\0"],
}

Row = tuple[Any, ...]

rows = st.lists(st.tuples(*(st.sampled_from(values) for values in VALUES.values())), max_size=8)


def table(found: list[Row]) -> pa.Table:
    columns = zip(*found, strict=True) if found else [()] * len(TYPES)
    arrays = [pa.array(list(each), kind) for each, kind in zip(columns, TYPES.values(), strict=True)]
    return pa.table(arrays, names=list(TYPES))


def signed(inserted: list[Row], deleted: list[Row]) -> pa.Table:
    sign = [1] * len(inserted) + [-1] * len(deleted)
    return table(inserted + deleted).append_column(SIGN, pa.array(sign, pa.int32()))


@given(rows, rows, rows, st.data())
def test_rows_are_there_as_often_as_their_signs_add_up_to(
    old: list[Row], again: list[Row], inserted: list[Row], data: st.DataObject
) -> None:
    old = old + again + again
    deleted = data.draw(st.lists(st.sampled_from(range(len(old))), unique=True)) if old else []
    gone = [old[place] for place in deleted]
    found = after("v", table(old), signed(inserted, gone))
    assert found.schema == table(old).schema
    shown = [tuple(row.values()) for row in found.to_pylist()]
    assert SignedBag.of(shown) == SignedBag.of(old) + SignedBag.of(inserted) - SignedBag.of(gone)


@given(rows, rows.filter(bool))
def test_a_row_that_is_not_there_cannot_go(old: list[Row], deleted: list[Row]) -> None:
    missing = SignedBag.of(old) - SignedBag.of(deleted)
    if all(count > 0 for count in missing.values()):
        after("v", table(old), signed([], deleted))
        return
    with pytest.raises(StoreError, match=r"v: the delta deletes a row that the table does not hold") as told:
        after("v", table(old), signed([], deleted))
    assert told.value.code == "DELETE_WITHOUT_ROW"


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.map_(pa.string(), pa.int32()), pa.struct({"a": pa.int32()})])
def test_nested_values_are_left_to_spark(kind: pa.DataType) -> None:
    assert told_apart_by_arrow(pa.schema(TYPES))
    assert not told_apart_by_arrow(pa.schema({**TYPES, "nested": kind}))
