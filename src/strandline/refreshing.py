"""How a warehouse is changed: under its lock, what crashed finished first; sources move, a plan is made and run.

Also what is put together for that, anew each time: the graph of views, the planner, and the context of steps.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import timedelta

from strandline.catalog import Catalog, Lease
from strandline.cost.calibration import SETTING, Prices, prices
from strandline.cost.model import FIXED
from strandline.define.anew import replace_lost_tables, with_blocks
from strandline.define.compiling import Compiler
from strandline.define.files import PendingView, pending_views, same_definition
from strandline.define.relations import KnownRelations
from strandline.define.sources import DeclaredSources
from strandline.define.views import Definitions, unknown_view
from strandline.define.widening import follow_types
from strandline.engine.session import Engine
from strandline.errors import RefreshError, SqlError
from strandline.project.config import duration
from strandline.project.folder import Project
from strandline.propagate.context import Context
from strandline.propagate.executor import execute
from strandline.propagate.exported import ExportedViews
from strandline.propagate.groups import whole_groups
from strandline.propagate.leaves import Advanced, advance
from strandline.propagate.look_ahead import Taken, take_in
from strandline.propagate.plan import RefreshPlan
from strandline.propagate.planner import Planner
from strandline.propagate.progress import Watcher, nobody
from strandline.propagate.report import RefreshReport, ViewReport
from strandline.propagate.vdag import Vdag
from strandline.sql.names import choices
from strandline.sql.statements import CreateView
from strandline.stopwatch import now, running
from strandline.store import layout
from strandline.store.node import Node, node_of
from strandline.store.portable import check_same_engine
from strandline.upkeep.recovery import PROCESSES, Finished, Recovery


class Refreshing:
    """Changes the warehouse of one project, whose parts it is given."""

    def __init__(
        self, project: Project, engine: Engine, catalog: Catalog, declared: DeclaredSources, exported: ExportedViews
    ) -> None:
        self._project = project
        self._engine = engine
        self._catalog = catalog
        self._declared = declared
        self._sources = declared.adapters
        self._exported = exported

    # What there is

    def views(self) -> list[str]:
        """The names of the views."""
        return self.definitions().names()

    def node(self, name: str) -> Node:
        """A view, or a table that is kept for views."""
        record = self._catalog.views.get(name)
        if record is None:
            raise unknown_view(name, self.views())
        return node_of(record, self._project.warehouse_root)

    def named(self, names: Sequence[str]) -> list[str]:
        """The views meant, in their own spelling; one that only a file declares is known as soon as it is applied."""
        return [self.node(name).name for name in names] if names else self.views()

    def moving(self, names: Sequence[str]) -> list[str]:
        """The views meant, and those that are declared to move together with them."""
        return whole_groups(self.named(names), self._groups())

    def pending(self) -> list[PendingView]:
        """What the files of the project declare and the catalog does not know yet."""
        return pending_views(self._project, self._catalog)

    def pending_lines(self) -> tuple[str, ...]:
        """The same, told."""
        return tuple(str(view) for view in self.pending())

    # What is put together

    def vdag(self) -> Vdag:
        """The graph of views."""
        return Vdag(node_of(record, self._project.warehouse_root) for record in self._catalog.views.all())

    def relations(self) -> KnownRelations:
        """What names in queries stand for."""
        return KnownRelations(self._catalog, self._sources)

    def definitions(self) -> Definitions:
        """How views are defined."""
        return Definitions(self._catalog, self._sources, self.compiler())

    def compiler(self) -> Compiler:
        """What makes definitions of statements."""
        root = self._project.warehouse_root
        return Compiler(self._catalog, self._engine, self._sources, self.prices().costs, root)

    def prices(self) -> Prices:
        """The costs to plan with."""
        return prices(self._catalog.settings.get(SETTING), FIXED)

    def planner(self, found: Advanced | None = None, *, captures: bool = False) -> Planner:
        """A planner; *found* is what the first phase of a refresh found or did."""
        leaves = found or Advanced()
        known = (self._catalog, self._engine, self.vdag(), self._sources, self.prices())
        return Planner(*known, leaves.copies, leaves.bases, groups=self._groups(), captures=captures)

    def context(self) -> Context:
        """What steps work with."""
        root, keep = self._project.warehouse_root, self._project.config.keep_states
        parallel = self._project.config.parallel or min(4, max(2, os.cpu_count() or 2))
        known = (self._catalog, self._engine, self.vdag(), self._sources, self.relations(), root, keep)
        return Context(*known, self._groups(), parallel)

    def _groups(self) -> dict[str, list[str]]:
        """The views of each declared group, in their own spelling; those that are not there yet are left out."""
        known = {name.lower(): name for name in self.views()}
        declared = self._project.config.groups.items()
        return {group: [known[v.lower()] for v in members if v.lower() in known] for group, members in declared}

    # Changes

    @contextmanager
    def changing(
        self, purpose: str, wait: float = 0, watcher: Watcher = nobody, *, restart: bool = False
    ) -> Iterator[tuple[Lease, Finished | None]]:
        """Within, nobody else changes the warehouse; what a crashed process left is finished, or given up, first."""
        with self._catalog.lock.acquire(purpose, wait) as lease:
            self._catalog.check()
            lease.when_lost(self._engine.interrupt)
            before = self._catalog.states.newest(), self.views()
            finished = None
            if self._catalog.refreshes.unfinished() is not None:
                recovery = Recovery(self.context(), duration(self._project.config.keep_states), self.note_processes)
                finished = recovery.give_up(lease, watcher) if restart else recovery.finish(lease, watcher)
            self._declared.apply_files()
            yield lease, finished
            newest, views = self._catalog.states.newest(), self.views()
            if self._engine.started or (newest, views) != before:
                self._exported.follow(newest, views)

    def note_processes(self) -> None:
        """Start Spark, and note its processes for whoever must fence them off after a crash."""
        check_same_engine(self._catalog, self._engine, self.vdag().nodes.values())
        self._catalog.settings.put(PROCESSES, json.dumps(self._engine.processes()))

    def refresh(
        self, names: Sequence[str], watcher: Watcher, *, full: bool, accept: bool, restart: bool, wait: float
    ) -> RefreshReport:
        """Bring views, all if none is named, and what they read up to date."""
        if not self.pending() and not self._waiting():
            planner, moving, anew = self.planner(), self.moving(names), self.named(names) if full else []
            plan = None if planner.to_take_in(moving, anew) else planner.plan(moving, anew)
            if plan is not None and plan.empty and not any(node.blocked for node in plan.nodes):
                return self._nothing_done(plan)
        with self.changing("refresh", wait, watcher, restart=restart) as (lease, resumed):
            self._apply_files(accept=accept)
            follow_types(self.definitions(), self.vdag(), self.relations(), names if full else [])
            self._declared.close_unread()
            named, wanted = self.named(names), self.moving(names)
            anew = with_blocks(self.vdag(), named) if full else []
            replace_lost_tables(self._catalog, self._engine, self.vdag(), anew)
            advanced = self._advance(wanted, anew, lease, watcher)
            planner = self.planner(advanced)
            plan = planner.plan(wanted, anew, self._taken_in(planner, wanted, anew, watcher))
            return _told(self._carried_out(plan, lease, watcher, resumed), advanced)

    def carry_out(self, plan: RefreshPlan, watcher: Watcher, *, restart: bool, wait: float) -> RefreshReport:
        """Refresh by a plan that was made before, or refuse it."""
        with self.changing("refresh", wait, watcher, restart=restart) as (lease, resumed):
            self._refuse_stale(plan)
            return self._carried_out(plan, lease, watcher, resumed)

    @running("planning")
    def create(self, create: CreateView, text: str, watcher: Watcher) -> RefreshReport | None:
        """Register a view, keep its *text* as its file, and fill it unless it says otherwise; all that or nothing."""
        known = self._catalog.views.get(create.name)
        if known is not None and not create.or_replace:
            if create.if_not_exists or same_definition(known, create):
                return None
            raise SqlError(
                "VIEW_EXISTS",
                f"view {create.name} exists with another definition; use CREATE OR REPLACE to change it.",
                origin=create.origin,
            )
        with (
            self.changing(f"create {create.name}", watcher=watcher) as (lease, resumed),
            self._taken_back_on_error(create.name),
        ):
            file = self._project.view_file(create.name)
            shown = replace(create, origin=replace(create.origin, file=f"views/{file.name}"))
            self.definitions().apply(shown)
            self._project.write_view(create.name, _as_create(text))
            if create.with_no_data:
                return None
            report, _ = self.moved([create.name], lease, watcher, resumed)
            problem = next((v.problem for n, v in report.views.items() if n.lower() == create.name.lower()), None)
            if problem is not None:
                raise RefreshError("FILL_FAILED", f"view {create.name} could not be filled: {problem}")
            return report

    def moved(
        self,
        names: Sequence[str],
        lease: Lease,
        watcher: Watcher,
        resumed: Finished | None,
        hold: ExitStack | None = None,
    ) -> tuple[RefreshReport, Advanced]:
        """Bring *names* up to date, or fail where a source does; *hold* holds sources in what is shown then."""
        wanted = self.moving(names)
        advanced = self._advance(wanted, (), lease, watcher, strict=True, hold=hold)
        plan = self.planner(advanced).plan(wanted)
        return _told(self._carried_out(plan, lease, watcher, resumed), advanced), advanced

    def _waiting(self) -> bool:
        """Whether a refresh has something to see to that no plan tells."""
        followed = any(record.kind in ("copy", "base") for record in self._catalog.views.all())
        return followed or bool(self._declared.unread()) or self._catalog.refreshes.unfinished() is not None

    def _apply_files(self, *, accept: bool) -> None:
        """Let views be as the files of the project declare them."""
        for view in self.pending():
            if view.change == "changed" and view.create.policy == "INCREMENTAL STRICT" and not accept:
                raise RefreshError(
                    "NOT_ACCEPTED",
                    f"{view}; it is declared INCREMENTAL STRICT, so say that you accept the rebuild: "
                    "`strandline refresh --accept`.",
                )
            if view.change == "rescheduled":
                self.definitions().reschedule(view.create)
            else:
                self.definitions().apply(view.create)

    @contextmanager
    def _taken_back_on_error(self, name: str) -> Iterator[None]:
        """Within, definitions and the view's file change; if that fails, both are as they were."""
        live = [record.id for record in self._catalog.views.all()]
        file = self._project.view_file(name)
        text = file.read_text(encoding="utf-8") if file.is_file() else None
        try:
            yield
        except Exception:
            self._catalog.views.reinstate(live)
            if text is None:
                file.unlink(missing_ok=True)
            else:
                file.write_text(text, encoding="utf-8")
            raise

    def _advance(
        self,
        names: Sequence[str],
        full: Sequence[str],
        lease: Lease,
        watcher: Watcher,
        *,
        strict: bool = False,
        hold: ExitStack | None = None,
    ) -> Advanced:
        """The first phase of a refresh, with the steps of its own that it may need."""
        requested = [name for name in full if self.node(name).copied or self.node(name).base]

        def run(plan: RefreshPlan) -> RefreshReport:
            return self._run(plan, lease, watcher)

        return advance(self.context(), names, requested, lease, run, watcher, strict=strict, hold=hold)

    def _taken_in(self, planner: Planner, names: Sequence[str], full: Sequence[str], watcher: Watcher) -> Taken | None:
        """The changes that the plan is to be made with; None if it is made without."""
        steps = planner.to_take_in(names, full)
        if not steps:
            return None
        self.note_processes()
        return take_in(self.context(), steps, watcher)

    def _carried_out(
        self, plan: RefreshPlan, lease: Lease, watcher: Watcher, resumed: Finished | None
    ) -> RefreshReport:
        done = self._nothing_done(plan) if plan.empty else self._run(plan, lease, watcher)
        return replace(done, resumed=resumed.id if resumed else None)

    def _run(self, plan: RefreshPlan, lease: Lease, watcher: Watcher) -> RefreshReport:
        with running("planning") as stopwatch:
            self.note_processes()
            options = self._engine.storage_options
            layout.note_user(self._project.warehouse_root, self._catalog.warehouse_id, options)
            steps = [(step.id, step.kind, step.subject or None) for step in plan.steps]
            # Its seconds are counted since it was called: what was looked at and taken in for the plan is a part of it.
            ago = timedelta(seconds=now() - stopwatch.began)
            self._catalog.refreshes.begin(plan.id, plan.to_dict(), steps, lease, ago)
            return execute(self.context(), plan, lease, watcher)

    def _refuse_stale(self, plan: RefreshPlan) -> None:
        newest = self._catalog.states.newest()
        if plan.base_state != (newest.number if newest else None) or self._catalog.refreshes.get(plan.id) is not None:
            raise RefreshError(
                "STALE_PLAN",
                f"the plan was made for state {plan.base_state}, and the newest is {newest.number if newest else '-'} "
                "now; plan again.",
            )
        # A refresh that was given up publishes nothing, and leaves what it had recorded.
        nodes, recorded = self.vdag().nodes, self._catalog.versions.baselines()
        bases = {name: recorded.get(node.record.id) for name, node in nodes.items()}
        versions = {name: None if base is None else base.version for name, base in bases.items()}
        moved = [node.name for node in plan.nodes if versions.get(node.name) != node.baseline]
        if moved:
            raise RefreshError(
                "STALE_PLAN",
                f"{choices(moved)} changed since the plan was made, though no state was published; plan again.",
            )
        copies = {record.name for record in self._catalog.views.all() if record.kind == "copy"}
        unread = [node.name for node in plan.nodes if node.name in copies and node.strategy == "full"]
        if unread:
            raise RefreshError(
                "STALE_PLAN",
                f"{', '.join(unread)} must be read anew before the plan can be carried out; refresh by name instead.",
            )

    def _nothing_done(self, plan: RefreshPlan) -> RefreshReport:
        newest = self._catalog.states.newest()
        reports = {
            n.name: ViewReport(n.strategy, n.reason, problem=str(n.reason) if n.blocked else None) for n in plan.nodes
        }
        hidden = {n.name for n in plan.nodes if n.hidden}
        return RefreshReport(
            plan.id,
            newest.number if newest else None,
            {name: report for name, report in reports.items() if name not in hidden},
            {name: report for name, report in reports.items() if name in hidden},
        )


def _told(report: RefreshReport, advanced: Advanced) -> RefreshReport:
    """*report* with what the first phase took in, read anew and asked."""
    asked = {name: integrated.told for name, integrated in advanced.integrated.items()}
    anew = {name: told for loaded in advanced.loaded for name, told in loaded.hidden.items()}
    read = [name for name, told in report.hidden.items() if told.strategy == "full" and told.problem is None]
    hidden = {**report.hidden, **{name: anew[name] for name in read if name in anew}}
    seconds = report.seconds + sum(loaded.seconds for loaded in advanced.loaded)
    return replace(report, hidden=hidden, seconds=seconds, captured=advanced.captured, asked=asked)


def _as_create(text: str) -> str:
    """The statement as its file keeps it: the file is the definition, so it replaces nothing."""
    return re.sub(r"(?is)^(\s*create)\s+or\s+replace\b", r"\1", text, count=1)
