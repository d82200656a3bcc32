"""Constraints of a source file in a warehouse: what they save, and what happens when they do not hold.

Costs about a minute of Spark on two cores.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline import Warehouse
from strandline.engine.session import Engine
from strandline.errors import StrandlineError

pytestmark = pytest.mark.spark

ORDERS = pa.schema([("o_id", pa.int64()), ("state", pa.string()), ("total", pa.int64())])
LINES = pa.schema([("o_id", pa.int64()), ("line", pa.int32()), ("qty", pa.int64())])
FOREIGN_KEY = {"columns": ["o_id"], "references": "orders"}
KEYS = {"orders": ["o_id"], "lines": ["o_id", "line"]}

JOINED = "SELECT o.state, count(*) AS n, sum(l.qty) AS qty, max(o.total) AS most FROM shop.lines l, shop.orders o "
VIEWS = {
    "joined": JOINED + "WHERE l.o_id = o.o_id GROUP BY o.state",
    "outer_joined": "SELECT l.o_id, l.line, o.state FROM shop.lines l LEFT JOIN shop.orders o ON l.o_id = o.o_id",
    "semi": "SELECT l.line, l.qty FROM shop.lines l WHERE EXISTS (SELECT 1 FROM shop.orders o WHERE o.o_id = l.o_id)",
}


class Lake:
    """Orders and their lines as Delta tables."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.place(range(6), mode="error")

    def path(self, table: str) -> str:
        return str(self.folder / table)

    def place(self, numbers: range, mode: Any = "append", *, lines: bool = True) -> None:
        orders = [{"o_id": i, "state": f"s{i % 2}", "total": i * 10} for i in numbers]
        write_deltalake(self.path("orders"), pa.Table.from_pylist(orders, ORDERS), mode=mode)
        if lines:
            found = [{"o_id": i, "line": n, "qty": n + i} for i in numbers for n in range(2)]
            write_deltalake(self.path("lines"), pa.Table.from_pylist(found, LINES), mode=mode)

    def remove(self, condition: str, *tables: str) -> None:
        for table in tables or ("lines", "orders"):
            DeltaTable(self.path(table)).delete(condition)

    def update(self, condition: str) -> None:
        DeltaTable(self.path("orders")).update(updates={"state": "'s9'"}, predicate=condition)


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def warehouse(tmp_path: Path, engine: Engine, lake: Lake) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        warehouse.add_source("shop", kind="delta", path=str(lake.folder), keys=KEYS)
        yield warehouse


def declare(warehouse: Warehouse, **of_lines: Any) -> None:
    warehouse.alter_source("shop", constraints={"lines": of_lines})


def follow(warehouse: Warehouse, *names: str) -> None:
    for name in names:
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {VIEWS[name]}")


def shown(warehouse: Warehouse, view: str) -> list[str]:
    return list(warehouse.plan().node(view).constraints)


def assert_verified(warehouse: Warehouse, *names: str) -> None:
    for name in names:
        assert warehouse.verify(name).ok, name


def test_a_foreign_key_empties_terms_and_the_views_stay_right(warehouse: Warehouse, lake: Lake) -> None:
    declare(warehouse, foreign_keys=[FOREIGN_KEY], not_null=["o_id"])
    follow(warehouse, *VIEWS)
    lake.place(range(6, 9), lines=False)
    plan = warehouse.plan()
    assert [plan.node(name).terms for name in VIEWS] == [0, 0, 0]
    assert "new or gone meet no old rows" in shown(warehouse, "joined")[0]
    assert all(view.rows_inserted == view.rows_deleted == 0 for view in warehouse.refresh().views.values())
    lake.place(range(9, 12))
    lake.remove("o_id < 2")
    lake.update("o_id IN (3, 4)")
    assert all(view.how is None for view in warehouse.refresh().views.values())
    assert_verified(warehouse, *VIEWS)


