"""The benchmark of TPC-H: changes of its tables, statistics, verdict, and what a second run takes up."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable

from bench import results
from bench.__main__ import ALSO_CALLED, BENCHMARKS
from bench.tpch import Run, duck, kept, report
from bench.tpch.kept import Repeat
from bench.tpch.lake import FOREIGN_KEYS, Lake, Versions
from bench.tpch.ours import shares
from bench.tpch.settings import Settings, from_environment
from bench.tpch.summary import spread, summarise
from strandline.engine.little import usual
from strandline.engine.session import Engine
from tests.campaign.tpch.following import queries
from tests.campaign.tpch.tables import KEYS


def repeat(whole: float, parts: dict[str, float], recompute: dict[str, dict[str, float]], **more: object) -> Repeat:
    views = {name: {"strategy": "incremental", "part": part, "steps": part} for name, part in parts.items()}
    return Repeat({}, {"seconds": whole, "views": views}, recompute, **more)  # type: ignore[arg-type]


# Statistics and verdict


def test_medians_come_with_the_least_and_the_most() -> None:
    assert str(spread([3.0, 1.0, 2.0])) == "2.00 (1.00–3.00)"
    assert str(spread([1.5])) == "1.50"


def test_the_verdict_compares_with_the_quicker_way_of_recomputing_each_view() -> None:
    ways = {"ours": {"q1": 3.0, "q2": 1.0}, "defaults": {"q1": 2.0, "q2": 9.0}}
    found = summarise(
        [
            repeat(2.0, {"q1": 0.5, "q2": 1.5}, ways, cpu={**ways, "refresh": {"whole": 0.5}}),
            repeat(4.0, {"q1": 1.5, "q2": 2.5}, {}, cpu={"refresh": {"whole": 1.0}}),
        ]
    )
    assert found.recompute == 3.0
    assert found.verdict == (
        "verdict: whole 1.0x faster than recomputing (4.0x by processor time); worst view q2 2.00x of its recompute; "
        "2 of 2 correct"
    )


def test_the_verdict_names_what_is_wrong() -> None:
    wrong = repeat(8.0, {"q1": 8.0}, {"ours": {"q1": 4.0}}, wrong={"q1": "1 row missing"})
    assert summarise([wrong]).verdict == (
        "verdict: whole 2.0x slower than recomputing; worst view q1 2.00x of its recompute; 0 of 1 correct; WRONG: q1"
    )


def test_parts_of_views_add_up_to_the_whole() -> None:
    reads = {"q1": {"q1", "l"}, "q2": {"q2", "h", "l", "o"}, "q3": {"q3", "l"}}
    steps = [("l", 2.0), ("o", 1.0), ("h", 3.0), ("q1", 1.0), ("q2", 2.0), ("q3", 7.0), ("", 0.0)]
    found = shares(steps, reads, {"q1", "q2"}, 8.0)
    # What changed in l is for the views that move by changes: not for q3, which is recomputed.
    assert found == {"q1": 1.0, "q2": 3.5, "q3": 3.5}


# What was read


def test_what_is_read_is_told_beside_the_files_that_hold_touched_keys() -> None:
    lines = {"of_files": 60, "files": 6, "bytes": 3_000_000, "holding": 4, "holding_bytes": 2_000_000}
    reached = {"of_files": 10, "files": 10, "bytes": 1_000_000}
    changes = {"files": 1, "bytes": 500}
    found = replace(repeat(1.0, {}, {}), refresh={"steps": [{"read": [lines, changes]}, {"read": [reached]}, {}]})
    assert report.read_of_tables(found) == (
        "16 files in all scans, 4.0 MB; where ranges tell which may hold touched keys 6 files, 3.0 MB; "
        "4 files, 2.0 MB may hold touched keys: 1.5x and 1.5x"
    )
    assert report.read_of_tables(replace(found, refresh={"steps": [{"read": [reached]}]})) == (
        "10 files in all scans, 1.0 MB"
    )


# What is kept


def test_repeats_of_the_same_code_and_settings_are_taken_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    under = {"code": results.code(), **Settings(contenders=("refresh",)).told}
    done = [repeat(2.0, {"q1": 2.0}, {"ours": {"q1": 3.0}}, merge={"q1": 1.25}, load=0.5, under=under)]
    file = results.write("tpch", {"repeats": [kept.to_dict(each) for each in done]})
    assert kept.read(file, under) == done
    assert kept.read(file, {**under, "code": "another"}) == []
    assert kept.read(file, {**under, **Settings().told}) == []
    assert kept.read(tmp_path / "other.json", under) == []


def test_results_tell_on_what_they_were_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    machine = json.loads(results.write("any", {}).read_text())["machine"]
    assert machine["versions"]["pyspark"] == version("pyspark")
    assert machine["cores"] >= 1
    assert machine["memory_gb"] > 0


def test_another_change_or_warehouse_is_another_run() -> None:
    asked = {"SF": "1", "DELTA": "0.1", "REPEATS": "5", "SCATTERED": "1", "ENGINE": "sail"}
    assert from_environment(asked).name == "tpch-sf1-delta0.1-scattered-sail"
    assert from_environment({"SF": "1", "SCATTERED": "0"}).name == "tpch-sf1-delta0.1"
    assert from_environment(asked).lake == from_environment({"SF": "1", "DELTA": "50"}).lake
    with pytest.raises(SystemExit, match="no contender excel; there are: refresh, recompute, merge, duckdb"):
        from_environment({"CONTENDERS": "refresh,excel"})


def test_every_other_name_is_that_of_a_benchmark() -> None:
    assert {name for name, _ in ALSO_CALLED.values()} <= BENCHMARKS.keys()
    assert not BENCHMARKS.keys() & ALSO_CALLED.keys()


# Changes


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return Lake(tmp_path_factory.mktemp("tpch") / "lake", 0.01)


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("delta", [0.1, 50])
def test_changes_keep_sizes_and_constraints(lake: Lake, delta: float, scattered: bool) -> None:
    before, rows = lake.versions(), {table: all_rows(lake, table) for table in KEYS}
    done = lake.change(Settings(scale=0.01, delta=delta, scattered=scattered))
    feed = lake.feed("lineitem", before["lineitem"], lake.versions()["lineitem"])
    counted = done["lineitem"]
    assert feed.num_rows == counted["inserted"] + counted["deleted"] + 2 * counted["updated"]
    assert done["orders"]["inserted"] == pytest.approx(done["orders"]["deleted"], rel=0.2)
    assert done["orders"]["deleted"] == pytest.approx(15_000 * delta / 100, rel=0.2)
    for table, keys in KEYS.items():
        found, counted = all_rows(lake, table), done.get(table, {})
        assert found.num_rows == rows[table].num_rows + counted.get("inserted", 0) - counted.get("deleted", 0)
        assert len(tuples(found, keys)) == found.num_rows
        for columns, other in FOREIGN_KEYS.get(table, {}).items():
            assert tuples(found, columns) <= tuples(all_rows(lake, other), KEYS[other])


def test_orders_that_come_are_like_others_than_those_that_go(lake: Lake) -> None:
    before = lake.versions()
    lake.change(Settings(scale=0.01, delta=1))
    told = ["o_custkey", "o_totalprice", "o_comment"]
    came, went = (changed(lake, "orders", before, kind) for kind in ("insert", "delete"))
    assert came.num_rows > 100
    assert not tuples(came, told) & tuples(went, told)


def test_updates_change_what_queries_select_and_join_by(lake: Lake) -> None:
    before = lake.versions()
    lake.change(Settings(scale=0.01, delta=1))
    for table, columns in {"orders": ["o_custkey", "o_orderdate"], "lineitem": ["l_suppkey", "l_shipdate"]}.items():
        old, new = (changed(lake, table, before, f"update_{image}") for image in ("preimage", "postimage"))
        assert old.num_rows > 100
        assert tuples(old, KEYS[table]) == tuples(new, KEYS[table])
        for column in columns:
            assert not tuples(old, [*KEYS[table], column]) & tuples(new, [*KEYS[table], column])


def changed(lake: Lake, table: str, before: Versions, kind: str) -> pa.Table:
    feed = usual(lake.feed(table, before[table], lake.versions()[table]))
    return feed.filter(pc.equal(feed["_change_type"], kind))


def all_rows(lake: Lake, table: str) -> pa.Table:
    return DeltaTable(lake.path(table)).to_pyarrow_table()


def tuples(rows: pa.Table, columns: list[str] | tuple[str, ...]) -> set[tuple[object, ...]]:
    return set(zip(*(rows[column].to_pylist() for column in columns), strict=True))


def test_all_queries_run_in_duckdb(lake: Lake, tmp_path: Path) -> None:
    assert list(duck.recomputed(lake, queries(), tmp_path)) == [view.name for view in queries()]


# All of it


@pytest.mark.spark
def test_every_contender_agrees_and_a_second_run_goes_on(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "FOLDER", tmp_path)
    settings = Settings(scale=0.001, delta=10, repeats=1, warm_up=0, queries=("q6",), work=tmp_path)
    under = {"code": results.code()}
    first = Run(settings, engine.spark, [], under).to_the_end()
    second = Run(replace(settings, repeats=2, contenders=("refresh",)), engine.spark, first, under).to_the_end()
    assert second[0] == first[0]
    assert [set(each.recompute) for each in second] == [{"ours", "defaults"}, set()]
    assert [each.wrong for each in second] == [{}, {}]
    assert [set(first[0].merge), set(first[0].duckdb)] == [{"changes", "q6"}, {"q6"}]
    assert second[1].refresh["views"]["q6"]["strategy"] == "incremental"
    assert kept.read(tmp_path / f"{settings.name}.json", under)[0].changed == first[0].changed
