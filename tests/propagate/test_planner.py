"""What is planned over Delta tables, by their logs alone: nothing is computed, and no session is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from strandline.algebra.block import Block
from strandline.algebra.codec import fingerprint, to_json
from strandline.algebra.plan import At, Join, Output, Partial, Plan, Scan
from strandline.algebra.scalar import Col
from strandline.algebra.schema import Column
from strandline.catalog import Catalog, Json
from strandline.cost.calibration import Prices
from strandline.cost.model import FIXED, LinearCosts
from strandline.propagate.plan import RefreshPlan
from strandline.propagate.planner import DEFINITION, Planner
from strandline.propagate.vdag import Vdag
from strandline.store.node import Node, node_of
from tests.propagate.lake import JOINED, ROWS, Lake, equal, scan

TABLE = [(key, 0, key, 0) for key in range(ROWS)]
DEAR_TERMS = replace(FIXED, term=10.0)
"""By these, recomputing is always cheaper."""


class Planning:
    """A catalog of views over a lake, each filled once."""

    def __init__(self, lake: Lake, catalog: Catalog) -> None:
        self.lake = lake
        self.catalog = catalog
        self.nodes: dict[str, Node] = {}

    def create(self, name: str, body: Plan | Block, *parts: Sequence[tuple[int, ...]]) -> None:
        """A view whose table has these rows, and that has seen all there is now."""
        node = self.lake.node(name, body, *parts)
        block = node.block
        assert block is not None
        record = self.catalog.views.add(
            name, kind="view", sql="", options={}, definition={"block": to_json(block), "reason": None},
            fingerprint=fingerprint(block), columns=block.visible, inputs=block.inputs, location=name,
        )  # fmt: skip
        self.nodes[name] = node_of(record, str(self.lake.folder))
        self.refreshed(name)

    def refreshed(self, name: str) -> None:
        """A view has seen its inputs as they are now."""
        node, now = self.nodes[name], self.lake.positions()
        version = self.version(name)
        positions = {leaf: now[leaf] for leaf in node.inputs if leaf in now}
        pins: dict[str, Json] = {
            below: self.nodes[below].pin(self.version(below)) for below in node.inputs if below in self.nodes
        }
        seen = {**positions, **pins, DEFINITION: node.record.fingerprint}
        self.catalog.versions.record(node.record.id, version, seen, positions, f"{name}-{version}-{now}")

    def version(self, name: str) -> int:
        return self.lake.table(name).version()

    def plan(self, *names: str, costs: LinearCosts = FIXED) -> RefreshPlan:
        vdag = Vdag(self.nodes.values())
        planner = Planner(self.catalog, self.lake.engine, vdag, {"s": self.lake.source}, Prices(costs, costs))
        return planner.plan(names)

    def files_read(self, name: str) -> float:
        """How many files computing the changes of a view is charged for."""
        (step,) = (step for step in self.plan(name).steps if (step.kind, step.subject) == ("compute", name))
        return step.charges["file"]


@pytest.fixture
def planning(tmp_path: Path) -> Iterator[Planning]:
    lake = Lake(tmp_path)
    for table in ("orders", "lines", "returns"):
        lake.clustered(table)
    with Catalog.open(f"sqlite:///{tmp_path}/catalog.db") as catalog:
        yield Planning(lake, catalog)
    assert not lake.engine.started


def test_over_little_data_changes_are_applied_whatever_they_are_estimated_at(planning: Planning) -> None:
    planning.create("v", JOINED, TABLE)
    planning.lake.write("lines", (12, 0))
    plan = planning.plan("v", costs=DEAR_TERMS).node("v")
    assert plan.cost is not None and plan.cost_full is not None and plan.cost > 10 * plan.cost_full
    assert (plan.strategy, plan.reason.code) == ("incremental", "CHANGES")


def test_what_is_little_is_told_by_all_sources_of_a_plan(planning: Planning, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not by those of a view: beside views over much, one over little is weighed like them."""
    planning.create("v", scan("lines", "l"), [(key, 0) for key in range(ROWS)])
    planning.create("w", Join((scan("orders", "o"), scan("returns", "r")), (equal("o.o", "r.o"),)), TABLE)
    monkeypatch.setattr("strandline.propagate.planner.LITTLE_ROWS", 5 * ROWS)
    planning.lake.write("lines", (12, 0))
    assert planning.plan("v", costs=DEAR_TERMS).node("v").strategy == "incremental"
    planning.lake.write("orders", (12, 0))
    both = planning.plan("v", "w", costs=DEAR_TERMS)
    assert [(plan.strategy, plan.reason.code) for plan in both.nodes] == [("full", "COST")] * 2


def test_files_that_are_skipped_are_not_charged_for(planning: Planning) -> None:
    planning.create("v", JOINED, TABLE)
    planning.lake.write("lines", (12, 0))
    assert planning.files_read("v") == 1
    planning.lake.write("lines", (0, 0), (39, 0))
    assert planning.files_read("v") == 4


# Views above views

ABOVE = Scan(At("v"), "v", (Column("l.o", "bigint"), Column("o.c", "bigint")))


def above(planning: Planning) -> None:
    """A view of lines with orders in two files, and one above it that looks returns up."""
    planning.create("v", JOINED, *([(key, 0, key, 0) for key in range(s, s + ROWS)] for s in (0, 20)))
    planning.create("w", Join((ABOVE, scan("returns", "r")), (equal("v.l.o", "r.o"),)), [(1, 0, 1, 0)])


def test_a_view_above_reads_near_the_changes_below(planning: Planning) -> None:
    above(planning)
    planning.lake.write("lines", (12, 0))
    assert planning.files_read("w") == 1
    planning.lake.write("lines", (0, 0), (39, 0))
    assert planning.files_read("w") == 4


def test_a_view_above_that_was_left_behind_reads_near_all_that_it_has_not_seen(planning: Planning) -> None:
    """Its input moved without it: the changes below that are computed now are not all that it takes in."""
    above(planning)
    planning.lake.append("v", planning.nodes["v"], [(0, 0, 0, 0), (39, 0, 39, 0)])
    planning.refreshed("v")
    planning.lake.write("lines", (12, 0))
    assert ("compare", "v") in [(step.kind, step.subject) for step in planning.plan("w").steps]
    assert planning.files_read("w") == 4


GROUPED = Block(
    "v",
    scan("lines", "l"),
    (Output(Column("o", "bigint"), Col("l.o")),),
    (Partial(Column("__count", "bigint", False), "count"), Partial(Column("m", "bigint"), "max", Col("l.p"))),
)


def test_groups_that_can_only_be_computed_anew_are_charged_for_their_rows(planning: Planning) -> None:
    """A largest value that goes has to be found again."""
    planning.create("v", GROUPED, [(key, 1, 0) for key in range(4 * ROWS)])
    planning.lake.delta("lines").delete("o = 12")
    found = planning.plan("v")
    assert found.node("v").strategy == "affected"
    (step,) = (step for step in found.steps if step.kind == "compute")
    assert step.charges.get("row_aggregated", 0) > 0
