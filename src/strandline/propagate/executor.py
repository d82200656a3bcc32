"""The executor: carries out a plan step by step, records each step in the catalog, and publishes the new state.

A step's outcome counts when its catalog row says so; the row is written last. A plan that crashed is carried on here
too: steps that are done are skipped, the one that was running is recognised by its commit or done again.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from strandline.algebra.block import delta_of
from strandline.algebra.plan import Bag, Scan
from strandline.catalog import Json, Lease, NewVersion, StateEntry
from strandline.engine import tables
from strandline.engine.delta_log import DeltaLog
from strandline.errors import RefreshError, StrandlineError
from strandline.ingest.advance import carried_on, goes_on, read_anew, take_in_copies
from strandline.ingest.copied import CopiedSource
from strandline.ingest.copies import place_of
from strandline.ingest.dumped import DumpedSource
from strandline.ingest.dumps import load_dump, log_dump, take_dump
from strandline.ingest.leaf import ingest, log_transactions
from strandline.ingest.uncopied import HISTORY, NOTED
from strandline.integrate.fill import Filling
from strandline.propagate.binding import Pins
from strandline.propagate.context import Context
from strandline.propagate.plan import NodePlan, RefreshPlan, Step, key_of
from strandline.propagate.planner import DEFINITION
from strandline.propagate.progress import Event, Watcher, nobody
from strandline.propagate.relevance import relevant
from strandline.propagate.report import RefreshReport, ViewReport
from strandline.sql.render import render
from strandline.store import layout
from strandline.store.deltas import Delta, write_delta, write_summary
from strandline.store.install import install
from strandline.store.node import Node
from strandline.store.tables import committed_version, fill, make_ready


def execute(context: Context, plan: RefreshPlan, lease: Lease, watcher: Watcher = nobody) -> RefreshReport:
    """Carry out *plan*, which the catalog already knows, from wherever it stands."""
    return _Run(context, plan, lease, watcher).run()


class _Run:
    """One plan under way: what its steps have made so far."""

    def __init__(self, context: Context, plan: RefreshPlan, lease: Lease, watcher: Watcher) -> None:
        self._context = context
        self._watch = watcher
        self._plan = plan
        self._lease = lease
        self._started = time.monotonic()
        self._deltas: dict[tuple[str, str], Delta] = {}
        self._versions: dict[str, int] = {}
        self._failed: dict[str, str] = {}
        self._moved = False
        self._only_dumps = _only_dumps(context, plan)
        self._filling = Filling(context.catalog, context.engine, context.sources, context.keep_states)
        self._state: int | None = None
        self._reports = {
            n.name: ViewReport(n.strategy, n.reason, problem=str(n.reason) if n.blocked else None) for n in plan.nodes
        }

    def run(self) -> RefreshReport:
        with self._filling:
            return self._steps()

    def _steps(self) -> RefreshReport:
        records = {record.id: record for record in self._context.catalog.refreshes.steps(self._plan.id)}
        for place, step in enumerate(self._plan.steps):
            record = records[step.id]
            if record.status == "done":
                self._take_up(step, dict(record.result))
            elif record.status in ("failed", "skipped"):
                self._fail(step, record.error or "failed")
            else:
                self._step(step, place, resumed=record.status == "running")
        if not any(step.kind == "publish" for step in self._plan.steps):
            self._finish()
        layout.drop_deltas(self._context.root, self._plan.id)
        if any(node.integrated is not None for node in self._plan.nodes):
            layout.drop_integrations(self._context.root)
        hidden = {n.name for n in self._plan.nodes if n.hidden}
        newest = self._context.catalog.states.newest()
        return RefreshReport(
            self._plan.id,
            newest.number if newest else None,
            {name: r for name, r in self._reports.items() if name not in hidden},
            {name: r for name, r in self._reports.items() if name in hidden},
            time.monotonic() - self._started,
        )

    def _step(self, step: Step, place: int, *, resumed: bool) -> None:
        catalog, total = self._context.catalog, len(self._plan.steps)
        cause = self._unable(step)
        if cause is not None:
            catalog.refreshes.step_skipped(step.id, cause, self._lease)
            self._fail(step, cause)
            self._watch(Event("skipped", step.kind, step.subject, place, total, detail=cause))
            return
        self._watch(Event("started", step.kind, step.subject, place, total))
        began = time.monotonic()
        if step.kind == "publish":
            self._publish(step)
            self._watch(Event("done", step.kind, "", place, total, time.monotonic() - began))
            return
        catalog.refreshes.step_started(step.id, self._lease)
        try:
            with self._context.engine.step(step.subject, step.kind, small=step.small):
                result, version = self._carry_out(step, resumed)
        except Exception as error:
            message = _message(error)
            catalog.refreshes.step_failed(step.id, message, self._lease)
            self._fail(step, message)
            self._watch(Event("failed", step.kind, step.subject, place, total, time.monotonic() - began, message))
            return
        seconds = time.monotonic() - began
        catalog.refreshes.step_done(step.id, {**result, "seconds": seconds}, seconds, self._lease, version)
        self._take_up(step, {**result, "seconds": seconds})
        self._watch(Event("done", step.kind, step.subject, place, total, seconds, _detail(result)))

    def _unable(self, step: Step) -> str | None:
        """Why a step cannot be done: what it builds on has failed."""
        if step.kind in ("capture", "publish"):
            return None
        if step.subject in self._failed:
            return self._failed[step.subject]
        if step.kind == "ingest":
            return None
        node = self._context.vdag.nodes[step.subject]
        if node.copied:
            return self._failed.get(_captured(node.name.split(".", 1)[0]))
        for name in node.inputs:
            if name in self._failed:
                cause = self._failed[name]
                return cause if cause.startswith("INPUT_FAILED") else f"INPUT_FAILED: {name}: {cause}"
        return None

    def _fail(self, step: Step, message: str) -> None:
        if step.kind == "capture":
            self._failed[_captured(step.subject)] = message
            return
        self._failed[step.subject] = message
        if step.subject in self._reports:
            self._reports[step.subject].problem = message

    def _carry_out(self, step: Step, resumed: bool) -> tuple[dict[str, Any], NewVersion | None]:
        path = layout.delta_path(self._context.root, self._plan.id, step.id)
        match step.kind:
            case "capture":
                return self._capture(step), None
            case "load":
                return self._load(step, path)
            case "ingest":
                return self._ingest(step, path), None
            case "compute":
                return self._compute(step, path), None
            case "compare":
                return self._compare(step, path), None
            case "install":
                return self._install(step, resumed)
            case "recompute":
                return self._recompute(step, resumed)
            case "publish":
                raise AssertionError("publishing is not a step on a table")

    def _capture(self, step: Step) -> dict[str, Any]:
        context, source = self._context, self._copied(step.subject)
        copies = [n for n in context.vdag.nodes.values() if n.copied and n.name.split(".", 1)[0] == step.subject]
        options = context.engine.storage_options
        taken = take_in_copies(context.catalog, source, copies, (), options, self._lease, place_of(step.upto))
        planned = {plan.name for plan in self._plan.nodes if plan.changed}
        broken = [n.name for n in copies if n.name in planned and not goes_on(context.catalog, source, n)]
        if broken:
            raise RefreshError(
                "STALE_PLAN",
                f"{', '.join(broken)} must be read anew before the plan can be carried out; refresh by name instead.",
            )
        return {"transactions": taken.transactions, "rows": taken.rows}

    def _load(self, step: Step, path: str) -> tuple[dict[str, Any], NewVersion]:
        context, node = self._context, self._context.vdag.nodes[step.subject]
        if node.base:
            return self._loaded(node, self._filling.fill(node, self._plan.node(node.name).reason, step.id), None)
        source, reason = context.sources[step.subject.split(".", 1)[0]], self._plan.node(step.subject).reason
        where, how = (context.catalog, context.engine), None
        if isinstance(source, DumpedSource):
            kept = context.keep_states
            new, how = load_dump(*where, source, node, step.upto, reason, kept, step.id, path, self._lease)
        else:
            assert isinstance(source, CopiedSource)
            new = read_anew(*where, source, node, reason, context.keep_states, step.id)
        return self._loaded(node, new, how)

    def _loaded(self, node: Node, new: NewVersion, how: str | None) -> tuple[dict[str, Any], NewVersion]:
        rows = DeltaLog(node.path, self._context.engine.storage_options).size(new.version).rows or 0
        return {"version": new.version, "install": "overwrite", "inserted": rows, "deleted": 0, "how": how}, new

    def _copied(self, name: str) -> CopiedSource:
        source = self._context.sources[name]
        assert isinstance(source, CopiedSource)
        return source

    def _ingest(self, step: Step, path: str) -> dict[str, Any]:
        source_name, table = step.subject.split(".", 1)
        source = self._context.sources[source_name]
        columns = tuple({c.name: c for node in self._readers(step) for c in node.uses(step.subject)}.values())
        changes = source.changes(table, step.after, step.upto, columns)
        delta = ingest(self._context.engine, step.subject, changes, columns, path)
        log_transactions(self._context.catalog, source, table, step.after, step.upto, self._lease)
        return _noted(delta)

    def _readers(self, ingested: Step) -> list[Node]:
        """The nodes that take in an ingested delta."""
        return [
            self._context.vdag.nodes[plan.name]
            for plan in self._plan.nodes
            if plan.strategy in ("incremental", "affected")
            and ingested.subject in plan.changed
            and key_of(plan.pinned[ingested.subject]) == key_of(ingested.after)
        ]

    def _compute(self, step: Step, path: str) -> dict[str, Any]:
        node, plan = self._context.vdag.nodes[step.subject], self._plan.node(step.subject)
        if node.copied:
            return self._compute_copy(node, plan, path)
        if node.base:
            return self._take_integrated(plan)
        assert node.block is not None
        deltas = {name: self._deltas[(name, key_of(plan.pinned[name]))] for name in plan.changed}
        rows_in = sum(delta.rows for delta in deltas.values())
        bound = Pins(node, plan.baseline, plan.pinned, self._post(node), deltas, {"keys": f"{path}-keys"})
        matter = relevant(self._context.engine, self._context.binding, bound, deltas)
        changed = matter.changed
        delta = delta_of(node.block, changed, insert_only=plan.insert_only, method=plan.method)
        read = {"rows_in": rows_in, "irrelevant": matter.dropped}
        nothing = {"path": "", "inserted": 0, "deleted": 0, **read}
        if delta is None:
            return nothing
        apart = node.block.told_apart_by
        if delta.touched_keys is not None and apart and len(delta.terms) * len(node.block.inputs) > 1:
            keys = render(delta.touched_keys, lambda scan: self._context.binding.scan(scan, bound))
            columns = tuple(key.column for key in apart)
            shown = tables.distinct(keys, columns)
            if not self._context.engine.write_parquet(shown, bound.bags["keys"]):
                return nothing
            stored = Scan(Bag("keys"), "", columns)
            delta = delta_of(node.block, changed, insert_only=plan.insert_only, stored_keys=stored, method=plan.method)
            assert delta is not None
        summed = delta.form == "summary"
        sql = render(delta.plan, lambda scan: self._context.binding.scan(scan, bound), signed=not summed)
        if summed:
            written = write_summary(self._context.engine, sql, node.stored, path)
        else:
            written = write_delta(self._context.engine, sql, delta.plan.columns, path, delta.form)
        return {**_noted(written), **read}

    def _compute_copy(self, node: Node, plan: NodePlan, path: str) -> dict[str, Any]:
        name, table = node.name.split(".", 1)
        after, upto = plan.pinned[node.name], plan.positions[node.name]
        source = self._context.sources[name]
        if isinstance(source, DumpedSource):
            return self._take_dump(source, node, plan, path)
        changes = self._copied(name).stored_changes(table, after, upto)
        delta = ingest(self._context.engine, node.name, changes, node.stored, path)
        return {**_noted(delta), "rows_in": delta.rows}

    def _take_integrated(self, plan: NodePlan) -> dict[str, Any]:
        """The delta of a base view was computed before the plan was made."""
        if plan.integrated is None:
            raise RefreshError(
                "STALE_PLAN",
                f"{plan.name} is maintained by asking its sources, and what they answer is known only when they are "
                "asked; refresh by name instead.",
            )
        return {**plan.integrated, "rows_in": plan.estimated_rows}

    def _take_dump(self, source: DumpedSource, node: Node, plan: NodePlan, path: str) -> dict[str, Any]:
        context, position = self._context, plan.positions[node.name]
        assert plan.baseline is not None
        taken = take_dump(context.engine, source, node, plan.baseline, position, path)
        told = {"how": taken.how, "set_aside": taken.set_aside}
        return {**_noted(taken.delta), "rows_in": taken.delta.rows, **told}

    def _compare(self, step: Step, path: str) -> dict[str, Any]:
        node = self._context.vdag.nodes[step.subject]
        before = node.pinned_version(step.after)
        assert before is not None
        sql = tables.difference(node.path, before, self._version(node), node.stored)
        return _noted(write_delta(self._context.engine, sql, node.stored, path))

    def _install(self, step: Step, resumed: bool) -> tuple[dict[str, Any], NewVersion]:
        node, plan = self._context.vdag.nodes[step.subject], self._plan.node(step.subject)
        assert plan.baseline is not None
        delta = self._deltas[(node.name, key_of(node.pin(plan.baseline)))]
        version = committed_version(self._context.engine, node, plan.baseline, step.id) if resumed else None
        method = "recovered"
        counts = {"inserted": delta.inserted, "deleted": delta.deleted}
        if version is None:
            if delta.rows:
                make_ready(self._context.engine, node, plan.baseline, step.id)
            installed = install(self._context.engine, node, delta, plan.baseline, step.id)
            method, version = installed.method, installed.version
            counts = {"inserted": installed.inserted, "deleted": installed.deleted}
        if isinstance(self._context.sources.get(node.name.split(".", 1)[0]), DumpedSource) and node.copied:
            log_dump(self._context.catalog, node, plan.positions[node.name], delta, self._lease)
        return {"version": version, "install": method, **counts}, self._new_version(node, plan, version)

    def _recompute(self, step: Step, resumed: bool) -> tuple[dict[str, Any], NewVersion]:
        node, plan = self._context.vdag.nodes[step.subject], self._plan.node(step.subject)
        engine = self._context.engine
        log = DeltaLog(node.path, engine.storage_options)
        before = log.size(plan.baseline).rows if plan.baseline is not None and log.exists() else 0
        version = committed_version(engine, node, plan.baseline, step.id) if resumed else None
        if version is None:
            if plan.baseline is None:
                make_ready(engine, node, None, step.id)
            version = fill(
                engine, node, self._context.contents(node, self._post(node)), self._context.keep_states, step.id
            )
        after = log.size(version).rows
        result = {"version": version, "install": "overwrite", "inserted": after or 0, "deleted": before or 0}
        for name in node.inputs:
            if name not in self._context.vdag.nodes:
                self._log_leaf(name, plan)
        return result, self._new_version(node, plan, version)

    def _log_leaf(self, name: str, plan: NodePlan) -> None:
        """A recomputed node has seen its leaves up to their positions, without an ingest step."""
        source, table = name.split(".", 1)
        leaf = self._context.catalog.leaves.get(name)
        if leaf is not None and leaf.position != plan.positions[name] and leaf.position is not None:
            log_transactions(
                self._context.catalog,
                self._context.sources[source],
                table,
                leaf.position,
                plan.positions[name],
                self._lease,
            )
        elif leaf is not None and leaf.position is None:
            self._context.catalog.unit_of_work.append(name, [], plan.positions[name], lease=self._lease)

    def _post(self, node: Node) -> dict[str, Json]:
        """What the node is to show of each input: planned positions of leaves, newest versions of nodes."""
        plan = self._plan.node(node.name)
        return {
            name: self._pin(self._context.vdag.nodes[name])
            if name in self._context.vdag.nodes
            else plan.positions[name]
            for name in node.inputs
        }

    def _pin(self, node: Node) -> Json:
        return node.pin(self._version(node))

    def _version(self, node: Node) -> int:
        if node.name not in self._versions:
            base = self._context.catalog.versions.baseline(node.record.id)
            assert base is not None
            self._versions[node.name] = base.version
        return self._versions[node.name]

    def _new_version(self, node: Node, plan: NodePlan, version: int) -> NewVersion:
        seen = {**self._post(node), DEFINITION: node.record.fingerprint}
        base = self._context.catalog.versions.baseline(node.record.id)
        if node.copied and base is not None:
            seen.update(carried_on(base))
        if node.base and base is not None:
            seen.update({NOTED: base.inputs[NOTED], HISTORY: dict(plan.history) if plan.history else None})
        return NewVersion(node.record.id, version, seen, plan.positions)

    def _take_up(self, step: Step, result: dict[str, Any]) -> None:
        """What a step made is there for the steps after it."""
        match step.kind:
            case "ingest" | "compare":
                self._deltas[(step.subject, key_of(step.after))] = _delta(result)
            case "compute":
                baseline = self._plan.node(step.subject).baseline
                assert baseline is not None
                node = self._context.vdag.nodes[step.subject]
                self._deltas[(step.subject, key_of(node.pin(baseline)))] = _delta(result)
            case "install" | "recompute":
                self._versions[step.subject] = result["version"]
                self._moved = self._moved or result["install"] != "none" or not self._only_dumps
            case "capture" | "load" | "publish":
                pass
        report = self._reports.get(step.subject)
        if report is not None:
            report.seconds += result.get("seconds", 0.0)
            report.rows_in = result.get("rows_in", report.rows_in)
            report.rows_irrelevant = result.get("irrelevant", report.rows_irrelevant)
            report.how = result.get("how") or report.how
            if step.kind in ("load", "install", "recompute"):
                report.install = result["install"]
                report.rows_inserted, report.rows_deleted = result["inserted"], result["deleted"]

    def _finish(self) -> None:
        """The end of a plan that only prepares another."""
        if self._failed:
            problems = "; ".join(f"{name}: {why}" for name, why in self._failed.items())
            self._context.catalog.refreshes.fail(self._plan.id, problems, self._lease)
        else:
            self._context.catalog.refreshes.finish(self._plan.id, self._lease)

    def _publish(self, step: Step) -> None:
        """One catalog transaction makes the versions reached a new state; failed nodes keep what they showed."""
        catalog = self._context.catalog
        if not self._moved and not self._failed:
            self._finish()
            return
        if not self._moved:
            problems = "; ".join(f"{name}: {why}" for name, why in self._failed.items())
            catalog.refreshes.fail(self._plan.id, problems or "nothing was refreshed", self._lease)
            return
        entries = []
        before = catalog.states.newest()
        for node in self._context.vdag.nodes.values():
            base = catalog.versions.baseline(node.record.id)
            report = self._reports.get(node.name)
            kept = before.entries.get(node.name) if before else None
            if base is None:
                if kept is not None:
                    entries.append(replace(kept, problem="its new definition is not filled yet"))
                continue
            problem = report.problem if report else kept.problem if kept else None
            entries.append(StateEntry(node.name, node.record.id, base.version, base.positions, problem))
        catalog.states.publish(self._plan.id, entries, self._lease)


def _only_dumps(context: Context, plan: RefreshPlan) -> bool:
    """Whether dumps are all that moves a plan: if they hold what is there already, no new state is needed."""
    moving = [n for n in plan.nodes if context.vdag.nodes[n.name].copied and n.strategy != "none"]
    dumped = [isinstance(context.sources.get(n.name.split(".", 1)[0]), DumpedSource) for n in moving]
    compared = all(n.strategy == "incremental" for n in moving)
    return bool(moving) and all(dumped) and compared and not any(step.kind == "ingest" for step in plan.steps)


def _captured(source: str) -> str:
    """The capture of a source among what failed; a view may have the source's name."""
    return f"capture {source}"


