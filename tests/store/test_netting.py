"""Stored deltas in some of their columns, and the ranges that their values lie in."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from strandline.algebra.schema import Column
from strandline.engine import files
from strandline.sql.render import SIGN, scalar_sql
from strandline.store.deltas import Delta
from strandline.store.netting import anything_left, by_key, in_columns
from strandline.store.ranges import MOST, bounds, stored_ranges


def stored(folder: Path, rows: list[dict[str, Any]], **types: pa.DataType) -> Delta:
    """A delta with a column for each type, at *folder*."""
    schema = pa.schema([*types.items(), (SIGN, pa.int32())])
    files.write_rows(pa.Table.from_pylist(rows, schema), str(folder))
    inserted = sum(row[SIGN] > 0 for row in rows)
    return Delta(str(folder), inserted, len(rows) - inserted)


def row(sign: int, k: int | None, name: str | None, price: float = 1.0) -> dict[str, Any]:
    return {"k": k, "name": name, "price": price, SIGN: sign}


def of_three(folder: Path, *rows: dict[str, Any]) -> Delta:
    return stored(folder, list(rows), k=pa.int64(), name=pa.string(), price=pa.float64())


def rows_of(delta: Delta) -> list[tuple[Any, ...]]:
    return sorted(tuple(found.values()) for found in files.read_rows(delta.path).to_pylist())


def test_a_change_of_other_columns_is_none(tmp_path: Path) -> None:
    delta = of_three(
        tmp_path / "d", row(-1, 1, "a", 1.0), row(1, 1, "a", 2.0), row(-1, None, None), row(1, None, None, 3)
    )
    assert in_columns(delta, ["k", "name"], str(tmp_path / "net")) == Delta("", 0, 0)
    assert in_columns(delta, ["k", "price"], str(tmp_path / "net")) is delta, "nothing cancels out"
    assert in_columns(delta, ["k", "name", "price"], str(tmp_path / "net")) is delta, "it has no other columns"


def test_what_is_left_is_stored_apart_with_its_copies(tmp_path: Path) -> None:
    same = [row(sign, 1, "a", price) for sign, price in ((-1, 1.0), (1, 2.0)) for _ in range(4)]
    delta = of_three(tmp_path / "d", *same, row(1, 2, "b"), row(1, 2, "b", 9.0), row(-1, 3, "c"))
    left = in_columns(delta, ["k", "name"], str(tmp_path / "net"))
    assert (left.inserted, left.deleted) == (2, 1)
    assert rows_of(left) == [(2, "b", 1), (2, "b", 1), (3, "c", -1)]


def test_deltas_that_only_insert_are_left_alone(tmp_path: Path) -> None:
    delta = of_three(tmp_path / "d", row(1, 1, "a"), row(1, 1, "a"))
    assert in_columns(delta, ["k"], str(tmp_path / "net")) is delta


def test_whether_anything_is_left_is_told_from_the_rows_or_sooner(tmp_path: Path) -> None:
    priced = [row(-1, 1, "a", 1.0), row(1, 1, "a", 2.0)]
    nothing = [*priced, row(-1, None, None), row(1, None, None, 3), row(-1, 5, "e", float("nan")), row(1, 5, "e", 4)]
    assert not anything_left(of_three(tmp_path / "nothing", *nothing), ["k", "name"])
    assert anything_left(of_three(tmp_path / "price", *nothing), ["k", "price"])
    assert anything_left(of_three(tmp_path / "number", *priced, row(1, 1, "a")), ["k", "name"])
    assert anything_left(of_three(tmp_path / "ends", *priced, row(-1, 7, "a"), row(1, 8, "a")), ["k", "name"])
    crossed = [*priced, *(row(sign, k, "ab"[(k + (sign > 0)) % 2]) for sign in (-1, 1) for k in (2, 3))]
    assert anything_left(of_three(tmp_path / "crossed", *crossed), ["k", "name"]), "the ends of both columns agree"
    assert not anything_left(of_three(tmp_path / "apart", *crossed), ["name"])


def ranges(folder: Path, values: list[Any], kind: pa.DataType, type: str) -> list[tuple[str, str]]:
    files.write_rows(pa.table({"v": pa.array(values, kind)}), str(folder))
    found = stored_ranges(str(folder), Column("v", type))
    assert found is not None and found.nulls == (None in values)
    return [(scalar_sql(low, {}), scalar_sql(high, {})) for low, high in found.pairs]


def test_keys_that_are_close_together_are_one_range(tmp_path: Path) -> None:
    far = [*range(10, 20), *range(900, 950), 77, None]
    assert ranges(tmp_path, far, pa.int64(), "bigint") == [
        ("CAST(10 AS bigint)", "CAST(19 AS bigint)"),
        ("CAST(77 AS bigint)", "CAST(77 AS bigint)"),
        ("CAST(900 AS bigint)", "CAST(949 AS bigint)"),
    ]
    assert ranges(tmp_path, [-5, -5], pa.int32(), "int") == [("CAST(-5 AS int)", "CAST(-5 AS int)")]


def test_scattered_keys_are_cut_at_the_widest_gaps(tmp_path: Path) -> None:
    found = ranges(tmp_path, [10 * n + n * n % 7 for n in range(500)], pa.int64(), "bigint")
    assert len(found) == MOST


def test_dates_and_texts_have_ranges_and_other_types_none(tmp_path: Path) -> None:
    days = [date(2026, 1, 1), date(2026, 1, 2), date(1, 1, 1), date(9999, 12, 31)]
    assert ranges(tmp_path, days, pa.date32(), "date") == [
        ("DATE '0001-01-01'", "DATE '0001-01-01'"),
        ("DATE '2026-01-01'", "DATE '2026-01-02'"),
        ("DATE '9999-12-31'", "DATE '9999-12-31'"),
    ]
    assert ranges(tmp_path, ["b", "a'", "é"], pa.string(), "string") == [("'a\\''", "'é'")]
    files.write_rows(pa.table({"v": [1.5]}), str(tmp_path))
    assert stored_ranges(str(tmp_path), Column("v", "double")) is None


@pytest.mark.parametrize("nulls", [False, True])
def test_a_condition_for_a_target_unless_null_has_to_match(tmp_path: Path, nulls: bool) -> None:
    files.write_rows(pa.table({"v": pa.array([3, 4, 9, *([None] if nulls else [])])}), str(tmp_path))
    found = bounds(str(tmp_path), Column("v", "bigint"), "t")
    assert found == "" if nulls else "t.`v`" in found and found.startswith(" AND (") and "CAST(9 AS bigint)" in found
    assert bounds(str(tmp_path / "none"), Column("v", "bigint"), "t") == ""


def test_keys_of_a_delta_are_told_apart_by_whether_their_rows_are_more_or_fewer(tmp_path: Path) -> None:
    delta = of_three(tmp_path / "d", row(1, 1, "a"), row(-1, 2, "b", 1.0), row(1, 2, "b", 2.0), row(-1, None, "c"))
    assert by_key(delta, ["k"]) == (True, True, True)
    assert by_key(delta, ["k", "name"]) == (True, True, True)
    assert by_key(of_three(tmp_path / "e", row(1, 1, "a")), ["k"]) == (True, False, False)
    assert by_key(of_three(tmp_path / "f", row(1, 1, "a"), row(-1, 1, "b")), ["k"]) == (False, False, True)
