"""Columns of a data file in the order of a key: the same rows as reading all of it gives, whatever is kept already."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.engine import arranged as arranged_module
from strandline.engine.arranged import Arranged, ReadColumn, as_numbers, can_be_key, rows_with

ROWS = pa.table(
    {
        "k": pa.array([5, 3, None, 5, 9, -2], pa.int64()),
        "day": pa.array([date(2026, 1, 1) + timedelta(days=n) for n in (4, 2, 0, 4, 1, 3)]),
        "price": pa.array([Decimal(n) / 4 for n in range(6)], pa.decimal128(15, 2)),
        "huge": pa.array([Decimal(10) ** n for n in range(6)], pa.decimal128(38, 0)),
        "word": pa.array(["a", None, "b", "a", "", "ü"]),
        "n": pa.array(range(6), pa.int32()),
    }
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    pq.write_table(ROWS, tmp_path / "data.parquet")
    return str(tmp_path / "data.parquet")


@pytest.fixture
def arranged(tmp_path: Path) -> Arranged:
    return Arranged(tmp_path / "kept")


def reader(file: str, log: list[str] | None = None) -> ReadColumn:
    def read(column: str) -> pa.Array:
        if log is not None:
            log.append(column)
        return pq.read_table(file, columns=[column]).column(0).combine_chunks()

    return read


def found(arranged: Arranged, file: str, key: str, keys: Sequence[Any], columns: Sequence[str]) -> list[Any]:
    values = np.sort(as_numbers(pa.array(keys, ROWS.schema.field(key).type)))
    rows = arranged.rows(file, key, columns, values, reader(file))
    return sorted(rows.cast(ROWS.select(list(columns)).schema).to_pylist(), key=str)


def expected(key: str, keys: Sequence[Any], columns: Sequence[str]) -> list[Any]:
    chosen = [row for row in ROWS.to_pylist() if row[key] in keys]
    return sorted(({name: row[name] for name in columns} for row in chosen), key=str)


@pytest.mark.parametrize("keys", [[5], [3, 9], [4], [-2, 3, 5, 9], [-9, 99], [5, 6, 7, 8]], ids=str)
def test_rows_are_found_by_their_keys(arranged: Arranged, file: str, keys: list[int]) -> None:
    assert found(arranged, file, "k", keys, ROWS.column_names) == expected("k", keys, ROWS.column_names)


def test_columns_are_kept_in_the_order_of_several_keys(arranged: Arranged, file: str) -> None:
    days = [date(2026, 1, 5), date(2026, 1, 2), date(2020, 1, 1)]
    assert found(arranged, file, "k", [5], ["n"]) == expected("k", [5], ["n"])
    assert found(arranged, file, "day", days, ["n", "k"]) == expected("day", days, ["n", "k"])
    assert found(arranged, file, "n", [0, 2], ["word"]) == expected("n", [0, 2], ["word"])


def test_a_column_is_read_once(arranged: Arranged, file: str) -> None:
    log: list[str] = []
    for columns in (["n"], ["n"], ["n", "word"], ["k", "word"]):
        arranged.rows(file, "k", columns, np.array([5]), reader(file, log))
    assert log == ["k", "n", "word"]


def test_another_file_of_the_same_name_is_another_file(arranged: Arranged, file: str) -> None:
    assert found(arranged, file, "k", [3], ["n"]) == [{"n": 1}]
    pq.write_table(pa.table({"k": [3, 3, 3], "n": pa.array([7, 8, 9], pa.int32())}), file)
    assert found(arranged, file, "k", [3], ["n"]) == [{"n": 7}, {"n": 8}, {"n": 9}]


@pytest.mark.parametrize("left", [0, 10, 200])
def test_what_was_left_half_written_is_made_again(arranged: Arranged, file: str, tmp_path: Path, left: int) -> None:
    found(arranged, file, "k", [5], ["n", "word"])
    for kept in (tmp_path / "kept").rglob("*"):
        if kept.is_file() and kept.name != "of":
            part = kept.read_bytes()[:left]
            kept.unlink()  # what is mapped into memory stays
            kept.write_bytes(part)
    arranged_module._opened.cache_clear()
    assert found(arranged, file, "k", [5], ["n", "word"]) == expected("k", [5], ["n", "word"])


def test_what_was_made_of_files_that_are_gone_is_not_needed(arranged: Arranged, file: str, tmp_path: Path) -> None:
    assert arranged.needed() == set()
    found(arranged, file, "k", [5], ["n"])
    (of_file,) = arranged.needed()
    other = str(tmp_path / "other.parquet")
    pq.write_table(ROWS, other)
    found(arranged, other, "k", [5], ["n"])
    (tmp_path / "kept" / "begun").mkdir()
    assert len(arranged.needed()) == 2
    Path(other).unlink()
    assert arranged.needed() == {of_file}


def test_texts_are_stored_whether_they_are_few_or_many(arranged: Arranged, tmp_path: Path) -> None:
    file, words = str(tmp_path / "words.parquet"), [f"word {n % 3_000}" for n in range(5_000)]
    pq.write_table(pa.table({"k": range(5_000), "word": words, "few": ["x", "y"] * 2_500}), file)
    rows = arranged.rows(file, "k", ["word", "few"], np.array([7, 4_321]), reader(file))
    cast = rows.cast(pa.schema({"word": pa.string(), "few": pa.string()}))
    assert cast.to_pylist() == [{"word": "word 7", "few": "y"}, {"word": "word 1321", "few": "y"}]


@pytest.mark.parametrize(
    ("kind", "may"),
    [(pa.int8(), True), (pa.int64(), True), (pa.date32(), True), (pa.string(), False), (pa.float64(), False),
     (pa.timestamp("us"), False), (pa.bool_(), False), (pa.decimal128(10, 0), False)],
    ids=str,
)  # fmt: skip
def test_keys_are_numbers_and_days(kind: pa.DataType, may: bool) -> None:
    assert can_be_key(kind) is may


@given(st.lists(st.integers(-30, 30)), st.sets(st.integers(-40, 40)))
def test_places_of_values_among_sorted_keys(keys: list[int], values: set[int]) -> None:
    keys.sort()
    places = rows_with(np.array(keys, np.int64), np.array(sorted(values), np.int64))
    assert sorted(places) == [place for place, key in enumerate(keys) if key in values]


def test_columns_are_in_the_order_of_the_key_though_it_is_mapped_still(arranged: Arranged, file: str) -> None:
    asked = ("k", [3, 5], ["k", "n"])
    assert found(arranged, file, *asked) == expected(*asked)
    # As in another process, whose columns are mapped, and which has not opened the order.
    arranged_module._opened.cache_clear()
    assert found(arranged, file, "k", [3, 5], ["n"]) == expected("k", [3, 5], ["n"])
    shutil.rmtree(file.replace("data.parquet", "kept"))
    assert found(arranged, file, "k", [3, 5], ["day"]) == expected("k", [3, 5], ["day"])
    arranged_module._opened.cache_clear()
    again = ("k", [3, 5], ["k", "day", "price"])
    assert found(arranged, file, *again) == expected(*again)
