"""What each kind of step does, and what steps have made so far for those after them.

A step reads pinned inputs and what earlier steps recorded, so it can be done again and give the same. Steps may run in
several threads; what one made is taken up by the thread that runs the plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from strandline.algebra.block import delta_of
from strandline.algebra.plan import Bag, Scan
from strandline.catalog import Json, Lease, NewVersion
from strandline.engine import tables
from strandline.engine.delta_log import DeltaLog
from strandline.errors import RefreshError
from strandline.ingest.advance import carried_on, goes_on, read_anew, take_in_copies
from strandline.ingest.copied import CopiedSource
from strandline.ingest.copies import place_of
from strandline.ingest.dumped import DumpedSource
from strandline.ingest.dumps import load_dump, log_dump, take_dump
from strandline.ingest.leaf import ingest, log_transactions
from strandline.ingest.uncopied import HISTORY, NOTED
from strandline.integrate.fill import Filling
from strandline.propagate.binding import Pins
from strandline.propagate.computing import Computing
from strandline.propagate.constraints import CONSTRAINTS, ConstraintChecks, Found, found_by
from strandline.propagate.context import Context
from strandline.propagate.here import Here
from strandline.propagate.inner_deltas import Storing, prepared
from strandline.propagate.plan import NodePlan, RefreshPlan, SharedDelta, Step, key_of
from strandline.propagate.planner import DEFINITION
from strandline.propagate.relevance import in_own_columns, relevant
from strandline.sources.protocol import Position
from strandline.store import layout
from strandline.store.deltas import Delta, require_whole, write_delta
from strandline.store.install import install
from strandline.store.node import Node, passing_node
from strandline.store.tables import committed_version, fill, fill_with, make_ready

MOST_FILLED = 1_000_000
"""A table of more rows is written by Spark."""


class Steps:
    """The steps of one plan."""

    def __init__(self, context: Context, plan: RefreshPlan, lease: Lease, filling: Filling) -> None:
        self._context = context
        self._plan = plan
        self._lease = lease
        self._filling = filling
        self._deltas: dict[tuple[str, str], Delta] = {}
        self._versions: dict[str, int] = {}
        self._constraints = ConstraintChecks(context)
        self._holding: dict[str, Mapping[str, str]] = {}
        self._shared: dict[str, Delta] = {}

    def carry_out(self, step: Step, *, resumed: bool) -> tuple[dict[str, Any], NewVersion | None]:
        """Do *step*; what came of it, and the version that it made of a table.

        One that is *resumed* may have been done, in part or whole, by a process that ended before it said so.
        """
        path = layout.delta_path(self._context.root, self._plan.id, step.id)
        match step.kind:
            case "capture":
                return self._capture(step), None
            case "load":
                return self._load(step, path)
            case "ingest":
                return self._ingest(step, path), None
            case "share":
                return self._share(step, path), None
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

    def take_up(self, step: Step, result: Mapping[str, Any]) -> None:
        """What a step made is there for the steps after it."""
        match step.kind:
            case "ingest" | "compare":
                self._deltas[(step.subject, key_of(step.after))] = Delta.told_by(result)
            case "share":
                self._shared[step.subject] = Delta.told_by(result)
            case "compute":
                baseline = self._plan.node(step.subject).baseline
                assert baseline is not None
                node = self._context.vdag.nodes[step.subject]
                self._deltas[(step.subject, key_of(node.pin(baseline)))] = Delta.told_by(result)
                self._holding[step.subject] = result.get("constraints") or {}
            case "install" | "recompute":
                self._versions[step.subject] = result["version"]
            case "capture" | "load" | "publish":
                pass

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

    def follow(self, step: Step) -> None:
        """Note the transactions that an ingested delta covers."""
        source_name, table = step.subject.split(".", 1)
        source = self._context.sources[source_name]
        log_transactions(self._context.catalog, source, table, step.after, step.upto, self._lease)

    def _ingest(self, step: Step, path: str) -> dict[str, Any]:
        source_name, table = step.subject.split(".", 1)
        source = self._context.sources[source_name]
        columns = tuple({c.name: c for node in self._readers(step) for c in node.uses(step.subject)}.values())
        changes = source.changes(table, step.after, step.upto, columns)
        delta = ingest(self._context.engine, step.subject, changes, columns, path)
        self.follow(step)
        return delta.noted()

    def _readers(self, ingested: Step) -> list[Node]:
        """The nodes that take in an ingested delta, or look at it."""
        return [
            self._context.vdag.nodes[plan.name]
            for plan in self._plan.nodes
            if ingested.subject in (plan.changed if plan.strategy in ("incremental", "affected") else plan.checked)
            and key_of(plan.pinned[ingested.subject]) == key_of(ingested.after)
        ]

    def _compute(self, step: Step, path: str) -> dict[str, Any]:
        node, plan = self._context.vdag.nodes[step.subject], self._plan.node(step.subject)
        if node.copied:
            return self._compute_copy(node, plan, path)
        if node.base:
            return self._take_integrated(plan)
        assert node.block is not None
        deltas = self._seen_since(plan)
        rows_in = sum(delta.rows for delta in deltas.values())
        shared = [each.join for each in self._plan.shared_by(plan) if each.name in self._shared]
        there = {join.name: self._shared[join.name] for join in shared}
        require_whole(there.values(), self._context.engine.storage_options)
        keys = {"keys": f"{path}-keys"}
        bound = Pins(node, plan.baseline, plan.pinned, self._post(node), deltas, keys)
        under = self._constraints.changed(node, bound, deltas)
        own = in_own_columns(node, deltas, self._context.binding, f"{path}-own", self._context.engine)
        bound = replace(bound, deltas={**own, **there}, shared={join.name: join.shape.relations for join in shared})
        binding, engine = self._context.binding, self._context.engine
        computing = Computing(engine, binding)
        matter = relevant(engine, binding, computing.here, bound, own)
        joins = [replace(join, empty=not there[join.name].rows) for join in shared]
        storing = Storing(computing, binding, bound, path)
        body = prepared(node.block, matter.changed, storing, under.assumed, order=plan.order, shared=joins)
        bound = storing.pins
        # Planned for constraints that may have been set aside since, here or in a node below.
        insert_only = plan.insert_only and not any(each.deleted for each in deltas.values())
        how: dict[str, Any] = {"insert_only": insert_only, "method": plan.method}
        delta = body.delta(**how)
        read = {
            "rows_in": rows_in,
            "irrelevant": rows_in - sum(each.rows for each in own.values()) + matter.dropped,
            "constraints": under.noted,
            "how": under.how,
        }
        nothing = {"path": "", "inserted": 0, "deleted": 0, **read}
        if delta is None:
            return nothing
        apart = node.block.told_apart_by
        if delta.touched_keys is not None and apart and len(delta.terms) * len(node.block.inputs) > 1:
            columns = tuple(key.column for key in apart)
            if not computing.keys(delta.touched_keys, bound, columns, bound.bags["keys"]):
                return nothing
            stored = Scan(Bag("keys"), "", columns)
            delta = body.delta(stored_keys=stored, **how)
            assert delta is not None
        written = computing.delta(delta.plan, bound, delta.plan.columns, path, delta.form)
        return {**written.noted(), **read, **computing.noted}

    def _share(self, step: Step, path: str) -> dict[str, Any]:
        """The delta of a join, for all nodes that hold it."""
        shared = next(each for each in self._plan.shared if each.name == step.subject)
        readers = [self._plan.node(name) for name in shared.readers]
        node, seen_since = passing_node(shared.name, shared.join.plan), self._seen_since(shared)
        binding, engine = self._context.binding, self._context.engine
        deltas = in_own_columns(node, seen_since, binding, f"{path}-own", engine)
        seen = {**shared.pinned, CONSTRAINTS: found_by([reader.pinned for reader in readers])}
        bound = Pins(node, None, seen, self._shown_of(node.inputs, readers[0].positions), deltas, {})
        assumed = self._constraints.shared(node, replace(bound, deltas=seen_since), seen_since)
        assert node.block is not None
        touched = [name for name, delta in deltas.items() if delta.rows]
        delta = delta_of(node.block, touched, insert_only=False, assumed=assumed, order=shared.order)
        rows_in = {"rows_in": sum(delta.rows for delta in seen_since.values())}
        if delta is None:
            return {**Delta("", 0, 0).noted(), **rows_in}
        computing = Computing(engine, binding)
        written = computing.delta(delta.plan, bound, delta.plan.columns, path)
        return {**written.noted(), **rows_in, **computing.noted}

    def _seen_since(self, plan: NodePlan | SharedDelta) -> dict[str, Delta]:
        """The deltas of what changed since it was seen."""
        found = {name: self._deltas[(name, key_of(plan.pinned[name]))] for name in plan.changed}
        require_whole(found.values(), self._context.engine.storage_options)
        return found

    def _compute_copy(self, node: Node, plan: NodePlan, path: str) -> dict[str, Any]:
        name, table = node.name.split(".", 1)
        after, upto = plan.pinned[node.name], plan.positions[node.name]
        source = self._context.sources[name]
        if isinstance(source, DumpedSource):
            return self._take_dump(source, node, plan, path)
        changes = self._copied(name).stored_changes(table, after, upto)
        delta = ingest(self._context.engine, node.name, changes, node.stored, path)
        return {**delta.noted(), "rows_in": delta.rows}

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
        return {**taken.delta.noted(), "rows_in": taken.delta.rows, **told}

    def _compare(self, step: Step, path: str) -> dict[str, Any]:
        node = self._context.vdag.nodes[step.subject]
        before = node.pinned_version(step.after)
        assert before is not None
        sql = tables.difference(node.path, before, self._version(node), node.stored)
        return write_delta(self._context.engine, sql, node.stored, path).noted()

    def _install(self, step: Step, resumed: bool) -> tuple[dict[str, Any], NewVersion]:
        node, plan = self._context.vdag.nodes[step.subject], self._plan.node(step.subject)
        assert plan.baseline is not None
        delta = self._deltas[(node.name, key_of(node.pin(plan.baseline)))]
        version = committed_version(self._context.engine, node, plan.baseline, step.id) if resumed else None
        method = "recovered"
        counts = {"inserted": delta.inserted, "deleted": delta.deleted}
        if version is None:
            require_whole([delta], self._context.engine.storage_options)
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
        before = log.rows(plan.baseline) if plan.baseline is not None and log.exists() else 0
        version = committed_version(engine, node, plan.baseline, step.id) if resumed else None
        under, left = Found(), dict[str, Any]()
        if version is None:
            under = self._checked(node, plan)
            if plan.baseline is None:
                make_ready(engine, node, None, step.id)
            here = Here(engine, self._context.binding)
            version = self._filled(node, step, here)
            left = {"left_to_spark": here.left}
        after = log.rows(version)
        result = {"version": version, "install": "overwrite", "inserted": after or 0, "deleted": before or 0}
        result |= {"constraints": under.noted, "how": under.how, **left}
        self._holding[node.name] = under.noted
        for name in node.inputs:
            if name not in self._context.vdag.nodes:
                self._log_leaf(name, plan)
        return result, self._new_version(node, plan, version)

    def _filled(self, node: Node, step: Step, here: Here) -> int:
        """The version of a table that is written whole."""
        context, pins = self._context, self._post(node)
        if node.block is not None:
            rows = here.rows(node.block.contents, Pins(node, None, pins, pins, {}, {}))
            if rows is not None and rows.num_rows <= MOST_FILLED:
                version = fill_with(context.engine, node, rows, context.keep_states, step.id)
                if version is not None:
                    return version
        return fill(context.engine, node, context.contents(node, pins), context.keep_states, step.id)

    def _checked(self, node: Node, plan: NodePlan) -> Found:
        """What constraints hold in what a recomputed node is to show: by the changes, if they are there."""
        if not plan.checked:
            return self._constraints.filled(node, self._post(node))
        there = {name: self._deltas.get((name, key_of(plan.pinned[name]))) for name in plan.checked}
        deltas = {name: delta for name, delta in there.items() if delta is not None}
        pins = Pins(node, plan.baseline, plan.pinned, self._post(node), deltas, {})
        return self._constraints.recomputed(node, pins, deltas if len(deltas) == len(there) else None)

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
        return self._shown_of(node.inputs, self._plan.node(node.name).positions)

    def _shown_of(self, inputs: Iterable[str], positions: Mapping[str, Position]) -> dict[str, Json]:
        nodes = self._context.vdag.nodes
        return {name: self._pin(nodes[name]) if name in nodes else positions[name] for name in inputs}

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
        if self._holding.get(node.name):
            seen[CONSTRAINTS] = dict(self._holding[node.name])
        base = self._context.catalog.versions.baseline(node.record.id)
        if node.copied and base is not None:
            seen.update(carried_on(base))
        if node.base and base is not None:
            seen.update({NOTED: base.inputs[NOTED], HISTORY: dict(plan.history) if plan.history else None})
        return NewVersion(node.record.id, version, seen, plan.positions)
