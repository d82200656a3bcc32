"""What a part of a query gives, stored beside the view or computed where it is read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline import Warehouse
from strandline.algebra.schema import Column
from strandline.cost.model import LinearCosts
from strandline.engine.session import Engine
from strandline.sources.memory import MemorySource
from tests.warehouse.shop import assert_verified

pytestmark = pytest.mark.spark

ORDERS = (Column("id", "bigint"), Column("customer", "bigint"), Column("amount", "decimal(8,2)"))
BUSY = (
    "SELECT o.id, o.amount, t.n FROM s.orders AS o JOIN (SELECT customer, count(*) AS n, max(amount) AS m "
    "FROM s.orders GROUP BY customer HAVING count(*) > 1) AS t ON t.customer = o.customer AND o.amount < t.m"
)


@pytest.fixture
def source() -> MemorySource:
    source = MemorySource("s")
    source.create("orders", ORDERS)
    source.commit("orders", [(n, n % 4, f"{n}.50") for n in range(20)])
    return source


@pytest.fixture
def wh(tmp_path: Path, engine: Engine, source: MemorySource) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        warehouse.attach(source)
        yield warehouse


def test_both_ways_give_the_same(wh: Warehouse, source: MemorySource) -> None:
    for name, how in (("kept", "stored"), ("anew", "in place")):
        properties = f"TBLPROPERTIES ('strandline.hidden' = '{how}')"
        wh.sql(f"CREATE MATERIALIZED VIEW {name} {properties} REFRESH POLICY INCREMENTAL STRICT AS {BUSY}")
    source.commit("orders", [(100, 1, "0.25"), (101, 9, "3.00")], [(5, 1, "5.50"), (0, 0, "0.50")])
    source.commit("orders", [(102, 9, "4.00")], [(n, 3, f"{n}.50") for n in (3, 7, 11, 15)])
    report = wh.refresh()
    assert {name: view.strategy for name, view in report.views.items()} == {"kept": "incremental", "anew": "affected"}
    assert len(report.hidden) == 1
    assert_verified(wh)


def test_the_view_keeps_its_name(wh: Warehouse, source: MemorySource) -> None:
    properties = "TBLPROPERTIES ('strandline.hidden' = 'in place')"
    wh.sql(f"CREATE MATERIALIZED VIEW `changed orders` {properties} AS {BUSY}")
    block = wh._refreshing.node("changed orders").block
    assert block is not None and block.node == "changed orders"


def test_one_inside_the_other(wh: Warehouse, source: MemorySource) -> None:
    sizes = "SELECT customer, count(*) AS n FROM s.orders GROUP BY customer"
    often = f"SELECT n, count(*) AS c FROM ({sizes}) GROUP BY n"
    properties = "TBLPROPERTIES ('strandline.hidden' = 'in place')"
    wh.sql(
        f"CREATE MATERIALIZED VIEW v {properties} AS SELECT o.id, x.c FROM s.orders o JOIN ({often}) x ON x.n = o.id"
    )
    source.commit("orders", [(100, 1, "0.25")], [(5, 1, "5.50"), (0, 0, "0.50")])
    assert wh.refresh().hidden == {}
    assert_verified(wh)


@pytest.mark.parametrize(
    ("policies", "strategy"),
    [(("AUTO",), "full"), (("INCREMENTAL",), "affected"), (("AUTO", "INCREMENTAL STRICT"), "affected")],
)
def test_it_is_recomputed_for_its_cost_only_if_all_views_that_it_is_part_of_may_be(
    wh: Warehouse, source: MemorySource, monkeypatch: pytest.MonkeyPatch, policies: tuple[str, ...], strategy: str
) -> None:
    monkeypatch.setattr("strandline.refreshing.FIXED", LinearCosts(term=10.0))
    monkeypatch.setattr("strandline.propagate.planner.LITTLE_ROWS", 0)
    stored = "TBLPROPERTIES ('strandline.hidden' = 'stored')"
    for number, policy in enumerate(policies):
        wh.sql(f"CREATE MATERIALIZED VIEW v{number} {stored} REFRESH POLICY {policy} AS {BUSY}")
    source.commit("orders", [(100, 1, "0.25")], [(5, 1, "5.50")])
    report = wh.refresh()
    (block,) = report.hidden.values()
    assert block.strategy == strategy
    taken = [(view.strategy, view.reason.code) for view in report.views.values()]
    assert taken == [("full", "COST") if policy == "AUTO" else ("incremental", "CHANGES") for policy in policies]
    assert_verified(wh)


def test_what_was_decided_is_told_and_kept(wh: Warehouse) -> None:
    told = wh.sql(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {BUSY}")
    assert "note [HIDDEN_STATE] block " in told
    assert "is stored: estimated 0.45 a refresh stored, 0.30 in place" in told
    wh.sql(f"CREATE MATERIALIZED VIEW v AS {BUSY}")
    assert "is stored: as it was" in wh.sql(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {BUSY}")
    asked = f"EXPLAIN CREATE MATERIALIZED VIEW w TBLPROPERTIES ('strandline.hidden' = 'in place') AS {BUSY}"
    assert "is computed in place: as declared" in wh.sql(asked)