def _noted(delta: Delta) -> dict[str, Any]:
    return {"path": delta.path, "inserted": delta.inserted, "deleted": delta.deleted, "form": delta.form}


def _delta(result: Mapping[str, Any]) -> Delta:
    return Delta(result["path"], result["inserted"], result["deleted"], result.get("form", "explicit"))


def _detail(result: Mapping[str, Any]) -> str:
    return f"+{result.get('inserted', 0)} -{result.get('deleted', 0)} rows"


_OWN_ERROR = re.compile(r"\[(NEGATIVE_COUNT|DELETE_WITHOUT_ROW|LOG_WITHOUT_ROW|SOURCE_VALUE)\][^\n]*")
_FILE_GONE = re.compile(
    r"FILE_NOT_FOUND|PATH_NOT_FOUND|TIME_TRAVEL_BEYOND|FileNotFoundException|FAILED_READ_FILE|No such file",
    re.IGNORECASE,
)


_CAUSE = re.compile(r"Caused by: ([^\n]+)")


def _message(error: Exception) -> str:
    """What went wrong, in a line."""
    if isinstance(error, StrandlineError):
        lines = [f"{error.code}: {error.message}", *(error.excerpt or "").splitlines()]
        return " ".join(line.strip() for line in lines)
    text = str(error).strip() or type(error).__name__
    own = _OWN_ERROR.search(text)
    if own is not None:
        return own[0][:1000]
    lines = text.splitlines()
    java = lines[0].startswith("An error occurred while calling") and len(lines) > 1
    first = lines[1].removeprefix(": ") if java else lines[0]
    causes = _CAUSE.findall(text)
    if causes and causes[-1] not in first:
        first = f"{first} caused by {causes[-1]}"
    if _FILE_GONE.search(text):
        return f"INPUT_GONE: a file of an input was removed; refresh again, in full if it stays: {first[:500]}"
    return first[:1000]
