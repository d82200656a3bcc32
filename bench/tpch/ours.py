"""The 22 queries as views of a warehouse, and what one refresh of all of them took, and where.

Steps run side by side and are shared by views. So that the views' parts add up to the whole, the seconds of a step are
divided among the views that it is for, and all of them scaled to the time that the refresh took.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.processors import Stopwatch
from bench.tpch.lake import FOREIGN_KEYS, Lake
from bench.tpch.settings import Settings
from strandline import Warehouse
from strandline.catalog.records import StepRecord
from strandline.propagate.plan import RefreshPlan
from strandline.propagate.report import RefreshReport
from strandline.propagate.vdag import Vdag
from tests.campaign.corpus.definitions import Definition
from tests.campaign.corpus.following import problems
from tests.campaign.tpch.tables import KEYS

Found = dict[str, Any]


def open_warehouse(settings: Settings, lake: Lake, views: Sequence[Definition], spark: Any) -> Warehouse:
    """The warehouse with its views declared; they are filled by the first refresh."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    project = settings.folder / "project"
    Warehouse.open(project, spark=spark).close()
    _let_run(project / "strandline.yml", settings.parallel)
    warehouse = Warehouse.open(project, spark=spark)
    constraints = {"constraints": _constraints()} if settings.foreign_keys else {}
    warehouse.add_source("tpch", kind="delta", path=str(lake.folder), keys=KEYS, **constraints)
    for view in views:
        policy = f"REFRESH POLICY {settings.policy}"
        warehouse.sql(f"CREATE MATERIALIZED VIEW {view.name} {policy} WITH NO DATA AS {view.query}")
    return warehouse


def _let_run(config: Path, parallel: int | None) -> None:
    """Let so many steps of a refresh run at a time, or as many as the product takes."""
    lines = [line for line in config.read_text(encoding="utf-8").splitlines() if not line.startswith("parallel:")]
    lines += [] if parallel is None else [f"parallel: {parallel}"]
    config.write_text("\n".join([*lines, ""]), encoding="utf-8")


def _constraints() -> dict[str, Any]:
    return {
        table: {"foreign_keys": [{"columns": list(columns), "references": to} for columns, to in keys.items()]}
        for table, keys in FOREIGN_KEYS.items()
    }


def refreshed(warehouse: Warehouse) -> Found:
    """Refresh everything; seconds of the whole, of its views and its kinds of steps, and each step."""
    began = time.time()
    with Stopwatch() as watch:
        report = warehouse.refresh()
    ended = time.time()
    assert report.ok, problems(report)
    steps = [step for step in warehouse._catalog.refreshes.steps(report.refresh_id) if step.seconds is not None]
    spans = [(_began(step), _began(step) + (step.seconds or 0.0)) for step in steps]
    return {
        "seconds": watch.seconds,
        "cpu": watch.cpu,
        **_around(began, ended, spans),
        "kinds": _by_kind(steps),
        "views": _views(report, steps, warehouse._refreshing.vdag(), _shared(warehouse, report), watch.seconds),
        "hidden": {name: _told(each) for name, each in report.hidden.items() if each.strategy != "none"},
        "steps": [_step(step, began) for step in steps],
    }


def _around(began: float, ended: float, spans: Sequence[tuple[float, float]]) -> Found:
    """Seconds before the first step, after the last one, between them with none running, and those with only one."""
    if not spans:
        return {"before": ended - began, "after": 0.0, "gaps": 0.0, "alone": 0.0}
    moments = sorted({moment for span in spans for moment in span})
    running = [(end - start, sum(a <= start and b >= end for a, b in spans)) for start, end in pairwise(moments)]
    return {
        "before": moments[0] - began,
        "after": ended - moments[-1],
        "gaps": sum(length for length, count in running if count == 0),
        "alone": sum(length for length, count in running if count == 1),
    }


def _by_kind(steps: Sequence[StepRecord]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = defaultdict(lambda: {"steps": 0, "seconds": 0.0})
    for step in steps:
        found[step.kind]["steps"] += 1
        found[step.kind]["seconds"] += step.seconds or 0.0
    return dict(found)


def _views(
    report: RefreshReport,
    steps: Sequence[StepRecord],
    vdag: Vdag,
    shared: Mapping[str, Sequence[str]],
    seconds: float,
) -> dict[str, Found]:
    taken = [(step.view or "", step.seconds or 0.0) for step in steps]
    reads = {name: _reads(vdag, shared, name) for name in report.views}
    moved = {name for name, each in report.views.items() if each.strategy in ("incremental", "affected")}
    parts = shares(taken, reads, moved, seconds)
    return {name: {**_told(each), "part": parts[name]} for name, each in report.views.items()}


def _shared(warehouse: Warehouse, report: RefreshReport) -> dict[str, Sequence[str]]:
    """For each node the joins whose deltas it was computed from."""
    record = warehouse._catalog.refreshes.get(report.refresh_id)
    return {} if record is None else {node.name: node.shares for node in RefreshPlan.from_dict(record.plan).nodes}


def _reads(vdag: Vdag, shared: Mapping[str, Sequence[str]], view: str) -> frozenset[str]:
    """The view, the blocks below it, their leaves, and the joins that they share with others."""
    nodes = vdag.with_ancestors([view])
    below = (name for node in nodes for name in (*vdag.nodes[node].inputs, *shared.get(node, ())))
    return frozenset([*nodes, *below])


def shares(
    steps: Sequence[tuple[str, float]], reads: Mapping[str, Collection[str]], moved: Collection[str], seconds: float
) -> dict[str, float]:
    """Of *seconds* the part of each view: what its steps, by subject, took of all.

    A step for several views is divided among those that *moved* by changes; a view that is recomputed needs no deltas.
    """
    found = dict.fromkeys(reads, 0.0)
    for subject, took in steps:
        readers = [view for view, subjects in reads.items() if subject in subjects]
        users = [view for view in readers if view in moved or view == subject] or readers or list(reads)
        for view in users:
            found[view] += took / len(users)
    whole = sum(found.values())
    return {view: share * seconds / whole if whole else seconds / len(found) for view, share in found.items()}


def _told(each: Any) -> Found:
    return {
        "strategy": each.strategy, "reason": each.reason.code, "install": each.install, "steps": each.seconds,
        "rows_in": each.rows_in, "inserted": each.rows_inserted, "deleted": each.rows_deleted,
    }  # fmt: skip


def _step(step: StepRecord, began: float) -> Found:
    result: Mapping[str, Any] = step.result
    return {
        "kind": step.kind, "subject": step.view, "from": round(_began(step) - began, 3),
        "seconds": round(step.seconds or 0.0, 3), "predicted": result.get("predicted"), "mode": result.get("mode"),
        "read": (result.get("profile") or {}).get("read", []), **(result.get("measured") or {}),
    }  # fmt: skip


def _began(step: StepRecord) -> float:
    assert step.started_at is not None
    return step.started_at.timestamp()
