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
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

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
    version = known.table.version()
    asked = {path: np.array(found) for path, found in places.items()}
    return vectors.mark(folder, version, asked, known.deleted, said)


def places_of(folder: Path, keys: set[int]) -> dict[str, list[int]]:
    """Where in files the rows of *keys* are that count."""
    known, found = opened(str(folder)), {}
    for path in known.files.paths:
        stored = pa.parquet.read_table(folder / path).column("k").to_pylist() if (folder / path).exists() else []
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
    with mock.patch.multiple(seeking, LEAST_ROWS=0, MOST_SHARE=1.0):
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
        vectors.mark(folder, version - 1, {path: np.array([2])}, {}, "strandline:8")
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
        vectors.mark(folder, version, {one: np.array([0])}, {}, "step")
    assert sorted(log.iterdir()) == before


def test_a_writer_that_knows_less_than_a_table_asks_for_leaves_it_alone(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path / "plain"), numbered(range(3)))
    assert vectors.known_to_writers(DeltaTable(str(tmp_path / "plain")))
    folder = make(tmp_path / "t", 3)
    assert vectors.known_to_writers(DeltaTable(str(folder)))
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
    assert vectors.known_to_writers(DeltaTable(str(folder)))
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
