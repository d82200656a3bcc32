"""Rows marked as deleted without Spark: delta-rs, Spark and our own readers see the same rows, at every version."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.engine import opened as opening
from strandline.engine import seeking, vectors
from strandline.engine.delta_log import DeltaLog
from strandline.engine.little import PinnedReads
from strandline.engine.opened import opened
from strandline.engine.seeking import Seeking
from strandline.engine.session import Engine

SIZES = (5, 70_000)
"""Rows of files; a bitmap has a part for each 65,536 places."""


def make(folder: Path, *sizes: int) -> Path:
    """A table with vectors, and a file of consecutive numbers for each size."""
    for number, size in enumerate(sizes):
        first = sum(sizes[:number])
        write_deltalake(str(folder), numbered(range(first, first + size)), mode="append")
    DeltaTable(str(folder)).alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)
    return folder


def numbered(values: range) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64()), "v": [f"v{value}" for value in values]})


def marked(folder: Path, places: dict[str, list[int]], said: str = "step") -> int:
    """Mark rows of the newest version, by the names of files."""
    known = opened(str(folder))
    version = known.table.version() + 1
    asked = {path: np.array(found) for path, found in places.items()}
    vectors.marks(folder, version - 1, asked, known.deleted).commit(version, said)
    return version


def places_of(folder: Path, keys: set[int]) -> dict[str, list[int]]:
    """Where in files the rows of *keys* are that count."""
    known, found = opened(str(folder)), {}
    for path in known.files.paths:
        stored = pq.read_table(folder / path).column("k").to_pylist() if (folder / path).exists() else []
        gone = set(known.deleted.get(path, np.empty(0)).tolist())
        there = [place for place, key in enumerate(stored) if key in keys and place not in gone]
        if there:
            found[path] = there
    return found


def by_delta_rs(folder: Path, version: int) -> Counter[int]:
    return Counter(pa.table(DeltaTable(str(folder), version=version).scan(columns=["k"]).read_all())["k"].to_pylist())


def by_us(folder: Path, version: int, keys: range) -> tuple[Counter[int], Counter[int]]:
    """All rows of a version, and those of some keys that are sought in it, which columns are arranged for."""
    whole = PinnedReads(None, {}, feeds=False).rows(str(folder), version, ["k", "v"], {}, {})  # type: ignore[arg-type]
    assert whole is not None
    assert whole.column("v").to_pylist() == [f"v{key}" for key in whole.column("k").to_pylist()]
    told = {"other": version}
    met = {"k": pa.chunked_array([pa.array(keys, pa.int64())])}
    with mock.patch.multiple(seeking, LEAST_ROWS=-1, MOST_SHARE=1.0):
        found = Seeking(folder.parent / "kept", None).meeting(str(folder), version, told, ["k", "v"], met)
    assert found is not None
    return Counter(whole.column("k").to_pylist()), Counter(found.column("k").to_pylist())


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_all_see_the_rows_that_are_left_at_every_version(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place, mock.patch.object(vectors, "CHECKPOINT_EVERY", 3):
        folder = make(Path(place, "t"), *data.draw(st.lists(st.sampled_from((1, 3, 8)), min_size=1, max_size=3)))
        model = {DeltaTable(str(folder)).version(): set(range(DeltaTable(str(folder)).count()))}
        for _ in range(data.draw(st.integers(1, 6))):
            now = model[max(model)]
            if data.draw(st.booleans()) and now:
                gone = data.draw(st.sets(st.sampled_from(sorted(now)), min_size=1))
                version = marked(folder, places_of(folder, gone))
                model[version] = now - gone
            else:
                first = 1 + max(max(model.values(), key=lambda keys: max(keys, default=0)), default=0)
                first = max([first, *(1 + key for keys in model.values() for key in keys)])
                write_deltalake(
                    str(folder), numbered(range(first, first + data.draw(st.integers(1, 4)))), mode="append"
                )
                version = DeltaTable(str(folder)).version()
                model[version] = now | set(by_delta_rs(folder, version))
            for each, keys in model.items():
                some = range(0, 12)
                assert by_delta_rs(folder, each) == Counter(keys)
                assert by_us(folder, each, some) == (Counter(keys), Counter(keys & set(some)))


def test_a_folder_may_have_any_name(tmp_path: Path) -> None:
    folder = make(tmp_path / "a b#?ä+" / "t", 3, 3)
    version = marked(folder, places_of(folder, {1, 4}))
    assert by_delta_rs(folder, version) == Counter({0, 2, 3, 5})
    assert by_us(folder, version, range(2)) == (Counter({0, 2, 3, 5}), Counter({0}))


def test_rows_of_large_files_are_marked_again_and_again(tmp_path: Path) -> None:
    folder, left = make(tmp_path / "t", *SIZES), set(range(sum(SIZES)))
    chance = np.random.default_rng(7)
    for _ in range(4):
        gone = set(chance.choice(sorted(left), 9_000, replace=False).tolist())
        version = marked(folder, places_of(folder, gone))
        left -= gone
        assert by_delta_rs(folder, version) == Counter(left)
    assert by_us(folder, version, range(65_000, 66_000)) == (Counter(left), Counter(left & set(range(65_000, 66_000))))


def test_a_commit_carries_what_is_said_and_no_two_are_of_one_version(tmp_path: Path) -> None:
    folder = make(tmp_path / "t", 3)
    (path,) = opened(str(folder)).files.paths
    version = marked(folder, {path: [1]}, "strandline:7")
    (commit,) = DeltaLog(str(folder)).commits(version - 1, version) or []
    assert (commit.step_id, commit.changes_data, commit.rows_changed) == ("strandline:7", True, 1)
    assert [DeltaLog(str(folder)).rows(each) for each in (version - 1, version)] == [3, 2]
    with pytest.raises(FileExistsError):
        vectors.marks(folder, version - 1, {path: np.array([2])}, {}).commit(version, "strandline:8")
    assert by_delta_rs(folder, DeltaTable(str(folder)).version()) == Counter({0: 1, 2: 1})
    assert [file.name for file in (folder / "_delta_log").iterdir() if file.suffix != ".json"] == []


def test_the_file_of_a_vector_is_told_by_the_commit_that_replaces_it(tmp_path: Path) -> None:
    folder = make(tmp_path / "t", 3)
    (path,) = opened(str(folder)).files.paths
    first = {file.name for file in folder.glob("*.bin")}
    marked(folder, {path: [0]})
    stored = {file.name for file in folder.glob("*.bin")} - first
    version = marked(folder, {path: [1]})
    (commit,) = DeltaLog(str(folder)).commits(version - 1, version) or []
    assert stored < set(commit.old_files)


def test_a_log_that_does_not_tell_how_a_file_came_in_is_left_alone(tmp_path: Path) -> None:
    folder = make(tmp_path / "t", 3, 3)
    one, other = opened(str(folder)).files.paths
    log, version = folder / "_delta_log", DeltaTable(str(folder)).version()
    assert set(vectors.added(log, version, {one, other})) == {one, other}
    for number in (0, 1):
        (log / f"{number:020d}.json").unlink()
    before = sorted(log.iterdir())
    with pytest.raises(vectors.Unknown):
        vectors.marks(folder, version, {one: np.array([0])}, {})
    assert sorted(log.iterdir()) == before


def test_a_file_that_was_taken_out_since_is_not_put_in_again(tmp_path: Path) -> None:
    folder = make(tmp_path / "t", 3, 3)
    one, other = opened(str(folder)).files.paths
    DeltaTable(str(folder)).alter.set_table_properties({vectors.SWITCH: "true"})
    marked(folder, places_of(folder, set(range(3))))
    version = DeltaTable(str(folder)).version()
    assert len(opened(str(folder)).files.paths) == 1, "a file without rows that count goes"
    gone = next(path for path in (one, other) if path not in opened(str(folder)).files.paths)
    with pytest.raises(vectors.Unknown):
        vectors.added(folder / "_delta_log", version, {gone})


def test_least_and_greatest_values_stay_as_they_are_written(tmp_path: Path) -> None:
    folder = make(tmp_path / "t", 3)
    (path,) = opened(str(folder)).files.paths
    log = folder / "_delta_log"
    first = (log / f"{0:020d}.json").read_text()
    exact = 'minValues\\":{\\"d\\":123456789.1234567829,\\"tightBounds\\":true,'
    (log / f"{0:020d}.json").write_text(first.replace('minValues\\":{', exact))
    version = marked(folder, {path: [0]})
    stats = vectors.added(log, version, {path})[path]["stats"]
    assert '"d": 123456789.1234567829' in stats
    assert json.loads(stats)["tightBounds"] is False and json.loads(stats)["minValues"]["tightBounds"] is True


def test_checkpoints_without_statistics_are_left_alone_and_others_whatever_they_hold(tmp_path: Path) -> None:
    folder = make(tmp_path / "t", 3)
    log, version = folder / "_delta_log", DeltaTable(str(folder)).version()
    DeltaTable(str(folder)).create_checkpoint()
    (path,) = opened(str(folder)).files.paths
    file = log / f"{version:020d}.checkpoint.parquet"
    adds = pq.read_table(file).column("add").combine_chunks()
    parts = {field.name: pc.struct_field(adds, field.name) for field in adds.type}
    far = pa.array([2**62] * len(adds), pa.timestamp("us"))
    for changed, readable in (({**parts, "stats_parsed": far}, True), ({**parts, "stats": pa.nulls(len(adds))}, False)):
        pq.write_table(
            pa.table({"add": pa.StructArray.from_arrays([*changed.values()], [*changed], mask=adds.is_null())}), file
        )
        if readable:
            assert set(vectors.added(log, version, {path})) == {path}
        else:
            with pytest.raises(vectors.Unknown):
                vectors.added(log, version, {path})
    del parts["stats"]
    pq.write_table(
        pa.table({"add": pa.StructArray.from_arrays([*parts.values()], [*parts], mask=adds.is_null())}), file
    )
    with pytest.raises(vectors.Unknown):
        vectors.added(log, version, {path})


def test_a_version_whose_vector_is_lost_is_not_there_any_more(tmp_path: Path) -> None:
    folder = make(tmp_path / "t", 3)
    (path,) = opened(str(folder)).files.paths
    version, log = marked(folder, {path: [1]}), DeltaLog(str(folder))
    assert log.holds_version(version) and log.rows(version) == 2
    for file in folder.glob("deletion_vector_*.bin"):
        file.unlink()
    later = DeltaLog(str(folder))
    opening._kept.clear()
    assert not later.holds_version(version) and later.rows(version) is None
    assert later.holds_version(version - 1)


def test_where_too_many_rows_are_deleted_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make(tmp_path / "t", 5)
    (path,) = opened(str(folder)).files.paths
    version = marked(folder, {path: [1, 2]})
    assert opened(str(folder), version).readable
    opening._kept.clear()
    monkeypatch.setattr(opening, "MOST_DELETED", 1)
    assert not opened(str(folder), version).readable


def test_a_writer_that_knows_less_than_a_table_asks_for_leaves_it_alone(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "plain"), numbered(range(3)))
    assert vectors.known_to_writers(DeltaTable(str(tmp_path / "plain")))
    for name, value in ((vectors.SWITCH, "false"), ("delta.appendOnly", "true")):
        write_deltalake(str(tmp_path / name), numbered(range(3)), configuration={name: value})
        assert not vectors.known_to_writers(DeltaTable(str(tmp_path / name)))
    folder = make(tmp_path / "t", 3)
    assert vectors.known_to_writers(DeltaTable(str(folder))) and not vectors.switched_on(DeltaTable(str(folder)))
    DeltaTable(str(folder)).alter.add_feature(TableFeatures.RowTracking, allow_protocol_versions_increase=True)
    assert not vectors.known_to_writers(DeltaTable(str(folder)))


def rows(engine: Engine, folder: Path, version: int | None = None) -> Counter[Any]:
    at = "" if version is None else f" VERSION AS OF {version}"
    return Counter(row[0] for row in engine.rows(f"SELECT k FROM delta.`{folder}`{at}"))


@pytest.mark.spark
def test_spark_and_we_go_on_from_each_others_marks(tmp_path: Path, engine: Engine) -> None:
    folder = tmp_path / "t"
    engine.run(
        f"CREATE TABLE delta.`{folder}` USING delta TBLPROPERTIES ('{vectors.SWITCH}' = 'true') AS "
        "SELECT /*+ COALESCE(1) */ id AS k, concat('v', id) AS v FROM range(100)"
    )
    assert vectors.known_to_writers(DeltaTable(str(folder))) and vectors.switched_on(DeltaTable(str(folder)))
    engine.run(f"DELETE FROM delta.`{folder}` WHERE k < 10")
    version = marked(folder, places_of(folder, {5, 20, 21}))
    left = set(range(10, 100)) - {20, 21}
    assert rows(engine, folder) == by_delta_rs(folder, version) == Counter(left)
    assert by_us(folder, version, range(30)) == (Counter(left), Counter(left & set(range(30))))
    engine.run(f"DELETE FROM delta.`{folder}` WHERE k = 30")
    write_deltalake(str(folder), numbered(range(200, 203)), mode="append")
    DeltaTable(str(folder)).create_checkpoint()
    after = marked(folder, places_of(folder, {31, 201}))
    later = (left | {200, 202}) - {30, 31}
    assert rows(engine, folder) == Counter(later)
    assert by_us(folder, after, range(40)) == (Counter(later), Counter(later & set(range(40))))
    engine.run(f"UPDATE delta.`{folder}` SET v = 'v40' WHERE k = 40")
    engine.run(f"OPTIMIZE delta.`{folder}`")
    assert rows(engine, folder) == Counter(later)
    engine.run(f"RESTORE TABLE delta.`{folder}` TO VERSION AS OF {version}")
    assert rows(engine, folder) == rows(engine, folder, version) == Counter(left)
    stats = json.loads(
        next(iter(vectors.added(folder / "_delta_log", after, {*opened(str(folder), after).files.paths}).values()))[
            "stats"
        ]
    )
    assert stats["tightBounds"] is False
