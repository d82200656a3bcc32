"""The planner: which node is refreshed how, and why.

It only peeks: at positions, at logs, at the catalog. No Spark job runs and no session is started.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, replace
from functools import cache

from strandline.algebra.representation import representation
from strandline.algebra.schema import Column, Schema, comparable
from strandline.catalog import Catalog, Json, VersionRecord
from strandline.cost.calibration import Prices
from strandline.cost.graph import Candidate, Weighed, weigh
from strandline.cost.model import LITTLE_ROWS
from strandline.engine.session import Engine
from strandline.errors import RefreshError
from strandline.ingest.advance import CopyState, read_reason
from strandline.ingest.uncopied import FILLED
from strandline.propagate.applying import Applying
from strandline.propagate.base_views import BaseState
from strandline.propagate.constraints import declared
from strandline.propagate.groups import Groups, held_back
from strandline.propagate.inputs import UNKNOWN_ROWS, Inputs
from strandline.propagate.look_ahead import Taken
from strandline.propagate.plan import SMALL_BYTES, NodePlan, RefreshPlan, Step, key_of
from strandline.propagate.pricing import Reading, candidate
from strandline.propagate.schemas import schema_problem
from strandline.propagate.sharing import Reader, Sharing, Sized, share
from strandline.propagate.step_maker import StepMaker, numbered
from strandline.propagate.vdag import Vdag
from strandline.reasons import Reason
from strandline.sources.protocol import Position, Source
from strandline.store.deltas import Delta
from strandline.store.node import Node

FEW_CHANGED = 0.05
"""Of a table of which a larger share changed, changes are not taken in before the plan is made."""

_REBASELINE = frozenset(
    {"FIRST_FILL", "REQUESTED", "DEFINITION_CHANGED", "CHANGE_FEED_GAP", "SOURCE_TABLE_REPLACED", "INPUT_REBASELINED"}
)
"""Reasons for which even a strictly incremental view is recomputed."""


class Planner:
    """Plans refreshes of one warehouse."""

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        vdag: Vdag,
        sources: Mapping[str, Source],
        prices: Prices,
        copies: Mapping[str, CopyState] | None = None,
        bases: Mapping[str, BaseState] | None = None,
        *,
        groups: Groups | None = None,
        captures: bool = False,
    ) -> None:
        """*copies* and *bases* are what was found of copied tables and of base views.

        Views of one of *groups* move together. With *captures* a plan takes the changes of copied tables in itself.
        """
        self._catalog = catalog
        self._engine = engine
        self._vdag = vdag
        self._sources = sources
        self._prices = prices
        self._copies = dict(copies or {})
        self._bases = dict(bases or {})
        self._groups = groups or {}
        self._captures = captures
        self._baselines = catalog.versions.baselines()
        self._constraints = declared(catalog)
        self._inputs = self._inputs_of(())
        self._applying = self._applying_to(self._inputs)
        self._weighed = Weighed()

    def to_take_in(self, names: Collection[str], full: Collection[str] = ()) -> list[tuple[Step, Schema]]:
        """Changes of leaves that should be taken in before *names* are planned, each with the columns that are read.

        None if there is little data, none for nodes in *full*, which are recomputed, and none of a table of which so
        much changed that it makes no difference.
        """
        order = self._vdag.with_ancestors(names)
        self._inputs = self._inputs_of(order)
        if self._little(order):
            return []
        wanted: dict[tuple[str, str], tuple[Step, dict[str, Column]]] = {}
        maker = self._step_maker({})
        for name in order:
            node = self._vdag.nodes[name]
            base = self._baselines.get(node.record.id)
            for leaf, after in self._followed(node, base) if base is not None and name not in full else ():
                key = (leaf, key_of(after))
                if key not in wanted:
                    wanted[key] = (maker.ingest(leaf, after), {})
                wanted[key][1].update({column.name: column for column in node.uses(leaf)})
        return [(step, tuple(columns.values())) for step, columns in wanted.values()]

    def _followed(self, node: Node, base: VersionRecord) -> Iterator[tuple[str, Position]]:
        """The leaves whose changes a node may be brought up to date by, with what it has seen of each."""
        if node.block is None or node.policy == "FULL":
            return
        for name in node.inputs:
            leaf, after = self._inputs.leaves.get(name), base.inputs.get(name)
            if leaf is None or leaf.problem is not None or after is None or after == leaf.position:
                continue
            peek = self._inputs.peek(name, after)
            most = FEW_CHANGED * (leaf.size.rows or 0)
            usable = peek.gap is None and schema_problem(node, name, leaf.columns) is None
            if usable and peek.changes_data and self._inputs.changed_rows(name, after) <= most:
                yield name, after

    def plan(self, names: Collection[str], full: Collection[str] = (), taken: Taken | None = None) -> RefreshPlan:
        """The plan that brings *names* and their ancestors up to date; those in *full* are recomputed.

        *taken* is what :meth:`to_take_in` named: then leaves are where they were then.
        """
        order = self._vdag.with_ancestors(names)
        if taken is None:
            self._inputs = self._inputs_of(order)
        else:
            self._inputs.taken = taken
        self._applying = self._applying_to(self._inputs)
        self._weighed = Weighed()
        kept: dict[str, Reason] = {}
        planned = self._planned(order, full, kept)
        while held := self._held_back(planned):
            kept = held
            planned = self._planned(order, full, kept)
        self._weighed = self._weigh(planned)
        if self._weighed.recomputed or self._weighed.alone:
            planned = self._planned(order, full, kept)
        newest = self._catalog.states.newest()
        sharing = self._sharing(planned)
        planned = {name: _sharing_in(plan, sharing) for name, plan in planned.items()}
        readings = {name: applied.reading for name, applied in self._applying.found.items()}
        readings |= {name: reader.reading for name, reader in sharing.readers.items()}
        steps = self._step_maker(readings).steps(planned, sharing, self._groups, captures=self._captures)
        plan_id = uuid.uuid4().hex
        return RefreshPlan(
            plan_id,
            newest.number if newest else None,
            tuple(planned.values()),
            numbered(steps, plan_id),
            costs=self._prices.told,
            shared=sharing.deltas,
        )

    def _applying_to(self, inputs: Inputs) -> Applying:
        return Applying(self._vdag, inputs, self._constraints, self._prices)

    def _step_maker(self, readings: Mapping[str, Reading]) -> StepMaker:
        return StepMaker(self._catalog, self._vdag, self._sources, self._prices, self._inputs, readings)

    def _little(self, order: Collection[str]) -> bool:
        """Whether the sources hold so little that either way of a refresh is nearly all fixed costs."""
        copied = [name for name in order if self._vdag.nodes[name].copied or self._vdag.nodes[name].base]
        return self._inputs.rows + sum(map(self._inputs.rows_of, copied)) <= LITTLE_ROWS

    def _sharing(self, planned: Mapping[str, NodePlan]) -> Sharing:
        """The joins whose deltas are computed once for several nodes."""
        readers = []
        for name, plan in planned.items():
            found = self._applying.found.get(name)
            if plan.strategy in ("incremental", "affected") and plan.terms and found is not None:
                known = (found.changed, found.assumed, found.reading, found.reach)
                readers.append(Reader(self._vdag.nodes[name], plan, *known))

        def size(name: str) -> Sized:
            seen = next((r.plan for r in readers if name in r.plan.changed), None)
            base = None if seen is None else self._baselines[self._vdag.nodes[seen.name].record.id]
            changed = 0 if base is None else self._applying.changed_rows(name, base, planned)
            return Sized(self._inputs.rows_of(name), changed)

        return share(readers, cache(size), self._prices) if len(readers) > 1 else Sharing()

    def _planned(
        self, order: Collection[str], full: Collection[str], held: Mapping[str, Reason]
    ) -> dict[str, NodePlan]:
        """Each node after its inputs; those of which that was weighed so are recomputed for their cost."""
        planned: dict[str, NodePlan] = {}
        for name in order:
            node = self._vdag.nodes[name]
            if node.copied:
                planned[name] = self._copy(node)
            elif node.base:
                planned[name] = self._base(node)
            else:
                planned[name] = self._node(node, planned, name in full, held.get(name))
        return planned

    def _held_back(self, planned: Mapping[str, NodePlan]) -> dict[str, Reason]:
        """The views that would move, though one of their group cannot; all that are held back, if there are such."""
        stuck = {name: str(plan.reason) for name, plan in planned.items() if plan.blocked}
        moving = held_back(self._groups, stuck, planned)
        earlier = {name: plan.reason for name, plan in planned.items() if plan.reason.code == "GROUP_HELD"}
        return {**earlier, **{name: Reason("GROUP_HELD", why) for name, why in moving.items()}} if moving else {}

    def _weigh(self, planned: Mapping[str, NodePlan]) -> Weighed:
        """Which nodes to recompute, by what that costs them and those above; over little data, none."""
        little = self._little(planned)
        moving = [plan for plan in planned.values() if plan.strategy != "none" and not plan.blocked]
        found: list[Candidate] = []
        for plan in moving:
            node = self._vdag.nodes[plan.name]
            reads = [name for name in plan.changed if name in planned and name != plan.name]
            below = sum(self._applying.changed_rows_below(planned[name]) for name in reads)
            above = [name for name in self._vdag.dependants(plan.name) if name in planned]
            free = not little and self._goes_by_cost(node)
            applied = self._applying.found.get(plan.name)
            reading = None if applied is None else applied.reading
            table = self._inputs.extent(plan.name, len(node.stored))
            # What base views take of their sources they take in themselves.
            followed = [] if node.base else [name for name in plan.changed if name in self._inputs.leaves]
            leaves = [(name, key_of(plan.pinned[name])) for name in followed]
            found.append(candidate(node, plan, reads, reading, table, below, above, leaves, free=free))
        ingests = [step for step in self._step_maker({}).ingests(planned) if step.taken is None]
        return weigh(found, self._prices, {(step.subject, key_of(step.after)): step.charges for step in ingests})

    def is_small(self, names: Collection[str]) -> bool:
        """Whether all that *names* are computed from is little enough to run interpreted."""
        order = self._vdag.with_ancestors(names)
        inputs, nodes = self._inputs_of(order), [self._vdag.nodes[name] for name in order]
        copied = sum(inputs.size(node.name).bytes for node in nodes if node.copied or node.base)
        return inputs.bytes + copied < SMALL_BYTES

    def _inputs_of(self, order: Collection[str]) -> Inputs:
        """The tables that nodes of *order* read; all that read one must show the same of it."""
        shown = {leaf: position for state in self._bases.values() for leaf, position in state.positions.items()}
        engine = self._engine
        known = (self._vdag, self._sources, engine.storage_options, order, shown)
        return Inputs(*known, seeks=engine.seeks, marks=engine.marks)

    def _copy(self, node: Node) -> NodePlan:
        """How the copy of a source table is brought to where its source was captured."""
        state = self._copies.get(node.name, CopyState(problem=Reason("SOURCE_UNREACHABLE")))
        base = self._baselines.get(node.record.id)
        draft = _kept_or_filled(node, base, state)
        if draft.strategy == "full" or draft.blocked or base is None:
            return draft
        found = replace(draft, positions={node.name: state.position}, pinned={node.name: base.positions[node.name]})
        if state.peek.changes_data:
            found = replace(
                found,
                strategy="incremental",
                reason=state.how,
                changed=(node.name,),
                insert_only=state.peek.insert_only,
                estimated_rows=self._inputs.rows_of(node.name) if state.peek.rows is None else state.peek.rows,
            )
        read = read_reason(base)
        if read is not None and not self._shown(node, base):
            return replace(found, strategy="full", reason=read)
        return found

    def _base(self, node: Node) -> NodePlan:
        """How a base view, or an auxiliary view of one, takes in what the changes of its sources amount to."""
        state = self._bases.get(node.name, BaseState(problem=Reason("SOURCE_UNREACHABLE")))
        base = self._baselines.get(node.record.id)
        draft = _kept_or_filled(node, base, state)
        if draft.strategy == "full" or draft.blocked or base is None:
            return draft
        found = replace(draft, positions=state.positions, pinned=dict(base.inputs))
        filled = base.inputs.get(FILLED)
        if isinstance(filled, dict) and not self._shown(node, base):
            found = replace(found, strategy="full", reason=Reason(str(filled["code"]), str(filled["text"])))
        if not state.updates and not state.peek.changes_data:
            return found
        delta = state.delta or Delta("", state.peek.rows or UNKNOWN_ROWS, 0)
        if delta.rows and found.strategy == "none":
            how = f"by {node.record.options['algorithm']}"
            found = replace(found, strategy="incremental", reason=Reason("COMPENSATED", how))
        return replace(
            found,
            changed=tuple(leaf for leaf in node.leaves if state.positions[leaf] != base.positions[leaf]),
            insert_only=state.peek.insert_only if state.delta is None else not delta.deleted,
            estimated_rows=delta.rows,
            integrated=None if state.delta is None else asdict(state.delta),
            history=state.history,
        )

    def _shown(self, node: Node, base: VersionRecord) -> bool:
        """Whether a published state shows this version of a node."""
        newest = self._catalog.states.newest()
        entry = newest.entries.get(node.name) if newest else None
        return entry is not None and (entry.view_id, entry.version) == (base.view_id, base.version)

    def _node(
        self,
        node: Node,
        planned: Mapping[str, NodePlan],
        requested: bool,
        held: Reason | None,
    ) -> NodePlan:
        base = self._baselines.get(node.record.id)
        positions = self._positions(node, planned)
        blocked = held or self._blocked(node, planned)
        draft = NodePlan(
            node.name,
            node.hidden,
            "none",
            Reason("UNCHANGED"),
            base.version if base else None,
            dict(base.inputs) if base else {},
            positions,
            representation="" if node.block is None else representation(node.block),
            representation_reason=node.stored_as.partition("; ")[2],
        )
        if blocked is not None:
            kept = dict(base.positions) if base else {}
            return replace(draft, reason=blocked, blocked=True, positions=kept)
        reason = self._full_reason(node, base, planned, requested)
        if reason is not None:
            if node.policy == "INCREMENTAL STRICT" and reason.code not in _REBASELINE:
                raise RefreshError(
                    "INCREMENTAL_STRICT",
                    f"view {node.name} would be recomputed ({reason}), and its policy forbids that; "
                    "refresh it with FULL, or change its policy to INCREMENTAL.",
                )
            return replace(draft, strategy="full", reason=reason)
        assert base is not None
        changed = self._changed(node, base, planned)
        if not changed:
            return replace(draft, positions=dict(base.positions))
        return self._incremental(node, replace(draft, changed=tuple(changed)), base, planned)

    def _positions(self, node: Node, planned: Mapping[str, NodePlan]) -> dict[str, Position]:
        found: dict[str, Position] = {}
        for name in node.inputs:
            if name in self._inputs.leaves:
                found[name] = self._inputs.leaves[name].position
            else:
                found.update(planned[name].positions)
        return found

    def _blocked(self, node: Node, planned: Mapping[str, NodePlan]) -> Reason | None:
        for name in node.inputs:
            if name in planned and planned[name].blocked:
                if self._vdag.nodes[name].copied:
                    return planned[name].reason
                return Reason("INPUT_FAILED", f"{name} cannot be refreshed: {planned[name].reason}")
            if name in planned and self._vdag.nodes[name].copied:
                problem = schema_problem(node, name, self._vdag.nodes[name].visible)
                if problem is not None:
                    return problem
            if name in self._inputs.leaves:
                leaf = self._inputs.leaves[name]
                problem = leaf.problem or schema_problem(node, name, leaf.columns)
                if problem is not None:
                    return problem
        return None

    def _full_reason(
        self,
        node: Node,
        base: VersionRecord | None,
        planned: Mapping[str, NodePlan],
        requested: bool,
    ) -> Reason | None:
        """Why the node is recomputed, or None if its changes will do."""
        if base is None:
            return Reason("FIRST_FILL")
        if requested:
            return Reason("REQUESTED")
        if base.inputs.get(DEFINITION) != node.record.fingerprint:
            return Reason("DEFINITION_CHANGED")
        changed = self._changed(node, base, planned)
        for name in changed:
            if name in self._inputs.leaves:
                gap = self._inputs.peek(name, base.inputs[name]).gap
                if gap is not None:
                    return gap
        if not changed:
            return None
        if node.block is None:
            return node.reason or Reason("CLAUSE")
        if node.policy == "FULL":
            return Reason("POLICY_FULL")
        for name in changed:
            if name in planned and self._seen(name, base.inputs.get(name)) is None:
                return Reason("INPUT_REBASELINED", f"{name} was defined anew")
            if name in planned and not all(comparable(c) for c in self._vdag.nodes[name].stored):
                return Reason("INPUT_REBASELINED", f"{name} was recomputed, and its rows cannot be compared")
        return None

    def _changed(self, node: Node, base: VersionRecord, planned: Mapping[str, NodePlan]) -> list[str]:
        """The inputs that differ from what the node has seen."""
        changed = []
        for name in node.inputs:
            seen = base.inputs.get(name)
            if name in self._inputs.leaves:
                moved = seen != self._inputs.leaves[name].position
                if moved and (seen is None or self._inputs.peek(name, seen).changes_data):
                    changed.append(name)
            elif planned[name].strategy != "none" or planned[name].baseline != self._seen(name, seen):
                changed.append(name)
        return changed

    def _incremental(
        self, node: Node, draft: NodePlan, base: VersionRecord, planned: Mapping[str, NodePlan]
    ) -> NodePlan:
        """From its changes, unless it was found that recomputing is cheaper."""
        found = self._applying.plan(node, draft, base, planned)
        if node.name in self._weighed.recomputed:
            by_changes = f"applying {found.estimated_rows} changed rows at {found.cost:.2f}"
            detail = f"recomputing is estimated at {found.cost_full:.2f}, {by_changes}"
            return replace(found, strategy="full", reason=Reason("COST", detail), method_reason="")
        if node.name in self._weighed.alone:
            costs = f"{found.cost_full:.2f}, changes at {found.cost:.2f}"
            detail = f"recomputing is estimated at {costs}, but views above read them"
            return replace(found, reason=Reason(found.reason.code, detail))
        return found

    def _goes_by_cost(self, node: Node) -> bool:
        """Whether the cheapest way is taken; a hidden block is a part of views, and does as the strictest of them."""
        if node.hidden:
            return all(self._goes_by_cost(self._vdag.nodes[name]) for name in self._vdag.dependants(node.name))
        return node.policy in ("AUTO", "FULL")

    def _seen(self, name: str, pin: Json) -> int | None:
        """The version of a node below that a pin names."""
        return self._vdag.nodes[name].pinned_version(pin)


DEFINITION = "@definition"
"""Among the inputs of a version, under a name that no relation has: the fingerprint of its definition then."""


def _kept_or_filled(node: Node, base: VersionRecord | None, state: CopyState | BaseState) -> NodePlan:
    """The plan of a copy or base view that cannot move, or has to be filled from its source first; else a draft."""
    draft = NodePlan(node.name, True, "none", Reason("UNCHANGED"), base.version if base else None)
    if state.problem is not None:
        return replace(draft, reason=state.problem, blocked=True, positions=dict(base.positions) if base else {})
    if state.anew is not None or base is None:
        return replace(draft, strategy="full", reason=state.anew or Reason("FIRST_FILL"))
    return draft


def _sharing_in(plan: NodePlan, sharing: Sharing) -> NodePlan:
    reader = sharing.readers.get(plan.name)
    if reader is None:
        return plan
    return replace(plan, shares=tuple(join.name for join in reader.shared), terms=reader.reading.work.terms)
