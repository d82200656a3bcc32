"""What a plan charges for the changes of a view."""

from __future__ import annotations

import pytest

from strandline import Warehouse
from strandline.algebra.schema import Column
from strandline.cost.model import FIXED
from strandline.sources.memory import MemorySource

pytestmark = pytest.mark.spark

LARGE, SMALL = 90, 3


@pytest.fixture
def source() -> MemorySource:
    source = MemorySource("s")
    for table, rows in (("large", LARGE), ("small", SMALL)):
        source.create(table, (Column("k", "bigint"), Column("v", "bigint")))
        source.commit(table, [(number, number) for number in range(rows)])
    return source


def test_a_term_is_charged_for_the_relations_that_it_looks_rows_up_in(wh: Warehouse, source: MemorySource) -> None:
    wh.sql("CREATE MATERIALIZED VIEW v AS SELECT l.k, s.v FROM s.large l JOIN s.small s ON l.k = s.k")
    costs = {}
    for table in ("large", "small"):
        source.commit(table, [(1_000, 0)])
        costs[table] = wh.plan("v").node("v").cost or 0.0
        wh.refresh()
    assert costs["small"] - costs["large"] == pytest.approx((LARGE + 1 - SMALL) * FIXED.row_scanned)


def test_groups_over_affected_keys_are_not_charged_as_computed_anew(wh: Warehouse, source: MemorySource) -> None:
    """A table of few groups is overwritten: what a MERGE costs is never less."""
    exists = "EXISTS (SELECT 1 FROM s.small s WHERE s.k = l.k)"
    wh.sql(
        f"CREATE MATERIALIZED VIEW v AS SELECT v % 3 AS g, count(*) AS n FROM s.large l WHERE {exists} GROUP BY v % 3"
    )
    source.commit("small", [(50, 0)], [(1, 1)])
    plan = wh.plan("v").node("v")
    assert (plan.strategy, plan.method) == ("affected", "explicit")
    assert wh.refresh().views["v"].install == "overwrite"