def test_what_a_view_would_use_is_told_before_it_is_made(warehouse: Warehouse) -> None:
    def told(view: str) -> str:
        return str(warehouse.sql(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {VIEWS[view]}"))

    assert "constraint:" not in told("joined") and "2 terms" in told("joined")
    declare(warehouse, foreign_keys=[FOREIGN_KEY], not_null=["o_id"], append_only=True)
    assert "\n    constraint: foreign key shop.lines(o_id) -> shop.orders(o_id): rows that are new" in told("joined")
    assert "\n    constraint: append-only shop.lines: its changes only insert" in told("joined")
    assert "1 term\n" in told("semi") and "not null shop.lines(o_id): every row refers to another" in told("semi")


def test_where_tables_move_apart_a_broken_key_is_set_aside_until_it_holds_again(
    warehouse: Warehouse, lake: Lake
) -> None:
    follow(warehouse, "joined")
    declare(warehouse, foreign_keys=[FOREIGN_KEY])
    lake.place(range(6, 7))
    assert "not used before" in shown(warehouse, "joined")[0]
    report = warehouse.refresh()
    assert report.views["joined"].strategy != "full"
    lake.remove("o_id = 1", "orders")
    assert "meet no old rows" in shown(warehouse, "joined")[0]
    report = warehouse.refresh()
    assert report.ok
    assert "CONSTRAINT_SET_ASIDE: foreign key shop.lines(o_id) -> shop.orders(o_id)" in str(report.views["joined"].how)
    assert_verified(warehouse, "joined")
    lake.remove("o_id = 1", "lines")
    assert "not used before" in shown(warehouse, "joined")[0]
    assert warehouse.refresh().views["joined"].how is None
    lake.remove("o_id = 2")
    assert "meet no old rows" in shown(warehouse, "joined")[0]
    warehouse.refresh()
    assert_verified(warehouse, "joined")


def test_a_maximum_falls_though_constraints_said_that_nothing_changes(warehouse: Warehouse, lake: Lake) -> None:
    declare(warehouse, foreign_keys=[FOREIGN_KEY], not_null=["o_id"])
    most = VIEWS["semi"].replace("l.line, l.qty", "l.line, max(l.qty) AS most") + " GROUP BY l.line"
    warehouse.sql(f"CREATE MATERIALIZED VIEW most REFRESH POLICY INCREMENTAL AS {most}")
    lake.remove("o_id = 5", "orders")
    assert warehouse.plan().node("most").terms == 0
    report = warehouse.refresh()
    assert "CONSTRAINT_SET_ASIDE" in str(report.views["most"].how)
    assert_verified(warehouse, "most")


def test_a_deletion_from_a_table_that_only_grows_stops_its_views_alone(warehouse: Warehouse, lake: Lake) -> None:
    warehouse.alter_source("shop", constraints={"orders": {"append_only": True}})
    follow(warehouse, "joined")
    warehouse.sql("CREATE MATERIALIZED VIEW quantities AS SELECT line, sum(qty) AS qty FROM shop.lines GROUP BY line")
    lake.remove("o_id = 1")
    before = warehouse.read("joined").collect()
    report = warehouse.refresh()
    problem = str(report.views["joined"].problem)
    assert problem.startswith("CONSTRAINT_VIOLATED: append-only shop.orders does not hold: 1 of its rows")
    assert "sources/shop.yml" in problem and "`strandline refresh --full joined`" in problem
    assert warehouse.read("joined").collect() == before
    assert report.views["quantities"].problem is None
    assert warehouse.refresh("joined", full=True).ok
    assert_verified(warehouse, "joined", "quantities")
    lake.remove("o_id = 2")
    assert not warehouse.refresh().ok
    warehouse.alter_source("shop", constraints={})
    assert warehouse.refresh().ok
    assert_verified(warehouse, "joined", "quantities")


def test_a_null_where_none_may_be_is_an_error_before_anything_is_applied(warehouse: Warehouse, lake: Lake) -> None:
    declare(warehouse, foreign_keys=[FOREIGN_KEY], not_null=["o_id"])
    follow(warehouse, "outer_joined")
    line = {"o_id": None, "line": 7, "qty": 1}
    write_deltalake(lake.path("lines"), pa.Table.from_pylist([line], LINES), mode="append")
    report = warehouse.refresh()
    problem = str(report.views["outer_joined"].problem)
    assert "CONSTRAINT_VIOLATED: not null shop.lines(o_id) does not hold: a new row has NULL; correct" in problem
    declare(warehouse, foreign_keys=[FOREIGN_KEY])
    assert warehouse.refresh().ok
    assert_verified(warehouse, "outer_joined")


@pytest.mark.parametrize(
    ("constraints", "said"),
    [
        ({"linse": {"not_null": ["o_id"]}}, "no table linse; it has: lines"),
        ({"lines": {"not_null": ["oid"]}}, "no column oid; it has: o_id"),
        ({"lines": {"foreign_keys": [{"columns": ["o_id"], "references": "order"}]}}, "no table order"),
        ({"lines": {"foreign_keys": [{"columns": ["o_id"], "references": "crm.orders"}]}}, "no source crm"),
        ({"lines": {"foreign_keys": [{"columns": ["qty"], "references": "lines"}]}}, "does not match the key"),
        ({"lines": {"foreign_keys": [{**FOREIGN_KEY, "key": ["total"]}]}}, "(total) is not the key of shop.orders"),
        ({"orders": {"foreign_keys": [{"columns": ["state"], "references": "orders"}]}}, "state is string"),
        ({"lines": {"foreign_keys": [{"columns": [], "references": "orders"}]}}, "at least 1 item"),
        ({"lines": {"foreign_keys": [{**FOREIGN_KEY, "columns": ["o_id", "o_id"]}]}}, "o_id is named twice"),
        ({"lines": {"append": True}}, "Extra inputs"),
    ],
)
def test_what_cannot_be_meant_is_refused(warehouse: Warehouse, constraints: dict[str, Any], said: str) -> None:
    with pytest.raises(StrandlineError) as caught:
        warehouse.alter_source("shop", constraints=constraints)
    assert said in str(caught.value)


def test_keys_that_are_equal_without_being_the_same_are_not_told_apart(
    tmp_path: Path, warehouse: Warehouse, lake: Lake
) -> None:
    kinds = pa.schema([("k", pa.float64()), ("x", pa.int64())])
    write_deltalake(lake.path("rates"), pa.Table.from_pylist([{"k": -0.0, "x": 1}, {"k": 1.5, "x": 5}], kinds))
    rated = pa.Table.from_pylist([{"k": 0.0, "x": 7}, {"k": 1.5, "x": 8}], kinds)
    write_deltalake(lake.path("rated"), rated)
    warehouse.alter_source("shop", keys=KEYS | {"rates": ["k"]})
    foreign_key = {"columns": ["k"], "references": "rates"}
    warehouse.alter_source("shop", constraints={"rated": {"foreign_keys": [foreign_key]}})
    warehouse.sql(
        "CREATE MATERIALIZED VIEW r REFRESH POLICY INCREMENTAL AS "
        "SELECT a.x, b.x AS rate FROM shop.rated a JOIN shop.rates b ON a.k = b.k"
    )
    DeltaTable(lake.path("rates")).update(updates={"k": "0.0", "x": "2"}, predicate="x = 1")
    assert warehouse.refresh().views["r"].strategy == "incremental"
    assert warehouse.verify("r").ok
