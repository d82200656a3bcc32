"""The choice by cost between applying changes and recomputing, beside what either really takes.

The 22 queries of TPC-H are views; about a thousandth of each large table changes. Each view and each hidden block is
brought up to date from the changes, and recomputed right after, over the same rows. What AUTO would choose comes from
its plan, once with the fixed costs and once with those that the warehouse has calibrated by then. It ends with how
often either chose right, and what wrong choices cost.

Sizes come from the environment: SCALE (the scale factor, default 0.1), ONE_IN (with each of the statements that change
a table, one row in so many, default 5,000), REPEATS (default 2), QUERIES (default all).
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from unittest import mock

from rich.console import Console
from rich.table import Table

from bench import results
from strandline import Warehouse
from strandline.cost.calibration import Prices
from strandline.cost.graph import Weighed
from strandline.cost.model import FIXED
from strandline.propagate import planner
from strandline.propagate.plan import NodePlan
from strandline.propagate.report import RefreshReport
from tests.campaign.tpch.following import queries
from tests.campaign.tpch.tables import KEYS, Tables

ALIKE = 1.1
"""A choice is right if it took no more than so many times what the other way took."""


@dataclass(frozen=True)
class Turn:
    """A node in one repeat: its plan, the seconds both ways, and what each cost model chose."""

    plan: NodePlan
    seconds: Mapping[str, float]
    chosen: Mapping[str, str]


@dataclass(frozen=True)
class Score:
    """How often a cost model chose right, and the seconds that its wrong choices cost beside those of the best."""

    right: int
    choices: int
    lost: float
    best: float

    def __str__(self) -> str:
        share = f"{self.right} of {self.choices} ({self.right / max(self.choices, 1):.0%})"
        return (
            f"right {share}, wrong choices cost {self.lost:.1f} s, {self.lost / max(self.best, 0.01):.0%} of the best"
        )


def score(turns: Iterable[Turn], model: str) -> Score:
    right = choices = 0
    lost = best = 0.0
    for turn in turns:
        chosen, least = turn.seconds[turn.chosen[model]], min(turn.seconds.values())
        choices += 1
        right += chosen <= ALIKE * least
        lost += 0.0 if chosen <= ALIKE * least else chosen - least
        best += least
    return Score(right, choices, lost, best)


Measured = dict[str, list[Turn]]
"""By node, each repeat."""


def run() -> None:
    scale, one_in = float(os.environ.get("SCALE", 0.1)), int(os.environ.get("ONE_IN", 5_000))
    wanted = [name for name in os.environ.get("QUERIES", "").split(",") if name]
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        measured, told = _measure(Path(folder), scale, one_in, int(os.environ.get("REPEATS", 2)), wanted)
    table = Table(title=f"TPC-H at {scale}: estimated cost and measured seconds, the last repeat")
    for column in ("node", "AUTO", "strategy", "changed rows", "cost", "of full", "changes", "recompute", "better"):
        table.add_column(column, justify="right" if column in ("changed rows", "cost", "of full") else "left")
    found = {}
    for name, turns in measured.items():
        plan = turns[-1].plan
        assert plan.cost is not None and plan.cost_full is not None
        changes, full = (statistics.median(turn.seconds[way] for turn in turns) for way in ("changes", "recompute"))
        chosen = turns[-1].chosen["fixed"]
        better = "changes" if changes <= full else "recompute"
        found[name] = {
            "strategy": plan.strategy, "method": plan.method, "rows": plan.estimated_rows, "terms": plan.terms,
            "cost": plan.cost, "cost_full": plan.cost_full, "better": better,
            "seconds": [dict(turn.seconds) for turn in turns], "chosen": [dict(turn.chosen) for turn in turns],
        }  # fmt: skip
        table.add_row(
            name, chosen if chosen == turns[-1].chosen["calibrated"] else f"{chosen}, calibrated not",
            f"{plan.strategy}, {plan.method}, {plan.terms}", str(plan.estimated_rows),
            f"{plan.cost:.2f}", f"{plan.cost_full:.2f}", f"{changes:.2f}", f"{full:.2f}",
            better if better == chosen else f"{better} ({max(changes, full) / max(min(changes, full), 0.01):.1f}x)",
        )  # fmt: skip
    Console(width=150).print(table)
    scores = {
        model: score(chain(*measured.values()), model) for model in ("fixed", "calibrated", "changes", "recompute")
    }
    for model, one in scores.items():
        print(f"{model if model in ('fixed', 'calibrated') else f'always {model}'}: {one}")
    print(f"costs at the end: {told}")
    shown = {model: asdict(one) for model, one in scores.items()}
    summary = {"scale": scale, "one_in": one_in, "costs": told, "scores": shown, "nodes": found}
    print(f"written to {results.write('choice', summary)}")


def _measure(folder: Path, scale: float, one_in: int, repeats: int, wanted: Collection[str]) -> tuple[Measured, str]:
    tables = Tables(folder / "lake", scale, seed=1)
    found: Measured = {}
    with Warehouse.open(folder / "project") as warehouse:
        warehouse.add_source("tpch", kind="delta", path=str(folder / "lake"), keys=KEYS)
        for view in queries():
            if not wanted or view.name in wanted:
                warehouse.sql(f"CREATE MATERIALIZED VIEW {view.name} WITH NO DATA AS {view.query}")
        warehouse.refresh()
        for repeat in range(repeats + 1):
            tables.change(one_in, clustered=repeat % 2 == 0)
            fixed = _choices(warehouse, Prices(FIXED, FIXED))
            calibrated = _choices(warehouse, warehouse._refreshing.prices())
            plans, changes, full = _both_ways(warehouse)
            # The first turn warms up.
            for name, plan in plans.items() if repeat else ():
                if plan.cost is not None:
                    seconds = {"changes": _seconds(changes, name), "recompute": _seconds(full, name)}
                    always = {way: way for way in seconds}
                    chosen = {"fixed": fixed[name], "calibrated": calibrated[name], **always}
                    found.setdefault(name, []).append(Turn(plan, seconds, chosen))
        wrong = [name for name in warehouse.views() if not warehouse.verify(name).ok]
        print("every view equals its recomputation" if not wrong else f"WRONG: {', '.join(wrong)}")
        return found, warehouse._refreshing.prices().told


def _choices(warehouse: Warehouse, prices: Prices) -> dict[str, str]:
    with mock.patch.object(warehouse._refreshing, "prices", lambda: prices):
        return {node.name: "recompute" if node.strategy == "full" else "changes" for node in warehouse.plan().nodes}


def _both_ways(warehouse: Warehouse) -> tuple[dict[str, NodePlan], RefreshReport, RefreshReport]:
    """Every node from its changes, then every node anew."""
    with mock.patch.object(planner, "weigh", lambda *_: Weighed()):
        plan = warehouse.plan()
        changes = warehouse.refresh(plan)
    everything = warehouse._refreshing.planner().plan(warehouse.views(), [node.name for node in plan.nodes])
    full = warehouse.refresh(everything)
    assert changes.ok and full.ok, (changes.to_dict(), full.to_dict())
    return {node.name: node for node in plan.nodes}, changes, full


def _seconds(report: RefreshReport, name: str) -> float:
    return {**report.views, **report.hidden}[name].seconds
