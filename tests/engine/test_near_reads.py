"""Pinned versions of which only some values are asked for: a small step reads only files that may hold them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.algebra.schema import Column
from strandline.engine import tables
from strandline.engine.session import Engine
from strandline.sql.names import literal, quoted

Limits = Mapping[str, Sequence[tuple[Any, Any]]]
TYPES = {int: pa.int64(), str: pa.string(), date: pa.date32()}


@pytest.fixture(params=[True, False], ids=["small", "not small"])
def step(request: pytest.FixtureRequest, engine: Engine) -> Iterator[tuple[Engine, bool]]:
    """Within a step, which is small or not."""
    with engine.step("t", "near", small=request.param):
        yield engine, request.param


def write(path: Path, column: str, *parts: Sequence[Any], **options: Any) -> None:
    """A file of a table for each of *parts*."""
    for values in parts:
        known = pa.array(values, TYPES[type(values[0])])
        write_deltalake(str(path), pa.table({column: known, "n": range(len(values))}), mode="append", **options)


def near(path: Path, column: str, type: str, limits: Limits) -> str:
    columns = (Column(column, type), Column("n", "bigint"))
    return tables.near(tables.select(str(path), DeltaTable(path).version(), columns), {"within": limits})


def read(engine: Engine, sql: str, column: str, low: str, high: str) -> tuple[list[Any], int]:
    """The values between two literals, and how many files were read for them."""
    frame = engine._frame(f"SELECT {quoted(column)} FROM ({sql}) WHERE {quoted(column)} BETWEEN {low} AND {high}")
    return sorted(row[0] for row in frame.collect()), len(frame.inputFiles())


TENS = [range(start, start + 10) for start in (0, 10, 20, 30)]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("low", "high", "files"), [(12, 15, 1), (9, 10, 2), (0, 39, 4), (39, 99, 1)], ids=["one", "two", "all", "last"]
)
def test_only_files_that_may_hold_the_values_are_read(
    step: tuple[Engine, bool], tmp_path: Path, low: int, high: int, files: int
) -> None:
    engine, small = step
    write(tmp_path / "t", "k", *TENS)
    wanted = [k for k in range(40) if low <= k <= high]
    for limits, least in (({"k": [(low, high)]}, files), ({}, 4)):
        values, read_files = read(engine, near(tmp_path / "t", "k", "bigint", limits), "k", str(low), str(high))
        assert values == wanted
        if small:
            assert read_files == least


@pytest.mark.spark
def test_where_no_file_may_hold_them_there_are_no_rows(step: tuple[Engine, bool], tmp_path: Path) -> None:
    engine, _ = step
    write(tmp_path / "t", "k", *TENS)
    sql = near(tmp_path / "t", "k", "bigint", {"k": [(50, 60)]})
    assert read(engine, sql, "k", "50", "60")[0] == []
    assert [name for name, _ in engine._frame(sql).dtypes] == ["k", "n"]


@pytest.mark.spark
def test_versions_that_are_read_near_and_as_a_whole_are_kept_apart(step: tuple[Engine, bool], tmp_path: Path) -> None:
    """Also within one statement."""
    engine, _ = step
    write(tmp_path / "t", "k", *TENS)
    texts = [near(tmp_path / "t", "k", "bigint", limits) for limits in ({"k": [(12, 12)]}, {}, {"k": [(33, 33)]})]
    counts = [f"(SELECT count(*) FROM ({sql}) WHERE k IN (12, 33))" for sql in texts]
    met = [f"(SELECT count(*) FROM ({sql}) WHERE k = {k})" for sql, k in ((texts[0], 12), (texts[2], 33))]
    found = engine.rows(f"SELECT {', '.join([*met, counts[1]])}")
    assert found == [(1, 1, 2)]


@pytest.mark.spark
def test_several_columns_have_to_meet(step: tuple[Engine, bool], tmp_path: Path) -> None:
    engine, small = step
    for start in (0, 10, 20):
        rows = pa.table({"k": range(start, start + 10), "j": [20 - start] * 10})
        write_deltalake(str(tmp_path / "t"), rows, mode="append")
    columns = (Column("k", "bigint"), Column("j", "bigint"))
    sql = tables.near(tables.select(str(tmp_path / "t"), 2, columns), {"within": {"k": [(0, 19)], "j": [(10, 10)]}})
    frame = engine._frame(f"SELECT k FROM ({sql}) WHERE k BETWEEN 0 AND 19 AND j = 10")
    assert sorted(row[0] for row in frame.collect()) == list(range(10, 20))
    if small:
        assert len(frame.inputFiles()) == 1


QUOTES = ["it's", 'say "so"', "back`tick", "back\\slash"]
COMMENTS = ["a */ b", "a /* b", "*", "-- x"]


@pytest.mark.spark
@pytest.mark.parametrize("text", [*QUOTES, *COMMENTS, "${x}", "{a}", "new\nline", "ärger"])
def test_texts_may_hold_any_letters(step: tuple[Engine, bool], tmp_path: Path, text: str) -> None:
    engine, small = step
    write(tmp_path / "t", "s", ["\x01", "\x02"], [text], ["\U0001f600", "\U0001f601"])
    sql = near(tmp_path / "t", "s", "string", {"s": [(text, text)]})
    values, files = read(engine, sql, "s", literal(text), literal(text))
    assert values == [text]
    if small:
        assert files == 1


@pytest.mark.spark
@pytest.mark.parametrize("name", [*QUOTES, *COMMENTS, "a.b", "VERSION AS OF 1", "Ärger"])
def test_columns_may_have_any_name(step: tuple[Engine, bool], tmp_path: Path, name: str) -> None:
    engine, small = step
    write(tmp_path / "t", name, *TENS)
    values, files = read(engine, near(tmp_path / "t", name, "bigint", {name: [(12, 15)]}), name, "12", "15")
    assert values == [12, 13, 14, 15]
    if small:
        assert files == 1


@pytest.mark.spark
def test_days_are_given_by_their_text(step: tuple[Engine, bool], tmp_path: Path) -> None:
    engine, small = step
    write(tmp_path / "t", "d", *([date(2026, month, day) for day in (1, 28)] for month in (1, 2, 10)))
    sql = near(tmp_path / "t", "d", "date", {"d": [("2026-02-01", "2026-02-03")]})
    values, files = read(engine, sql, "d", "DATE '2026-02-01'", "DATE '2026-02-03'")
    assert values == [date(2026, 2, 1)]
    if small:
        assert files == 1


@pytest.mark.spark
def test_ranges_of_days_may_end_after_the_year_9999(step: tuple[Engine, bool], tmp_path: Path) -> None:
    """Their texts are not in the order of the days."""
    engine, _ = step
    write(tmp_path / "t", "d", [date(2026, 1, 1)], [date(2027, 1, 1)])
    sql = near(tmp_path / "t", "d", "date", {"d": [("2026-06-01", "12921-08-05")]})
    frame = engine._frame(f"SELECT d FROM ({sql}) WHERE d >= DATE '2026-06-01'")
    assert [row[0] for row in frame.collect()] == [date(2027, 1, 1)]


@pytest.mark.spark
@pytest.mark.parametrize("kind", ["partitions", "deletion vectors"])
def test_tables_whose_files_are_not_their_rows_are_left_to_spark(
    step: tuple[Engine, bool], tmp_path: Path, kind: str
) -> None:
    engine, _ = step
    path = tmp_path / "t"
    if kind == "partitions":
        for part in TENS:
            rows = pa.table({"k": part, "n": [part[0]] * 10})
            write_deltalake(str(path), rows, mode="append", partition_by=["n"])
    else:
        write(path, "k", *TENS)
        table = f"delta.{quoted(str(path))}"
        engine.run(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
        engine.run(f"DELETE FROM {table} WHERE k = 13")
    version = max(int(found.stem) for found in (path / "_delta_log").glob("*.json"))
    columns = (Column("k", "bigint"), Column("n", "bigint"))
    sql = tables.near(tables.select(str(path), version, columns), {"within": {"k": [(12, 15)]}})
    assert "/* near" in sql
    values, _ = read(engine, sql, "k", "12", "15")
    assert values == ([12, 13, 14, 15] if kind == "partitions" else [12, 14, 15])


@pytest.mark.spark
def test_what_is_read_near_is_counted_with_its_version(engine: Engine, tmp_path: Path) -> None:
    write(tmp_path / "t", "k", *TENS)
    sql = near(tmp_path / "t", "k", "bigint", {"k": [(12, 15)]})
    with engine.step("t", "near", small=True) as metrics:
        assert read(engine, sql, "k", "12", "15")[0] == [12, 13, 14, 15]
    assert metrics.tables == ((str(tmp_path / "t"), 3),)
    assert [scan.files for scan in metrics.scans] == [1]


def test_without_limits_a_text_stays_as_it_is() -> None:
    sql = tables.select("/lake/t", 3, (Column("k", "bigint"),))
    assert tables.near(sql, {"within": {}}) == sql
    assert tables.near(sql, {"within": {"k": [(1, 2)]}}).startswith(sql)


@pytest.mark.parametrize("value", ["a /* b", "a */ b", "/*", "*/", "/*+ hint", "*"])
def test_no_value_begins_or_ends_a_comment(value: str) -> None:
    sql = tables.select("/lake/t", 3, (Column("k", "string"),))
    added = tables.near(sql, {"within": {"k": [(value, value)]}}).removeprefix(sql)
    assert (added.count("/*"), added.count("*/")) == (1, 1)
