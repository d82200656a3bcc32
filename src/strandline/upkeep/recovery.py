"""What a process that ended in the middle left behind: carried to its end, or given up.

Whatever it still had running is ended first: a Spark that outlives its client may commit late.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

from strandline.catalog import Lease, RefreshRecord
from strandline.engine.fence import fence
from strandline.propagate.context import Context
from strandline.propagate.executor import execute
from strandline.propagate.plan import RefreshPlan
from strandline.propagate.progress import Watcher
from strandline.propagate.report import RefreshReport
from strandline.store import layout
from strandline.store.tables import make_ready
from strandline.upkeep.maintain import Maintenance, steps_of
from strandline.upkeep.report import MaintainReport

PROCESSES = "processes"
"""The setting that names the processes which do a warehouse's work."""


@dataclass(frozen=True)
class Finished:
    """Something that had been cut short and was carried to its end."""

    id: str
    report: RefreshReport | MaintainReport


class Recovery:
    """Takes up, or gives up, the refresh or upkeep that is unfinished; *use_spark* starts Spark and notes it."""

    def __init__(self, context: Context, keep: timedelta, use_spark: Callable[[], None]) -> None:
        self._context = context
        self._keep = keep
        self._use_spark = use_spark

    def finish(self, lease: Lease, watcher: Watcher) -> Finished | None:
        """Carry it to its end, by the very plan it had."""
        unfinished = self._fenced()
        if unfinished is None:
            return None
        upkeep = steps_of(unfinished.plan)
        if upkeep is not None:
            maintenance = Maintenance(self._context, self._keep)
            if maintenance.needs_spark(upkeep):
                self._use_spark()
            return Finished(unfinished.id, maintenance.carry_out(unfinished.id, upkeep, lease, watcher))
        self._use_spark()
        return Finished(unfinished.id, execute(self._context, RefreshPlan.from_dict(unfinished.plan), lease, watcher))

    def give_up(self, lease: Lease, watcher: Watcher) -> Finished | None:
        """Put tables back to their last recorded versions, and leave the rest of the plan.

        What its steps had recorded stays and counts. Upkeep has nothing to plan anew: it is carried to its end.
        """
        unfinished = self._fenced()
        if unfinished is None:
            return None
        if steps_of(unfinished.plan) is not None:
            return self.finish(lease, watcher)
        self._restore(unfinished)
        self._context.catalog.refreshes.abandon(unfinished.id, lease)
        options = self._context.engine.storage_options
        layout.drop_deltas(self._context.root, unfinished.id, options)
        layout.drop_integrations(self._context.root, options)
        return None

    def _restore(self, unfinished: RefreshRecord) -> None:
        catalog, engine = self._context.catalog, self._context.engine
        running = [step for step in catalog.refreshes.steps(unfinished.id) if step.status == "running"]
        for step in running:
            node = self._context.vdag.nodes.get(step.view or "")
            if node is not None and step.kind in ("load", "install", "recompute"):
                self._use_spark()
                base = catalog.versions.baseline(node.record.id)
                with engine.step(node.name, "restore", small=True):
                    make_ready(engine, node, base.version if base else None, step.id)

    def _fenced(self) -> RefreshRecord | None:
        """What is unfinished, once nothing of it is under way any more."""
        catalog, engine = self._context.catalog, self._context.engine
        unfinished = catalog.refreshes.unfinished()
        if unfinished is None:
            return None
        own = {process["pid"] for process in engine.processes()}
        noted = json.loads(catalog.settings.get(PROCESSES) or "[]")
        fence(process for process in noted if process["pid"] not in own)
        engine.interrupt()
        return unfinished
