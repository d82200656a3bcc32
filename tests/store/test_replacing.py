"""Rows replaced by their key without Spark are what signed bags give, and stay where they were."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.engine.statistics import TableSize
from strandline.errors import StoreError
from strandline.sql.render import SIGN
from strandline.store.replacing import (
    FEW_BYTES,
    MOST_BYTES,
    MOST_ROWS,
    REWRITTEN,
    Stretch,
    _said,
    _within,
    in_order,
    pays,
    replaced,
)

TYPES = {"k": pa.int64(), "name": pa.string(), "day": pa.date32(), "sum": pa.decimal128(38, 2), "f": pa.float64()}
KEY = ("k", "name", "day")

Row = tuple[Any, ...]
Rows = dict[Row, Row]
"""By key: the other values."""

keys = st.tuples(
    st.sampled_from([-(2**62), -1, 0, 1, 2, 2**62]),
    st.sampled_from(["", "a", "ä"]),
    st.sampled_from([date(1, 1, 1), date(2026, 1, 1)]),
)
values = st.tuples(
    st.sampled_from([None, Decimal("0.00"), Decimal("1.10")]), st.sampled_from([None, 0.0, -1.5, float("inf")])
)
tables = st.dictionaries(keys, values, max_size=12)


def table(rows: Rows) -> pa.Table:
    found = [(*key, *rest) for key, rest in rows.items()]
    columns = zip(*found, strict=True) if found else [()] * len(TYPES)
    arrays = [pa.array(list(each), kind) for each, kind in zip(columns, TYPES.values(), strict=True)]
    return pa.table(arrays, names=list(TYPES))


def signed(inserted: Rows, deleted: Rows) -> pa.Table:
    sign = pa.array([1] * len(inserted) + [-1] * len(deleted), pa.int32())
    return pa.concat_tables([table(inserted), table(deleted)]).append_column(SIGN, sign)


def shown(rows: pa.Table) -> list[Row]:
    return [tuple(row.values()) for row in rows.to_pylist()]


@given(tables, tables, st.data())
def test_rows_come_go_and_change_by_their_key(old: Rows, wanted: Rows, data: st.DataObject) -> None:
    kept = data.draw(st.sets(st.sampled_from(sorted(old)))) if old else set()
    gone = {key: rest for key, rest in old.items() if key not in kept}
    came = {key: rest for key, rest in wanted.items() if key not in kept}
    found = replaced("v", table(old), signed(came, gone), KEY)
    assert found.schema == table(old).schema
    there = SignedBag.of(shown(table(old))) + SignedBag.of(shown(table(came))) - SignedBag.of(shown(table(gone)))
    assert SignedBag.of(shown(found)) == there


@given(tables, tables)
def test_rows_that_stay_or_are_updated_keep_their_place_and_new_ones_come_last(old: Rows, wanted: Rows) -> None:
    gone = {key: rest for key, rest in old.items() if key in wanted}
    found = [row[:3] for row in shown(replaced("v", table(old), signed(wanted, gone), KEY))]
    assert found == [*old, *(key for key in wanted if key not in old)]


def test_null_among_the_keys_of_the_table_meets_nothing() -> None:
    old = pa.table({"k": pa.array([None, 1], pa.int64()), "n": pa.array([5, 6], pa.int64())})
    delta = pa.table({"k": pa.array([1, 1]), "n": pa.array([7, 6]), SIGN: pa.array([1, -1], pa.int32())})
    assert shown(replaced("v", old, delta, ["k"])) == [(None, 5), (1, 7)]


@given(tables, tables.filter(bool))
def test_a_key_that_is_not_there_cannot_go(old: Rows, gone: Rows) -> None:
    if set(gone) <= set(old):
        replaced("v", table(old), signed({}, gone), KEY)
        return
    with pytest.raises(StoreError, match=r"rows were to be deleted by their key \(k, name, day\)") as told:
        replaced("v", table(old), signed({}, gone), KEY)
    assert told.value.code == "DELETE_WITHOUT_ROW"


@given(tables.filter(bool), tables)
def test_a_key_that_is_there_cannot_come_unless_it_goes(old: Rows, came: Rows) -> None:
    if not set(came) & set(old):
        replaced("v", table(old), signed(came, {}), KEY)
        return
    with pytest.raises(StoreError, match=r"whose key \(k, name, day\) is there and does not go") as told:
        replaced("v", table(old), signed(came, {}), KEY)
    assert told.value.code == "DELETE_WITHOUT_ROW"


def test_a_key_that_is_not_one_is_told() -> None:
    twice = pa.table({"k": [1, 1], "n": [5, 6]})
    for sign in (1, -1):
        delta = pa.table({"k": [1], "n": [5], SIGN: pa.array([sign], pa.int32())})
        with pytest.raises(StoreError, match="the key is not one"):
            replaced("v", twice, delta, ["k"])


@pytest.mark.parametrize(
    ("changed", "rows", "bytes", "pay"),
    [
        (1, MOST_ROWS, FEW_BYTES, True),
        (1, MOST_ROWS + 1, FEW_BYTES, False),
        (1, None, FEW_BYTES, False),
        (1, REWRITTEN, FEW_BYTES + 1, True),
        (1, REWRITTEN + 1, FEW_BYTES + 1, False),
        (1, None, FEW_BYTES + 1, False),
        (10**6, 10**6, MOST_BYTES, True),
        (10**6, 10**6, MOST_BYTES + 1, False),
    ],
)
def test_files_are_written_anew_if_they_are_small_or_enough_changes(
    changed: int, rows: int | None, bytes: int, pay: bool
) -> None:
    assert pays(changed, rows, bytes) is pay


@pytest.mark.parametrize("name", ["k", "Key 1", 'a"b', "a.b", "select", "__key_1"])
def test_a_stretch_is_told_to_both_libraries_however_its_column_is_called(tmp_path: Path, name: str) -> None:
    path, stretch = str(tmp_path / "t"), Stretch(3, 8, TableSize(5, 0, 1))
    write_deltalake(path, pa.table({name: pa.array([None, *range(10)], pa.int64()), "v": list(range(11))}))
    found = DeltaTable(path).to_pyarrow_table(filters=_within(name, stretch))
    assert sorted(found.column(name).to_pylist()) == [3, 4, 5, 6, 7]
    new = pa.table({name: [3, 7], "v": [30, 70]})
    write_deltalake(path, new, mode="overwrite", predicate=_said(name, stretch))
    left = {row[name]: row["v"] for row in DeltaTable(path).to_pyarrow_table().to_pylist()}
    assert left == {None: 0, 0: 1, 1: 2, 2: 3, 3: 30, 7: 70, 8: 9, 9: 10}
    write_deltalake(path, new.slice(0, 0), mode="overwrite", predicate=_said(name, stretch))
    assert DeltaTable(path).to_pyarrow_table().num_rows == 6


def test_a_stretch_without_bounds_is_the_table() -> None:
    whole = Stretch(None, None, TableSize(5, 0, 1))
    assert (_within("k", whole), _said("k", whole)) == (None, None)
    assert _said("k", replace(whole, first=4)) == '"k" >= 4'
    assert _said("k", replace(whole, end=4)) == '"k" < 4'


@given(st.lists(st.integers(-3, 3) | st.none()))
def test_rows_are_put_in_order_if_they_are_not(values: list[int | None]) -> None:
    rows = pa.table({"k": pa.array(values, pa.int64()), "n": list(range(len(values)))})
    found = in_order(rows, "k")
    assert found.column("k").to_pylist() == sorted(values, key=lambda value: (value is None, value or 0))
    assert sorted(found.column("n").to_pylist()) == list(range(len(values)))
