"""Which files of a Delta table may hold given values: by the statistics in its log, and never too few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.engine.delta_log import DeltaLog
from strandline.engine.statistics import LEAST_SHARE, Files, TableSize, added_up

NO_STATISTICS = {"delta.dataSkippingNumIndexedCols": "0"}


def column(values: Sequence[Any]) -> pa.Array:
    known = next((value for value in values if value is not None), 0)
    kinds = {int: pa.int64(), str: pa.string(), date: pa.date32()}
    return pa.array(values, kinds[type(known)])


def written(path: Path, *parts: Mapping[str, Sequence[Any]], statistics: bool = True) -> DeltaLog:
    """A table of one file for each of *parts*, which are columns of values."""
    for part in parts:
        rows = pa.table({name: column(values) for name, values in part.items()})
        write_deltalake(str(path), rows, mode="append", configuration=None if statistics else NO_STATISTICS)
    return DeltaLog(str(path))


def paths(log: DeltaLog) -> list[str]:
    """The files in the order in which they were written."""
    commits = log.commits(-1, log.version())
    assert commits is not None
    return [path for commit in commits for path in commit.data_files]


def left(files: Files, **limits: Sequence[tuple[Any, Any]]) -> int:
    """So many files are left."""
    return files.within(limits).files


@pytest.fixture
def numbers(tmp_path: Path) -> DeltaLog:
    """Three files of ten numbers each, with the tens of each as a second column in the other order."""
    starts = (0, 10, 20)
    return written(tmp_path / "t", *({"k": range(s, s + 10), "j": [20 - s] * 10} for s in starts))


def test_the_size_is_that_of_all_files(numbers: DeltaLog) -> None:
    files, folder = numbers.files(), Path(numbers.path)
    bytes = sum(path.stat().st_size for path in folder.glob("*.parquet"))
    assert files.size == numbers.size() == TableSize(30, bytes, 3)
    assert (files.count, files.bytes) == (3, bytes)
    assert numbers.files(0).size.rows == 10


def test_a_table_without_files_has_no_rows(tmp_path: Path) -> None:
    log = written(tmp_path / "t", {"k": [1]})
    DeltaTable(log.path).delete()
    assert log.files().size == TableSize(0, 0, 0)
    assert log.files().within({"k": [(0, 9)]}) == TableSize(0, 0, 0)


def test_rows_are_unknown_if_one_file_does_not_tell_them(numbers: DeltaLog) -> None:
    adds = DeltaTable(numbers.path).get_add_actions(flatten=True)
    table = pa.table({name: adds.column(name).to_pylist() for name in adds.schema.names})
    place = table.schema.names.index("num_records")
    untold = Files(table.set_column(place, "num_records", pa.array([10, None, 10])))
    assert untold.size.rows is None
    assert untold.size.files == 3
    assert untold.within({"k": [(20, 29)]}).rows == 10
    assert untold.within({"k": [(10, 10)]}).rows is None
    uncounted = Files(table.drop_columns("num_records"))
    assert uncounted.size.rows is None
    assert uncounted.within({"k": [(0, 0)]}).files == 1


def test_of_one_column_files_are_left_that_overlap_a_range(numbers: DeltaLog) -> None:
    files = numbers.files()
    assert left(files, k=[(0, 0)]) == 1
    assert left(files, k=[(9, 10)]) == 2
    assert left(files, k=[(-5, 100)]) == 3
    assert left(files, k=[(30, 40)]) == 0
    assert left(files, k=[(-9, -1), (12, 13), (25, 99)]) == 2
    assert left(files, k=[]) == 0
    assert left(files) == 3


def sizes(log: DeltaLog) -> list[int]:
    """The bytes of the files, in the order in which they were written."""
    return [(Path(log.path) / path).stat().st_size for path in paths(log)]


def test_what_is_left_is_told_in_rows_and_bytes(numbers: DeltaLog) -> None:
    first, _, last = sizes(numbers)
    assert numbers.files().within({"k": [(-1, 9), (20, 30)]}) == TableSize(20, first + last, 2)


def test_of_a_file_the_share_of_its_numbers_that_overlaps_is_counted(numbers: DeltaLog) -> None:
    files, (first, second, last) = numbers.files(), sizes(numbers)
    assert files.within({"k": [(3, 3), (21, 22)]}) == TableSize(3, int(0.1 * first + 0.2 * last), 2)
    assert files.within({"k": [(-100, 4)]}) == TableSize(5, int(0.5 * first), 1)
    assert files.within({"k": [(8, 11)]}) == TableSize(4, int(0.2 * first + 0.2 * second), 2)
    assert files.within({"k": [(0, 1), (3, 4), (8, 9)]}) == TableSize(6, int(0.6 * first), 1)


def test_of_a_file_a_least_share_is_counted(tmp_path: Path) -> None:
    log = written(tmp_path / "t", {"k": range(1_000)})
    assert LEAST_SHARE > 0.001
    found = log.files().within({"k": [(500, 500)]})
    assert found == TableSize(int(LEAST_SHARE * 1_000), int(LEAST_SHARE * log.size().bytes), 1)


def test_of_several_columns_the_least_share_counts(numbers: DeltaLog) -> None:
    files, (first, *_) = numbers.files(), sizes(numbers)
    for other in ([(20, 20)], [("20", "20")]):
        assert files.within({"k": [(0, 2)], "j": other}) == TableSize(3, int(0.3 * first), 1)


def test_ranges_that_overlap_each_other_count_no_more_than_the_file(numbers: DeltaLog) -> None:
    first, *_ = sizes(numbers)
    assert numbers.files().within({"k": [(0, 9), (0, 9), (2, 5)]}) == TableSize(10, first, 1)


def test_files_are_counted_whole_where_their_numbers_are_not_known(tmp_path: Path) -> None:
    bare = written(tmp_path / "bare", {"k": [1, 2]}, {"k": [8, 9]}, statistics=False)
    assert bare.files().within({"k": [(1, 1)]}) == bare.size()
    nulls = written(tmp_path / "nulls", {"k": [None, None]})
    assert nulls.files().within({"k": [(1, 1)]}) == nulls.size()


@pytest.mark.parametrize(
    ("values", "pair"),
    [
        (["ant", "bee", "cat"], ("bee", "bee")),
        ([date(2026, 1, day) for day in (1, 15, 31)], ("2026-01-02", "2026-01-02")),
        ([1, 2, 3], ("2", "2")),
    ],
)
def test_only_whole_numbers_are_taken_to_be_spread_evenly(
    tmp_path: Path, values: Sequence[Any], pair: tuple[Any, Any]
) -> None:
    log = written(tmp_path / "t", {"k": values})
    assert log.files().within({"k": [pair]}) == log.size()


def test_who_changes_rows_of_a_file_reads_it_whole(numbers: DeltaLog) -> None:
    files, (first, _, last) = numbers.files(), sizes(numbers)
    assert files.size_within({"k": [(3, 3), (21, 22)]}) == TableSize(20, first + last, 2)
    assert files.size_within({}) == files.size


def test_files_that_overlap_are_told_as_one_stretch(tmp_path: Path) -> None:
    parts = [(30, 39), (0, 9), (12, 15), (9, 11), (50, 50), (31, 32), (20, 29)]
    log = written(tmp_path / "t", *({"k": ends} for ends in parts))
    found = log.files().apart("k")
    assert found is not None
    assert [(first, size.rows, size.files) for first, size in found] == [
        (0, 4, 2), (12, 2, 1), (20, 2, 1), (30, 4, 2), (50, 2, 1)
    ]  # fmt: skip
    assert added_up(size for _, size in found) == log.size()


def test_files_are_not_told_apart_if_a_value_is_null_or_unknown(tmp_path: Path) -> None:
    assert written(tmp_path / "nulls", {"k": [1, None]}, {"k": [5]}).files().apart("k") is None
    assert written(tmp_path / "bare", {"k": [1]}, {"k": [5]}, statistics=False).files().apart("k") is None
    assert written(tmp_path / "none", {"k": [None]}, {"k": [5]}).files().apart("k") is None


def test_the_paths_of_files_that_are_left_are_told_however_little_of_them_is(numbers: DeltaLog) -> None:
    files, (first, second, last) = numbers.files(), paths(numbers)
    assert files.paths_within({"k": [(3, 3)]}) == [first]
    assert set(files.paths_within({"k": [(9, 10)]})) == {first, second}
    assert set(files.paths_within({"j": [("0", "0")]})) == set(files.paths_within({})) == {first, second, last}
    assert files.paths_within({"k": [(30, 40)]}) == []


def test_files_have_to_overlap_in_all_columns(numbers: DeltaLog) -> None:
    files = numbers.files()
    assert left(files, k=[(0, 9)], j=[(20, 20)]) == 1
    assert left(files, k=[(0, 9)], j=[(0, 0)]) == 0
    assert left(files, k=[(0, 19)], j=[(10, 20)]) == 2


def test_days_are_asked_for_by_their_text(tmp_path: Path) -> None:
    months = [[date(2026, month, day) for day in (1, 28)] for month in (1, 2, 10)]
    files = written(tmp_path / "t", *({"d": days} for days in months)).files()
    assert left(files, d=[("2026-02-01", "2026-02-01")]) == 1
    assert left(files, d=[("2026-01-29", "2026-01-31")]) == 0
    assert left(files, d=[("2026-02-28", "2026-10-01")]) == 2
    assert left(files, d=[("0001-01-01", "9999-12-31")]) == 3


def test_texts_are_ordered_by_their_letters(tmp_path: Path) -> None:
    parts = (["Adam", "Zoe"], ["adam", "zoe"], ["ärger", "日本"], ["x" * 300, "y" * 300])
    files = written(tmp_path / "t", *({"s": values} for values in parts)).files()
    assert left(files, s=[("B", "C")]) == 1
    assert left(files, s=[("b", "c")]) == 1
    assert left(files, s=[("é", "é")]) == 1
    assert left(files, s=[("", "Aaron")]) == 0
    assert left(files, s=[("x" * 299, "y" * 400)]) == 2


@pytest.mark.parametrize("indexed", [False, True])
def test_without_statistics_any_file_may_hold_a_value(tmp_path: Path, indexed: bool) -> None:
    log = written(tmp_path / "t", {"k": [1, 2]}, {"k": [8, 9]}, statistics=indexed)
    files = log.files()
    assert left(files, k=[(1, 1)]) == (1 if indexed else 2)
    assert left(files, other=[(1, 1)]) == 2
    assert left(files, k=[(1, 1)], other=[(1, 1)]) == (1 if indexed else 2)


@pytest.mark.parametrize("pair", [("1", "1"), (b"1", b"1"), ("2026-01-01", "2026-01-02")])
def test_values_of_another_type_may_be_in_any_file(numbers: DeltaLog, pair: tuple[Any, Any]) -> None:
    assert left(numbers.files(), k=[pair]) == 3


def test_nulls_beside_values_make_no_difference_and_a_file_of_nulls_alone_has_no_range(tmp_path: Path) -> None:
    files = written(tmp_path / "t", {"k": [1, None, 2]}, {"k": [8, None]}).files()
    assert left(files, k=[(8, 8)]) == 1
    assert left(files, k=[(5, 6)]) == 0
    files = written(tmp_path / "t", {"k": [None, None]}).files()
    assert left(files, k=[(8, 8)]) == 2


def test_a_column_of_an_odd_name_has_ranges_too(tmp_path: Path) -> None:
    files = written(tmp_path / "t", {"odd.name": [1, 2]}, {"odd.name": [8, 9]}).files()
    assert files.within({"odd.name": [(1, 1)]}).files == 1


def test_days_that_python_does_not_know_may_be_in_any_file(tmp_path: Path) -> None:
    """Spark takes years from long ago, and from after 9999."""
    path, far = str(tmp_path / "t"), pa.array([4_000_000, 5_000_000], pa.int32()).cast(pa.date32())
    write_deltalake(path, pa.table({"d": far}))
    files, named = DeltaLog(path).files(), paths(DeltaLog(path))
    assert files.within({"d": [("2026-01-01", "2026-01-02")]}).files == 1
    assert files.spans("d", named) is None


@pytest.mark.parametrize(
    ("pair", "files"),
    [
        (("2026-06-01", "12921-08-05"), 2),
        (("-0009-01-01", "-0001-01-01"), 2),
        (("2026-12-31", "9999-12-31"), 1),
        (("0001-01-01", "2026-01-01"), 1),
    ],
)
def test_ranges_of_days_that_python_does_not_know_may_meet_any_file(
    tmp_path: Path, pair: tuple[str, str], files: int
) -> None:
    """Their texts are not in the order of the days."""
    log = written(tmp_path / "t", {"d": [date(2026, 1, 1)]}, {"d": [date(2027, 1, 1)]})
    assert left(log.files(), d=[pair]) == files


# Spans: in which ranges the values of given files lie


def test_spans_are_those_of_the_files_named(numbers: DeltaLog) -> None:
    files, (first, second, third) = numbers.files(), paths(numbers)
    assert files.spans("k", {second}) == ([(10, 19)], False)
    found = files.spans("k", {first, third})
    assert found is not None
    assert (sorted(found[0]), found[1]) == ([(0, 9), (20, 29)], False)
    assert files.spans("j", {third}) == ([(0, 0)], False)


def test_files_that_a_version_does_not_have_tell_nothing(numbers: DeltaLog) -> None:
    files, (first, *_) = numbers.files(), paths(numbers)
    assert files.spans("k", set()) == ([], False)
    assert files.spans("k", {"gone.parquet"}) == ([], False)
    assert files.spans("k", {"gone.parquet", first}) == ([(0, 9)], False)
    assert numbers.files(0).spans("k", set(paths(numbers))) == ([(0, 9)], False)


def test_spans_say_whether_a_null_is_among_the_values(tmp_path: Path) -> None:
    log = written(tmp_path / "t", {"k": [1, None, 2]}, {"k": [8, 9]}, {"k": [None, None]})
    files, (some, none, all_null) = log.files(), paths(log)
    assert files.spans("k", {some}) == ([(1, 2)], True)
    assert files.spans("k", {none}) == ([(8, 9)], False)
    assert files.spans("k", {all_null}) == ([], True)
    assert files.spans("k", {none, all_null}) == ([(8, 9)], True)


def test_spans_are_unknown_if_one_file_does_not_tell_them(tmp_path: Path, numbers: DeltaLog) -> None:
    log = written(tmp_path / "bare", {"k": [1, 2]}, {"k": [8, 9]}, statistics=False)
    assert log.files().spans("k", set(paths(log))) is None
    assert log.files().spans("k", set()) == ([], False)
    assert numbers.files().spans("other", set(paths(numbers))) is None


def test_a_column_that_came_later_is_unknown_in_files_from_before(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, pa.table({"k": [1]}))
    write_deltalake(path, pa.table({"k": [2], "j": [5]}), mode="append", schema_mode="merge")
    log = DeltaLog(path)
    before, after = paths(log)
    assert log.files().spans("j", {after}) == ([(5, 5)], False)
    assert log.files().spans("j", {before, after}) is None
    assert log.files(0).spans("j", {before}) is None


def test_files_in_folders_of_any_name_are_found(tmp_path: Path) -> None:
    """A log names files as addresses; a folder is named by the values of a partition."""
    path = str(tmp_path / "t")
    rows = pa.table({"k": [1, 2, 3], "city": ["Rome", "São Paulo", "100 % sure/not"]})
    write_deltalake(path, rows, partition_by=["city"])
    log = DeltaLog(path)
    found = log.files().spans("k", set(paths(log)))
    assert found is not None
    assert sorted(found[0]) == [(1, 1), (2, 2), (3, 3)]
