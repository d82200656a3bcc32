"""The choice by cost between applying changes and recomputing, beside what either really takes.

The 22 queries of TPC-H are views; about a thousandth of each large table changes. Each view and each hidden block is
brought up to date from the changes, and recomputed right after, over the same rows. What AUTO would choose comes from
its plan.

Sizes come from the environment: SCALE (the scale factor, default 0.1), ONE_IN (with each of the statements that change
a table, one row in so many, default 5,000), REPEATS (default 2), QUERIES (default all).
"""

from __future__ import annotations

import os
import statistics
import tempfile
from collections.abc import Collection
from pathlib import Path
from unittest import mock

from rich.console import Console
from rich.table import Table

from bench import results
from strandline import Warehouse
from strandline.propagate import planner
from strandline.propagate.plan import NodePlan
from strandline.propagate.report import RefreshReport
from tests.campaign.tpch.following import queries
from tests.campaign.tpch.tables import KEYS, Tables

Measured = dict[str, list[tuple[NodePlan, float, float, str]]]
"""By node: its plan, the seconds from changes and those of recomputing, and what AUTO chose, for each repeat."""


def run() -> None:
    scale, one_in = float(os.environ.get("SCALE", 0.1)), int(os.environ.get("ONE_IN", 5_000))
    wanted = [name for name in os.environ.get("QUERIES", "").split(",") if name]
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        measured = _measure(Path(folder), scale, one_in, int(os.environ.get("REPEATS", 2)), wanted)
    table = Table(title=f"TPC-H at {scale}: estimated cost and measured seconds, the last repeat")
    for column in ("node", "AUTO", "strategy", "changed rows", "cost", "of full", "changes", "recompute", "better"):
        table.add_column(column, justify="right" if column in ("changed rows", "cost", "of full") else "left")
    found = {}
    for name, turns in measured.items():
        plan = turns[-1][0]
        assert plan.cost is not None and plan.cost_full is not None
        changes, full = statistics.median(turn[1] for turn in turns), statistics.median(turn[2] for turn in turns)
        chosen = turns[-1][3]
        better = "changes" if changes <= full else "recompute"
        found[name] = {
            "strategy": plan.strategy, "method": plan.method, "rows": plan.estimated_rows, "terms": plan.terms,
            "cost": plan.cost, "cost_full": plan.cost_full, "changes": [turn[1] for turn in turns],
            "recompute": [turn[2] for turn in turns], "chosen": chosen, "better": better,
        }  # fmt: skip
        table.add_row(
            name, chosen, f"{plan.strategy}, {plan.method}, {plan.terms}", str(plan.estimated_rows),
            f"{plan.cost:.2f}", f"{plan.cost_full:.2f}", f"{changes:.2f}", f"{full:.2f}",
            better if better == chosen else f"{better} ({max(changes, full) / max(min(changes, full), 0.01):.1f}x)",
        )  # fmt: skip
    Console(width=150).print(table)
    print(f"written to {results.write('choice', {'scale': scale, 'one_in': one_in, 'nodes': found})}")


def _measure(folder: Path, scale: float, one_in: int, repeats: int, wanted: Collection[str]) -> Measured:
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
            auto = {node.name: "recompute" if node.strategy == "full" else "changes" for node in warehouse.plan().nodes}
            plans, changes, full = _both_ways(warehouse)
            # The first turn warms up.
            for name, plan in plans.items() if repeat else ():
                if plan.cost is not None:
                    turn = plan, _seconds(changes, name), _seconds(full, name), auto[name]
                    found.setdefault(name, []).append(turn)
        wrong = [name for name in warehouse.views() if not warehouse.verify(name).ok]
        print("every view equals its recomputation" if not wrong else f"WRONG: {', '.join(wrong)}")
    return found


def _both_ways(warehouse: Warehouse) -> tuple[dict[str, NodePlan], RefreshReport, RefreshReport]:
    """Every node from its changes, then every node anew."""
    with mock.patch.object(planner, "worth_recomputing", lambda *_: False):
        plan = warehouse.plan()
        changes = warehouse.refresh(plan)
    everything = warehouse._planner().plan(warehouse.views(), [node.name for node in plan.nodes])
    full = warehouse.refresh(everything)
    assert changes.ok and full.ok, (changes.to_dict(), full.to_dict())
    return {node.name: node for node in plan.nodes}, changes, full


def _seconds(report: RefreshReport, name: str) -> float:
    return {**report.views, **report.hidden}[name].seconds
