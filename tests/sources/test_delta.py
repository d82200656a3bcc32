"""Delta tables as a source: what their own life does to the changes they give."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.algebra.bag import Row
from strandline.algebra.schema import Column, Schema, names
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.delta import DeltaSource
from strandline.sources.protocol import Position
from strandline.sql.names import quoted
from tests.conftest import bag
from tests.sources.conformance import (
    NULLS,
    PLAIN,
    QUOTES,
    WIDE,
    Delete,
    Insert,
    Replace,
    SqlHarness,
    Transaction,
    Update,
    WrittenHarness,
    begin,
    netted,
    read_changes,
)
from tests.sources.test_conformance import RANDOM, assert_replayed

KV: Schema = (Column("k", "bigint"), Column("v", "string"))


@pytest.fixture
def source(tmp_path: Path) -> Iterator[DeltaSource]:
    """The tables below a folder, with an engine that must not be needed: looking at a log starts no session."""
    engine = Engine()
    yield DeltaSource("src", engine, path=str(tmp_path))
    assert not engine.started


def write(path: Path | str, *rows: tuple[int, str], mode: str = "append", feed: bool = False) -> None:
    """Rows of ``k`` and ``v`` into a Delta table, which is made if it is not there."""
    table = pa.table({"k": pa.array([k for k, _ in rows], pa.int64()), "v": [v for _, v in rows]})
    properties = {"delta.enableChangeDataFeed": "true"} if feed else None
    write_deltalake(str(path), table, mode=mode, configuration=properties)  # type: ignore[call-overload]


def at(source: DeltaSource, table: str, version: int) -> Position:
    """The position of a table at an earlier version of it."""
    position = source.position(table)
    assert isinstance(position, dict)
    return {**position, "version": version}


def changed(engine: Engine, source: DeltaSource, table: str, first: int, last: int, columns: Schema = KV) -> set[Row]:
    """The net changes between two versions: rows with their multiplicity."""
    sql = source.changes(table, at(source, table, first), at(source, table, last), columns)
    net = netted((tuple(row), sign, position) for *row, sign, position in engine.rows(sql))
    return {(*row, count) for row, count in net.items()}


def all_changed(
    engine: Engine, source: DeltaSource, table: str, *intervals: tuple[int, int]
) -> dict[tuple[int, int], set[Row]]:
    """The net changes of several intervals, by one query."""
    parts = []
    for first, last in intervals:
        sql = source.changes(table, at(source, table, first), at(source, table, last), KV)
        parts.append(f"SELECT {first}, {last}, k, v, __sign FROM ({sql})")
    rows = engine.rows(" UNION ALL ".join(parts))
    net = {pair: netted(((k, v), sign, 0) for a, b, k, v, sign in rows if (a, b) == pair) for pair in intervals}
    return {pair: {(*row, count) for row, count in bag.items()} for pair, bag in net.items()}


def held(engine: Engine, source: DeltaSource, table: str, columns: Schema = KV) -> list[Row]:
    """The rows of a table now."""
    return sorted(engine.rows(source.snapshot(table, source.position(table), columns)))


# --- What is and is not a change


@pytest.mark.spark
def test_compaction_is_no_change(small: Engine, tmp_path: Path) -> None:
    harness = WrittenHarness(small, tmp_path, change_feed=True)
    history = begin(harness).run([Insert((PLAIN, NULLS)), Insert((PLAIN,))])
    small.run(f"OPTIMIZE delta.{quoted(harness.path)}")
    history.note(history.states[-1])
    assert history.positions[2] != history.positions[3]
    peek = harness.source.peek("t", history.positions[2], history.positions[3])
    assert [t.changes_data for t in peek.transactions] == [False]
    assert not peek.changes_data and peek.insert_only and peek.rows == 0 and peek.gap is None
    found = read_changes(small, history, [(2, 3), (0, 3)])
    assert found[2, 3] == [] and netted(found[0, 3]) == bag([PLAIN, PLAIN, NULLS])
    assert harness.source.peek("t", history.positions[0], history.positions[3]).insert_only


@pytest.mark.spark
def test_a_change_feed_that_was_not_always_on_is_not_relied_on(small: Engine, tmp_path: Path) -> None:
    harness = WrittenHarness(small, tmp_path, change_feed=False)
    history = begin(harness).run([Insert((PLAIN, QUOTES))])
    for on in (True, False, True):
        harness.set_change_feed(on)
        history.note(history.states[-1])
        history.run([Update(1, f"feed {on}")])
    # Off, then on in the middle; on, off and on again in the middle; on from the beginning.
    assert_replayed(small, history, [(0, 3), (2, 7), (6, 7)])
    peek = harness.source.peek("t", history.positions[0], history.positions[-1])
    assert [t.changes_data for t in peek.transactions] == [True, False, True, False, True, False, True]
    assert all(t.columns is None for t in peek.transactions), "a property is not a schema"


@pytest.mark.spark
@pytest.mark.parametrize("little", [True, False])
def test_versions_are_compared_by_the_files_that_only_one_of_them_has(
    small: Engine, tmp_path: Path, little: bool
) -> None:
    source = DeltaSource("src", small, path=str(tmp_path))
    write(tmp_path / "t", (1, "a"), (1, "a"))
    write(tmp_path / "t", (2, "b"), (3, "c"))
    DeltaTable(tmp_path / "t").delete("k = 2")
    write(tmp_path / "t", (1, "a"))
    common = set(DeltaTable(tmp_path / "t", version=0).file_uris())
    both = {file for version in (1, 3) for file in DeltaTable(tmp_path / "t", version=version).file_uris()}
    with small.step("t", "compare", small=little):
        assert changed(small, source, "t", 1, 3) == {(2, "b", -1), (1, "a", 1)}
        sql = source.changes("t", at(source, "t", 1), at(source, "t", 3), KV)
        read = {file.removeprefix("file://") for file in small._frame(sql).inputFiles()}
        assert read == both - common
    # Marked rows are not in the files: then all files of both are read.
    marks = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    small.run(f"ALTER TABLE delta.{quoted(str(tmp_path / 't'))} SET {marks}")
    small.run(f"DELETE FROM delta.{quoted(str(tmp_path / 't'))} WHERE k = 3")
    with small.step("t", "compare", small=little):
        last = DeltaTable(tmp_path / "t").version()
        assert changed(small, source, "t", 1, last) == {(2, "b", -1), (3, "c", -1), (1, "a", 1)}


@pytest.mark.spark
@pytest.mark.parametrize("by_spark", [True, False], ids=["by Spark", "by deltalake"])
def test_restoring_an_older_version_is_an_ordinary_change(small: Engine, tmp_path: Path, by_spark: bool) -> None:
    write(tmp_path / "t", (1, "a"), (2, "b"), (2, "b"), feed=True)
    write(tmp_path / "t", (3, "c"))
    DeltaTable(tmp_path / "t").delete("k = 2")
    if by_spark:
        small.run(f"RESTORE TABLE delta.{quoted(str(tmp_path / 't'))} TO VERSION AS OF 0")
    else:
        DeltaTable(tmp_path / "t").restore(0)
    source = DeltaSource("src", small, path=str(tmp_path))
    assert all_changed(small, source, "t", (2, 3), (0, 3)) == {
        (2, 3): {(2, "b", 2), (3, "c", -1)},
        (0, 3): set(),
    }
    peek = source.peek("t", at(source, "t", 2), at(source, "t", 3))
    assert peek.changes_data and not peek.insert_only and peek.gap is None


@pytest.mark.spark
def test_spark_and_another_writer_may_take_turns(small: Engine, tmp_path: Path) -> None:
    harness = WrittenHarness(small, tmp_path, change_feed=True)
    by_spark = SqlHarness(small, f"delta.{quoted(harness.path)}", harness.source)
    history = begin(harness)
    for writer, transaction in (
        (harness, Insert((PLAIN, PLAIN, QUOTES))),
        (by_spark, Replace((2,), (NULLS, WIDE))),
        (harness, Update(1, "it's")),
        (by_spark, Delete(1)),
    ):
        history.harness = writer
        history.run([transaction])
    assert_replayed(small, history, [(0, 4), (1, 3)])


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    feed=st.booleans(),
    steps=st.lists(st.one_of(RANDOM, RANDOM, st.sampled_from(["feed", "compact", "restore"])), min_size=2, max_size=6),
    data=st.data(),
)
@pytest.mark.spark
def test_any_history_of_a_delta_table_can_be_replayed(
    small: Engine, feed: bool, steps: list[Transaction | str], data: st.DataObject
) -> None:
    with TemporaryDirectory() as folder:
        harness = WrittenHarness(small, Path(folder), change_feed=feed)
        history = begin(harness)
        for step in steps:
            if not isinstance(step, str):
                history.run([step])
                continue
            rows = history.states[-1]
            if step == "feed":
                feed = not feed
                harness.set_change_feed(feed)
            elif step == "compact":
                harness.table.optimize.compact()
            else:
                place = data.draw(st.integers(0, len(history.positions) - 1), label="restored")
                position = history.positions[place]
                assert isinstance(position, dict) and isinstance(position["version"], int)
                if position == history.positions[-1]:
                    continue
                harness.table.restore(position["version"])
                rows = history.states[place]
                # The properties of the older version come back with it.
                feed = DeltaTable(harness.path).metadata().configuration.get("delta.enableChangeDataFeed") == "true"
            history.note(rows)
        last = len(history.positions) - 1
        first = data.draw(st.integers(0, last), label="first")
        assert_replayed(small, history, [(first, last)])


# --- Deletion vectors and what VACUUM takes away


@pytest.mark.spark
def test_deletion_vectors_and_vacuum(small: Engine, tmp_path: Path) -> None:
    table = f"delta.{quoted(str(tmp_path / 't'))}"
    small.run(
        f"CREATE TABLE {table} (k bigint, v string) USING delta "
        "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true', 'delta.enableChangeDataFeed' = 'true')"
    )
    small.run(f"INSERT INTO {table} SELECT /*+ COALESCE(1) */ id, 'v' FROM range(5)")
    small.run(f"DELETE FROM {table} WHERE k = 1")
    small.run(f"DELETE FROM {table} WHERE k = 2")
    source = DeltaSource("src", small, path=str(tmp_path))
    assert list(tmp_path.glob("t/deletion_vector_*.bin"))
    assert all_changed(small, source, "t", (1, 3), (2, 3)) == {
        (1, 3): {(1, "v", -1), (2, "v", -1)},
        (2, 3): {(2, "v", -1)},
    }
    assert source.peek("t", at(source, "t", 1), at(source, "t", 3)).gap is None
    assert not source.peek("t", at(source, "t", 1), at(source, "t", 3)).insert_only

    small.worker.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
    try:
        small.run(f"VACUUM {table} RETAIN 0 HOURS")
    finally:
        small.worker.conf.unset("spark.databricks.delta.retentionDurationCheck.enabled")
    # The data file is still there: what is missing is the vector that said which of its rows version 2 had.
    gap = source.peek("t", at(source, "t", 2), source.position("t")).gap
    assert gap is not None and gap.code == "CHANGE_FEED_GAP"
    assert "src.t no longer holds all versions from 2 to" in gap.text
    assert held(small, source, "t") == [(0, "v"), (3, "v"), (4, "v")]


@pytest.mark.parametrize("feed", [True, False], ids=["feed", "no feed"])
def test_vacuumed_files_are_a_gap(source: DeltaSource, tmp_path: Path, feed: bool) -> None:
    write(tmp_path / "t", (1, "a"), (2, "b"), feed=feed)
    write(tmp_path / "t", (3, "c"))
    DeltaTable(tmp_path / "t").delete("k = 1")
    table = DeltaTable(tmp_path / "t")
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    gap = source.peek("t", at(source, "t", 1), at(source, "t", 2)).gap
    assert gap is not None and gap.code == "CHANGE_FEED_GAP"
    # What came after it can still be given.
    now = source.position("t")
    write(tmp_path / "t", (4, "d"))
    peek = source.peek("t", now, source.position("t"))
    assert peek.gap is None and peek.insert_only and peek.rows == 1


def test_vacuum_after_compaction_alone_takes_nothing_that_is_needed(source: DeltaSource, tmp_path: Path) -> None:
    write(tmp_path / "t", (1, "a"))
    write(tmp_path / "t", (2, "b"))
    before = source.position("t")
    DeltaTable(tmp_path / "t").optimize.compact()
    DeltaTable(tmp_path / "t").vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    peek = source.peek("t", before, source.position("t"))
    assert peek.gap is None and not peek.changes_data
    # But a change before the compaction is lost with the files that held it.
    gap = source.peek("t", at(source, "t", 0), source.position("t")).gap
    assert gap is not None and gap.code == "CHANGE_FEED_GAP"


def test_a_log_that_was_cleaned_up_is_a_gap(source: DeltaSource, tmp_path: Path) -> None:
    for number in range(4):
        write(tmp_path / "t", (number, "a"))
    before = at(source, "t", 0)
    DeltaTable(tmp_path / "t").create_checkpoint()
    for version in range(3):
        (tmp_path / "t" / "_delta_log" / f"{version:020d}.json").unlink()
    gap = source.peek("t", before, source.position("t")).gap
    assert gap is not None and gap.code == "CHANGE_FEED_GAP"
    # The commit itself is there, the version before it is not.
    gap = source.peek("t", at(source, "t", 2), source.position("t")).gap
    assert gap is not None and gap.code == "CHANGE_FEED_GAP"


def test_going_back_is_a_gap(source: DeltaSource, tmp_path: Path) -> None:
    write(tmp_path / "t", (1, "a"))
    write(tmp_path / "t", (2, "b"))
    gap = source.peek("t", at(source, "t", 1), at(source, "t", 0)).gap
    assert gap is not None and gap.code == "CHANGE_FEED_GAP"


def test_partitions_with_odd_values_are_found(source: DeltaSource, tmp_path: Path) -> None:
    rows = pa.table({"k": [1, 2, 3, 4], "v": ["a b", "a:b/c%", "ü", None]})
    write_deltalake(str(tmp_path / "t"), rows, partition_by=["v"])
    DeltaTable(tmp_path / "t").delete("k >= 1")
    assert source.peek("t", at(source, "t", 0), at(source, "t", 1)).gap is None
    assert source.size("t", at(source, "t", 0)).rows == 4
    assert source.size("t", at(source, "t", 1)).rows == 0


# --- Schemas


@pytest.mark.spark
def test_other_columns_may_come_and_go(small: Engine, tmp_path: Path) -> None:
    table = f"delta.{quoted(str(tmp_path / 't'))}"
    write(tmp_path / "t", (1, "a"), (2, "b"), feed=True)
    more = pa.table({"k": pa.array([3], pa.int64()), "v": ["c"], "w": ["x"]})
    write_deltalake(str(tmp_path / "t"), more, mode="append", schema_mode="merge")
    for statement in (
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name')",
        f"INSERT INTO {table} VALUES (4, 'd', 'y')",
        f"ALTER TABLE {table} RENAME COLUMN w TO `odd name`",
        f"UPDATE {table} SET v = 'B' WHERE k = 2",
        f"ALTER TABLE {table} DROP COLUMN `odd name`",
    ):
        small.run(statement)
    source = DeltaSource("src", small, path=str(tmp_path))
    updated = {(2, "b", -1), (2, "B", 1)}
    assert all_changed(small, source, "t", (0, 1), (1, 3), (3, 5), (0, 6)) == {
        (0, 1): {(3, "c", 1)},
        (1, 3): {(4, "d", 1)},
        (3, 5): updated,
        (0, 6): {(3, "c", 1), (4, "d", 1)} | updated,
    }
    peek = source.peek("t", at(source, "t", 0), at(source, "t", 6))
    columns = {t.txid: None if t.columns is None else names(t.columns) for t in peek.transactions}
    assert columns == {
        "1": ("k", "v", "w"),
        "2": None,
        "3": None,
        "4": ("k", "v", "odd name"),
        "5": None,
        "6": ("k", "v"),
    }
    assert [t.changes_data for t in peek.transactions] == [True, False, True, False, True, False]


@pytest.mark.spark
def test_another_type_of_an_unused_column_does_not_disturb(small: Engine, tmp_path: Path) -> None:
    write(tmp_path / "t", (1, "a"), feed=True)
    replaced = pa.table({"k": ["x"], "v": ["b"]})
    write_deltalake(str(tmp_path / "t"), replaced, mode="overwrite", schema_mode="overwrite")
    source = DeltaSource("src", small, path=str(tmp_path))
    assert changed(small, source, "t", 0, 1, KV[1:]) == {("a", -1), ("b", 1)}
    transaction = source.peek("t", at(source, "t", 0), at(source, "t", 1)).transactions[0]
    assert transaction.columns == (Column("k", "string"), Column("v", "string"))


# --- Where tables are, and are not


@pytest.mark.spark
def test_a_table_made_anew_is_another_table(small: Engine, tmp_path: Path) -> None:
    source = DeltaSource("src", small, path=str(tmp_path))
    write(tmp_path / "t", (1, "a"))
    before = source.position("t")
    assert held(small, source, "t") == [(1, "a")]
    shutil.rmtree(tmp_path / "t")
    write(tmp_path / "t", (2, "b"))
    gap = source.peek("t", before, source.position("t")).gap
    assert gap is not None and gap.code == "SOURCE_TABLE_REPLACED" and "src.t" in gap.text
    # Within a step a version is what it was; a refresh reads the new table in a step of its own.
    with small.step("tests", "anew", small=True):
        assert held(small, source, "t") == [(2, "b")]


def test_what_is_left_of_a_plan_does_not_read_the_table_that_took_the_place_of_another(
    source: DeltaSource, tmp_path: Path
) -> None:
    write(tmp_path / "t", (1, "a"), feed=True)
    write(tmp_path / "t", (2, "b"))
    before, upto = at(source, "t", 0), source.position("t")
    shutil.rmtree(tmp_path / "t")
    for row in ((100, "x"), (200, "y"), (300, "z")):
        write(tmp_path / "t", row, feed=True)
        with pytest.raises(SourceError, match=r"\[SOURCE_TABLE_REPLACED\] src\.t was dropped and made anew"):
            source.changes("t", before, upto, KV)
        with pytest.raises(SourceError, match="SOURCE_TABLE_REPLACED"):
            source.snapshot("t", upto, KV)
    assert "VERSION AS OF 2" in source.snapshot("t", source.position("t"), KV)


@pytest.mark.spark
def test_an_interval_has_the_types_of_its_end(small: Engine, tmp_path: Path) -> None:
    write(tmp_path / "t", (1, "5"), feed=True)
    write(tmp_path / "t", (2, "07"))
    source = DeltaSource("src", small, path=str(tmp_path))
    before, upto = at(source, "t", 0), source.position("t")
    later = pa.table({"k": pa.array([1], pa.int64()), "v": pa.array([1], pa.int32())})
    write_deltalake(str(tmp_path / "t"), later, mode="overwrite", schema_mode="overwrite")
    sql = source.changes("t", before, upto, KV)
    assert [tuple(row)[:3] for row in small.rows(sql)] == [(2, "07", 1)]


def test_a_table_whose_folder_was_removed_is_gone(source: DeltaSource, tmp_path: Path) -> None:
    write(tmp_path / "t", (1, "a"))
    write(tmp_path / "other", (1, "a"))
    source.position("t")
    shutil.rmtree(tmp_path / "t")
    assert list(source.tables()) == ["other"]
    with pytest.raises(SourceError) as error:
        source.position("t")
    assert error.value.code == "SOURCE_TABLE_GONE"
    assert f"src.t was at {tmp_path}/t" in error.value.message and "src has other." in error.value.message
    shutil.rmtree(tmp_path / "other")
    tmp_path.rmdir()
    with pytest.raises(SourceError, match=r"\[SOURCE_TABLE_GONE\] src\.t was at .*; src has none\."):
        source.position("t")
    tmp_path.mkdir()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"\[SOURCE_PATH_MISSING\] source src is declared at .*/nowhere"):
        DeltaSource("src", Engine(), path=str(tmp_path / "nowhere")).check()
    assert not (tmp_path / "nowhere").exists()


def test_a_folder_without_delta_tables_is_refused(source: DeltaSource, tmp_path: Path) -> None:
    (tmp_path / "parquet").mkdir()
    with pytest.raises(SourceError, match=r"\[NOT_DELTA\] source src .*\(there are: parquet\)"):
        source.check()
    write(tmp_path / "t", (1, "a"))
    source.check()
    assert list(source.tables()) == ["t"]


def test_folders_that_are_no_tables_are_not_listed(source: DeltaSource, tmp_path: Path) -> None:
    for name in ("b", "a", "_hidden", ".hidden", "odd name"):
        write(tmp_path / name, (1, "a"))
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").touch()
    assert list(source.tables()) == ["a", "b", "odd name"]


@pytest.mark.spark
def test_tables_may_be_given_by_path(small: Engine, tmp_path: Path) -> None:
    write(tmp_path / "x" / "odd 'folder' `tick`", (1, "a"), feed=True)
    write(tmp_path / "x" / "odd 'folder' `tick`", (2, "b"))
    path = str(tmp_path / "x" / "odd 'folder' `tick`")
    source = DeltaSource("src", small, tables={"t": path}, keys={"t": ("k",)})
    source.check()
    info = source.tables()["t"]
    assert (info.name, info.columns, info.key, info.location) == ("t", KV, ("k",), path)
    assert held(small, source, "t") == [(1, "a"), (2, "b")]
    assert changed(small, source, "t", 0, 1) == {(2, "b", 1)}
    with pytest.raises(SourceError, match=r"\[UNKNOWN_TABLE\] source src has no table x; it has t\."):
        source.position("x")


def test_a_path_without_a_delta_table_is_refused(tmp_path: Path) -> None:
    source = DeltaSource("src", Engine(), tables={"t": str(tmp_path / "t")})
    with pytest.raises(SourceError, match=r"\[NOT_DELTA\] src\.t is declared at .*/t, and no Delta table is there"):
        source.check()
    assert source.tables() == {}


@pytest.mark.spark
def test_tables_of_the_catalog_must_be_there_and_be_delta(small: Engine, tmp_path: Path) -> None:
    small.run(f"CREATE TABLE default.strandline_parquet (k int) USING parquet LOCATION '{tmp_path}/p'")
    try:
        with pytest.raises(SourceError, match=r"\[NOT_DELTA\] default.strandline_parquet is a parquet table"):
            DeltaSource("src", small, tables={"t": "default.strandline_parquet"}).check()
    finally:
        small.run("DROP TABLE default.strandline_parquet")
    with pytest.raises(SourceError, match=r"\[SOURCE_TABLE_MISSING\] src\.t is declared as default\.nowhere"):
        DeltaSource("src", small, tables={"t": "default.nowhere"}).check()


def test_a_known_location_needs_no_catalog(tmp_path: Path) -> None:
    write(tmp_path / "t", (1, "a"))
    engine = Engine()
    source = DeltaSource("src", engine, tables={"t": "default.t"}, known_locations={"t": str(tmp_path / "t")})
    source.check()
    assert source.tables()["t"].columns == KV
    assert source.position("t") == at(source, "t", 0)
    assert not engine.started
