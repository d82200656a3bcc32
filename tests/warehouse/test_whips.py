"""The example of WHIPS (ByParts, chapter 7) in a warehouse: representations and methods agree and name themselves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from strandline import Warehouse
from strandline.algebra.bag import SignedBag
from strandline.algebra.schema import Column
from strandline.define import multiplicity
from strandline.engine.session import Engine
from strandline.errors import SqlError
from strandline.sources.memory import MemorySource
from strandline.store import install as installing
from strandline.store import marking, replacing
from tests.conftest import bag, rows_shown, rows_stored
from tests.warehouse.shop import Shop, assert_verified

pytestmark = pytest.mark.spark

V1 = (Column("orderID", "bigint"), Column("partID", "string"), Column("qty", "bigint"), Column("cost", "bigint"))
TABLE_7_1 = [(1, "a", 1, 20), (1, "b", 2, 250), (2, "a", 1, 20), (3, "c", 1, 500)]
TABLE_7_2 = [("a", 40, 2), ("b", 500, 1), ("c", 500, 1)]
TABLE_7_3 = [(1, "a", 2, 20), (4, "c", 1, 500), (4, "d", 1, 30)]
TABLE_7_4 = [(1, "a", 1, 20), (1, "b", 2, 250)]
AFTER = [("a", 60, 2), ("c", 1000, 2), ("d", 30, 1)]
BY_PARTS = "SELECT partID, sum(qty * cost) AS revenue, count(*) AS cnt FROM s.v1 GROUP BY partID"


@pytest.fixture
def source() -> MemorySource:
    source = MemorySource("s")
    source.create("v1", V1)
    source.commit("v1", TABLE_7_1)
    source.create("orders", (Column("id", "bigint"), Column("region", "string"), Column("note", "string")), ["id"])
    source.commit("orders", [(n, f"r{n % 2}", "-") for n in range(1, 6)])
    return source


@pytest.fixture
def wh(tmp_path: Path, engine: Engine, source: MemorySource) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        warehouse.attach(source)
        yield warehouse


def create(wh: Warehouse, name: str, query: str, clauses: str = "REFRESH POLICY INCREMENTAL", **settings: str) -> None:
    listed = ", ".join(f"'strandline.{key}' = '{value}'" for key, value in settings.items())
    properties = f"TBLPROPERTIES ({listed})" if settings else ""
    wh.sql(f"CREATE MATERIALIZED VIEW {name} {properties} {clauses} AS {query}")


def rows(wh: Warehouse, name: str) -> SignedBag:
    return bag(rows_shown(wh, name))


def table(wh: Warehouse, name: str) -> SignedBag:
    return bag(rows_stored(wh._engine, wh._refreshing.node(name).path))


def described(wh: Warehouse, name: str) -> str:
    rows = {row[0]: row[1] for row in wh.sql(f"DESCRIBE MATERIALIZED VIEW {name}").collect()}
    return str(rows["# stored as"])


# Aggregates


def test_the_four_methods_give_the_same(wh: Warehouse, source: MemorySource) -> None:
    methods = ("explicit", "summary", "affected")
    for method in methods:
        create(wh, method, BY_PARTS, aggregates=method)
    create(wh, "whole", BY_PARTS, "REFRESH POLICY FULL")
    assert all(rows(wh, name) == bag(TABLE_7_2) for name in (*methods, "whole"))
    source.commit("v1", TABLE_7_3, TABLE_7_4)
    plan = wh.plan()
    assert [plan.node(name).method for name in methods] == list(methods)
    assert "the summary delta, merged into the table; as declared" in plan.explain()
    report = wh.refresh(plan)
    assert report.ok, report.to_dict()
    assert all(rows(wh, name) == bag(AFTER) for name in (*methods, "whole"))
    assert [report.views[name].strategy for name in (*methods, "whole")] == [
        "incremental", "incremental", "affected", "full",
    ]  # fmt: skip
    assert [report.views[name].install for name in methods] == ["overwrite", "merge", "overwrite"]
    assert {(report.views[name].rows_inserted, report.views[name].rows_deleted) for name in methods} == {(3, 3)}
    source.commit("v1", [(6, None, 1, 1)], source.rows("v1"))
    assert wh.refresh().ok
    assert all(rows(wh, name) == bag([(None, 1, 1)]) for name in (*methods, "whole"))
    assert_verified(wh)


def test_a_view_above_gets_explicit_changes(wh: Warehouse, source: MemorySource) -> None:
    create(wh, "by_parts", BY_PARTS, aggregates="summary")
    create(wh, "tot", "SELECT count(*) AS n, sum(revenue) AS r FROM by_parts", aggregates="summary")
    assert rows(wh, "tot") == bag([(3, 1040)])
    source.commit("v1", TABLE_7_3, TABLE_7_4)
    plan = wh.plan()
    assert (plan.node("by_parts").method, plan.node("tot").method) == ("explicit", "summary")
    assert "tot reads its changes" in plan.node("by_parts").method_reason
    assert wh.refresh(plan).ok
    assert rows(wh, "tot") == bag([(3, 1090)])
    source.commit("v1", [], source.rows("v1"))
    assert wh.refresh().ok
    assert rows(wh, "tot") == bag([(0, None)])
    assert_verified(wh)


@pytest.mark.parametrize("method", ["explicit", "summary", "affected"])
def test_a_change_without_effect_writes_nothing(wh: Warehouse, source: MemorySource, method: str) -> None:
    create(wh, "by_parts", BY_PARTS, aggregates=method)
    source.commit("v1", [(5, "c", 1, 500)], [(3, "c", 1, 500)])
    report = wh.refresh().views["by_parts"]
    assert (report.install, report.rows_inserted, report.rows_deleted) == ("none", 0, 0)
    assert rows(wh, "by_parts") == bag(TABLE_7_2)


def test_a_large_table_of_groups_absorbs_its_summary_delta(
    wh: Warehouse, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_table_is_small(monkeypatch)
    create(wh, "by_parts", BY_PARTS)
    source.commit("v1", TABLE_7_3, TABLE_7_4)
    plan = wh.plan()
    assert plan.node("by_parts").method == "summary"
    assert plan.node("by_parts").method_reason.startswith("no view reads its changes; estimated ")
    assert wh.refresh(plan).views["by_parts"].install == "merge"
    assert rows(wh, "by_parts") == bag(AFTER)


def test_minima_are_absorbed_where_nothing_is_deleted(wh: Warehouse, source: MemorySource) -> None:
    create(wh, "lows", "SELECT partID, min(cost) AS low, max(qty) AS high FROM s.v1 GROUP BY partID",
           aggregates="summary")  # fmt: skip
    source.commit("v1", [(7, "a", 9, 1), (7, "z", None, None)])
    assert wh.plan().node("lows").method == "summary"
    assert wh.refresh().ok
    assert rows(wh, "lows") == bag([("a", 1, 9), ("b", 250, 2), ("c", 500, 1), ("z", None, None)])
    source.commit("v1", [], [(7, "a", 9, 1)])
    report = wh.refresh()
    assert report.views["lows"].strategy == "affected"
    assert_verified(wh)


def test_methods_and_representations_agree_after_random_changes(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installing, "TINY_ROWS", 20)
    monkeypatch.setattr(installing, "TINY_BYTES", 0)
    grouped = "SELECT l.product, count(*) AS n, sum(l.qty * l.price) AS r, avg(o.weight) AS w FROM lake.lines l "
    grouped += "JOIN shop.orders o ON o.o_id = l.o_id GROUP BY l.product"
    methods = ("explicit", "summary", "affected")
    for method in methods:
        create(warehouse, method, grouped, aggregates=method)
    create(warehouse, "whole", grouped, "REFRESH POLICY FULL")
    for kind in ("dup", "count"):
        create(warehouse, kind, "SELECT product, qty FROM lake.lines WHERE qty > 1", representation=kind)
        create(warehouse, f"{kind}_above", f"SELECT qty, count(*) AS n FROM {kind} GROUP BY qty")
    for _ in range(5):
        shop.change()
    report = warehouse.refresh()
    assert report.ok, report.to_dict()
    assert_verified(warehouse)
    assert rows(warehouse, "dup") == rows(warehouse, "count")
    assert rows(warehouse, "dup_above") == rows(warehouse, "count_above")


# Duplicates


DUPLICATES = [(1, "a", 1, 20), (1, "b", 2, 250), (1, "a", 1, 20)]


def test_figure_7_5_in_a_table(wh: Warehouse, source: MemorySource) -> None:
    source.commit("v1", DUPLICATES, TABLE_7_1)
    create(wh, "counted", "SELECT * FROM s.v1", representation="count")
    create(wh, "plain", "SELECT * FROM s.v1", representation="dup")
    assert table(wh, "counted") == bag([(1, "a", 1, 20, 2), (1, "b", 2, 250, 1)])
    assert rows(wh, "counted") == rows(wh, "plain") == bag(DUPLICATES)
    source.commit("v1", [(1, "a", 1, 20), (2, "c", 1, 500), (2, "c", 1, 500)])
    assert wh.refresh().ok
    assert table(wh, "counted") == bag([(1, "a", 1, 20, 3), (1, "b", 2, 250, 1), (2, "c", 1, 500, 2)])
    source.commit("v1", [], [(1, "a", 1, 20), (1, "a", 1, 20), (1, "b", 2, 250)])
    assert wh.refresh().ok
    assert table(wh, "counted") == bag([(1, "a", 1, 20, 1), (2, "c", 1, 500, 2)])
    assert rows(wh, "counted") == rows(wh, "plain")
    assert_verified(wh)


def test_views_above_counted_rows_see_all_copies(
    wh: Warehouse, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_table_is_small(monkeypatch)
    create(wh, "parts", "SELECT partID, qty FROM s.v1 WHERE qty < 9", representation="count")
    create(wh, "more", "SELECT partID FROM parts WHERE partID <> 'b'", representation="count")
    create(wh, "sums", "SELECT partID, sum(qty) AS qty, count(*) AS n FROM parts GROUP BY partID")
    create(wh, "pairs", "SELECT p.partID, o.region FROM parts p JOIN s.orders o ON o.id = p.qty")
    source.commit("v1", [(4, "a", 1, 7), (4, "d", 1, 30)], [(1, "b", 2, 250)])
    source.commit("orders", [(6, "r6", "x")], [(1, "r1", "-")])
    report = wh.refresh()
    assert report.ok, report.to_dict()
    assert report.views["parts"].install == "merge"
    assert table(wh, "parts") == bag([("a", 1, 3), ("c", 1, 1), ("d", 1, 1)])
    assert rows(wh, "more") == bag([("a",)] * 3 + [("c",), ("d",)])
    assert_verified(wh)
    monkeypatch.undo()
    wh.refresh("parts", full=True)
    source.commit("v1", [(4, "a", 1, 7)])
    wh.refresh("parts")
    assert wh.refresh().ok
    assert_verified(wh)


def test_the_representation_is_shown_and_changed_only_by_another_definition(
    wh: Warehouse, source: MemorySource
) -> None:
    create(wh, "counted", "SELECT partID FROM s.v1", representation="count")
    create(wh, "plain", "SELECT partID FROM s.v1")
    create(wh, "keyed", "SELECT id, region FROM s.orders")
    source.commit("v1", TABLE_7_3)
    source.commit("orders", [(9, "r9", "-")])
    shown = wh.plan().explain()
    assert "stored as: each row once, with the number of its copies (COUNT); as declared" in shown
    assert "stored as: rows, duplicates as rows (DUP); its duplicates were not counted" in shown
    assert "stored as: rows with a key, updated in place" in shown
    assert described(wh, "counted") == "count; as declared"
    wh.sql("CREATE OR REPLACE MATERIALIZED VIEW plain TBLPROPERTIES ('strandline.representation' = 'count') "
           "AS SELECT partID FROM s.v1")  # fmt: skip
    assert wh.refresh("plain").ok
    assert table(wh, "plain") == bag([("a", 3), ("b", 1), ("c", 2), ("d", 1)])
    assert_verified(wh)


@pytest.mark.parametrize(("copies", "chosen"), [(2, "dup"), (40, "count")])
def test_many_duplicates_are_counted(
    wh: Warehouse, source: MemorySource, monkeypatch: pytest.MonkeyPatch, copies: int, chosen: str
) -> None:
    monkeypatch.setattr(multiplicity, "TINY_ROWS", 0)
    monkeypatch.setattr("strandline.refreshing.FIXED", _Rows())
    source.commit("v1", TABLE_7_1 * (copies - 1))
    create(wh, "v", "SELECT partID, qty FROM s.v1")
    before = described(wh, "v")
    assert before.startswith(f"{chosen}; {4 * copies} rows, about 3 different: ")
    source.commit("v1", [], source.rows("v1")[1:])
    wh.sql("CREATE OR REPLACE MATERIALIZED VIEW v COMMENT 'the same query' AS SELECT partID, qty FROM s.v1")
    assert described(wh, "v") == before


class _Rows:
    """The fixed costs of tables a million times larger."""

    def __getattr__(self, name: str) -> Any:
        from strandline.cost.model import FIXED

        if name in ("as_rows", "as_counts"):
            return lambda *sizes: getattr(FIXED, name)(*(size * 1_000_000 for size in sizes))
        return getattr(FIXED, name)


@pytest.mark.parametrize(
    ("query", "settings", "code"),
    [
        (BY_PARTS, {"representation": "count"}, "NOTHING_TO_COUNT"),
        ("SELECT id FROM s.orders", {"representation": "count"}, "NOTHING_TO_COUNT"),
        (BY_PARTS, {"representation": "dupp"}, "UNKNOWN_PROPERTY"),
        (BY_PARTS, {"colour": "red"}, "UNKNOWN_PROPERTY"),
    ],
)
def test_what_cannot_be_is_refused(wh: Warehouse, query: str, settings: dict[str, str], code: str) -> None:
    with pytest.raises(SqlError) as error:
        create(wh, "v", query, **settings)
    assert error.value.code == code


# Changes that do not matter, and updates in place


JOINED = "SELECT v.orderID, v.partID, o.region FROM s.v1 v JOIN s.orders o ON o.id = v.orderID WHERE v.cost > 400"


def test_changes_that_fail_a_selection_are_dropped_before_the_join(
    wh: Warehouse, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("planner", "step_maker"):
        monkeypatch.setattr(f"strandline.propagate.{module}.SMALL_BYTES", 0)
    create(wh, "dear", JOINED)
    source.commit("v1", [(2, "z", 1, 10), (2, "y", 1, 20)])
    ran: list[str] = []
    write = Engine.write_parquet

    def noted(self: Engine, sql: str, path: str) -> bool:
        ran.append(sql)
        return write(self, sql, path)

    monkeypatch.setattr(Engine, "write_parquet", noted)
    report = wh.refresh().views["dear"]
    assert (report.rows_in, report.rows_irrelevant, report.install) == (2, 2, "none")
    assert len(ran) == 1, "only the delta of the leaf was written"
    source.commit("v1", [(2, "x", 1, 900), (2, "w", 1, 20)])
    report = wh.refresh().views["dear"]
    assert (report.rows_in, report.rows_irrelevant, report.rows_inserted) == (2, 1, 1)
    monkeypatch.undo()
    source.commit("v1", [(2, "v", 1, 20)])
    assert wh.refresh().views["dear"].install == "none"
    assert_verified(wh)


def test_changes_of_columns_that_a_view_does_not_read_are_dropped_before_the_join(
    wh: Warehouse, source: MemorySource
) -> None:
    create(wh, "dear", JOINED)
    create(wh, "by_parts", BY_PARTS)
    rows = sorted(row for row in source.rows("v1") if row[3] > 400)
    source.commit("v1", [(o, part, qty + 1, cost) for o, part, qty, cost in rows], rows)
    report = wh.refresh()
    dear = report.views["dear"]
    assert (dear.rows_in, dear.rows_irrelevant, dear.install) == (2 * len(rows), 2 * len(rows), "none")
    assert report.views["by_parts"].rows_irrelevant == 0 and report.views["by_parts"].rows_inserted
    # Of an update of both, and one of the quantity alone, the view takes in the first.
    first, *others = sorted(source.rows("v1"))
    new = [(first[0], first[1], 7, first[3] + 1), *((o, part, qty + 1, cost) for o, part, qty, cost in others)]
    source.commit("v1", new, [first, *others])
    dear = wh.refresh().views["dear"]
    assert (dear.rows_in - dear.rows_irrelevant, len(others) > 1) == (2, True)
    assert_verified(wh)


@pytest.mark.parametrize("way", ["overwrite", "replace", "mark", "merge"])
def test_updates_of_a_keyed_view_are_made_in_place(
    wh: Warehouse, source: MemorySource, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    no_table_is_small(monkeypatch)
    monkeypatch.setattr(installing, "TINY_ROWS", 100_000 if way == "overwrite" else 0)
    monkeypatch.setattr(replacing, "MOST_BYTES", 100_000 if way == "replace" else 0)
    monkeypatch.setattr(marking, "MOST_ROWS", 100_000 if way == "mark" else 0)
    monkeypatch.setattr(installing, "FEW_KEYS", 0)
    create(wh, "noted", "SELECT id, upper(note) AS note FROM s.orders WHERE region = 'r1'")
    source.commit("orders", [(1, "r1", "late"), (2, "r1", "moved"), (5, "r0", "gone")],
                  [(1, "r1", "-"), (2, "r0", "-"), (5, "r1", "-")])  # fmt: skip
    report = wh.refresh().views["noted"]
    assert report.install == way
    assert (report.rows_inserted, report.rows_deleted) == (2, 2)
    assert rows(wh, "noted") == bag([(1, "LATE"), (2, "MOVED"), (3, "-")])
    if way == "merge":
        assert _merged(wh, "noted") == {"Updated": 1, "Deleted": 1, "Inserted": 1}


def no_table_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no table is written anew, neither whole nor in part, nor are its rows marked without Spark."""
    monkeypatch.setattr(installing, "TINY_ROWS", 0)
    monkeypatch.setattr(installing, "TINY_BYTES", 0)
    monkeypatch.setattr(replacing, "MOST_BYTES", 0)
    monkeypatch.setattr(marking, "MOST_ROWS", 0)


def _merged(wh: Warehouse, name: str) -> dict[str, int]:
    history: Sequence[Any] = wh._engine.query(
        f"DESCRIBE HISTORY delta.`{wh._refreshing.node(name).path}` LIMIT 1"
    ).collect()
    return {
        kind: int(history[0].operationMetrics[f"numTargetRows{kind}"]) for kind in ("Updated", "Deleted", "Inserted")
    }
