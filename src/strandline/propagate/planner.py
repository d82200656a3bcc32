"""The planner: which node is refreshed how, and why.

It only peeks: at positions, at logs, at the catalog. No Spark job runs and no session is started.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache

from strandline.algebra.block import BlockDelta, delta_of
from strandline.algebra.constraints import AppendOnly, Assumed
from strandline.algebra.representation import representation
from strandline.algebra.schema import Schema, comparable
from strandline.catalog import Catalog, Json, VersionRecord
from strandline.cost import charges
from strandline.cost.calibration import Prices
from strandline.cost.charges import Charges, Install, Work
from strandline.cost.graph import Weighed, weigh
from strandline.engine.delta_log import DeltaLog, NoSuchTable, TableSize
from strandline.engine.session import Engine
from strandline.errors import RefreshError, SourceError
from strandline.ingest.advance import CopyState, read_reason
from strandline.ingest.copied import CopiedSource
from strandline.ingest.uncopied import FILLED
from strandline.propagate.base_views import BaseState
from strandline.propagate.constraints import declared, planned_by
from strandline.propagate.groups import Groups, held_back
from strandline.propagate.methods import Choice, expected_install, settled_method
from strandline.propagate.ordering import order_of_changes
from strandline.propagate.plan import SMALL_BYTES, NodePlan, RefreshPlan, Step, StepKind, key_of
from strandline.propagate.pricing import Reading, candidate, computing, installing, priced
from strandline.propagate.publish import unpublished
from strandline.propagate.schemas import schema_problem
from strandline.propagate.sharing import Reader, Sharing, Sized, looked_up_by, share, sharing_charges
from strandline.propagate.vdag import Vdag
from strandline.reasons import Reason
from strandline.sources.protocol import Peek, Position, Source, TableInfo
from strandline.store.deltas import Delta
from strandline.store.install import TINY_ROWS
from strandline.store.node import Node

UNKNOWN_ROWS = 1_000
"""What is taken for the size of a change whose source keeps no statistics."""

_REBASELINE = frozenset(
    {"FIRST_FILL", "REQUESTED", "DEFINITION_CHANGED", "CHANGE_FEED_GAP", "SOURCE_TABLE_REPLACED", "INPUT_REBASELINED"}
)
"""Reasons for which even a strictly incremental view is recomputed."""


_AFFECTED = {
    "affected groups": "GROUPS_AFFECTED",
    "affected partitions": "PARTITIONS_AFFECTED",
    "one partition": "ONE_PARTITION",
    "top-k": "TOP_K",
}
"""Why a node is computed anew in part, by the strategy of the operator on top."""


@dataclass
class _Leaf:
    """A leaf as it is now, and what was peeked of its changes."""

    position: Position
    columns: Schema
    problem: Reason | None
    rows: int | None
    bytes: int
    peeks: dict[str, Peek]


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
        self._tables: dict[str, Mapping[str, TableInfo]] = {}
        self._baselines = catalog.versions.baselines()
        self._constraints = declared(catalog)
        self._sizes: dict[str, TableSize] = {}
        self._readings: dict[str, Reading] = {}
        self._assumed: dict[str, Assumed] = {}
        self._weighed = Weighed()

    def plan(self, names: Collection[str], full: Collection[str] = ()) -> RefreshPlan:
        """The plan that brings *names* and their ancestors up to date; those in *full* are recomputed."""
        order = self._vdag.with_ancestors(names)
        leaves = {leaf: self._leaf(leaf) for leaf in self._leaves_of(order)}
        self._weighed = Weighed()
        kept: dict[str, Reason] = {}
        planned = self._planned(order, leaves, full, kept)
        while held := self._held_back(planned):
            kept = held
            planned = self._planned(order, leaves, full, kept)
        self._weighed = self._weigh(planned)
        if self._weighed.recomputed or self._weighed.alone:
            planned = self._planned(order, leaves, full, kept)
        newest = self._catalog.states.newest()
        sharing = self._sharing(planned, leaves)
        planned = {name: _sharing_in(plan, sharing) for name, plan in planned.items()}
        self._readings.update({name: reader.reading for name, reader in sharing.readers.items()})
        steps = self._steps(planned, leaves, sharing)
        plan_id = uuid.uuid4().hex
        return RefreshPlan(
            plan_id,
            newest.number if newest else None,
            tuple(planned.values()),
            _numbered(steps, plan_id),
            costs=self._prices.told,
            shared=sharing.deltas,
        )

    def _sharing(self, planned: Mapping[str, NodePlan], leaves: Mapping[str, _Leaf]) -> Sharing:
        """The joins whose deltas are computed once for several nodes."""
        readers = [
            Reader(self._vdag.nodes[name], plan, self._assumed[name], self._readings[name])
            for name, plan in planned.items()
            if plan.strategy in ("incremental", "affected") and plan.terms and name in self._readings
        ]

        def size(name: str) -> Sized:
            found = self._input_size(name, leaves)
            seen = next((r.plan for r in readers if name in r.plan.changed), None)
            base = None if seen is None else self._baselines[self._vdag.nodes[seen.name].record.id]
            changed = 0 if base is None else self._changed_rows(name, base, leaves, planned)
            return Sized(found.rows or 0, found.bytes, changed)

        return share(readers, cache(size), self._prices) if len(readers) > 1 else Sharing()

    def _planned(
        self, order: Collection[str], leaves: Mapping[str, _Leaf], full: Collection[str], held: Mapping[str, Reason]
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
                planned[name] = self._node(node, leaves, planned, name in full, held.get(name))
        return planned

    def _held_back(self, planned: Mapping[str, NodePlan]) -> dict[str, Reason]:
        """The views that would move, though one of their group cannot; all that are held back, if there are such."""
        stuck = {name: str(plan.reason) for name, plan in planned.items() if plan.blocked}
        moving = held_back(self._groups, stuck, planned)
        earlier = {name: plan.reason for name, plan in planned.items() if plan.reason.code == "GROUP_HELD"}
        return {**earlier, **{name: Reason("GROUP_HELD", why) for name, why in moving.items()}} if moving else {}

    def _weigh(self, planned: Mapping[str, NodePlan]) -> Weighed:
        """Which nodes to recompute, by what that costs them and those above."""
        moving = [plan for plan in planned.values() if plan.strategy != "none" and not plan.blocked]
        found = []
        for plan in moving:
            node = self._vdag.nodes[plan.name]
            reads = [name for name in plan.changed if name in planned and name != plan.name]
            below = sum(self._changed_rows_below(planned[name]) for name in reads)
            above = [name for name in self._vdag.dependants(plan.name) if name in planned]
            free = self._goes_by_cost(node)
            reading = self._readings.get(plan.name)
            found.append(candidate(node, plan, reads, reading, self._table_rows(node), below, above, free=free))
        return weigh(found, self._prices)

    def is_small(self, names: Collection[str]) -> bool:
        """Whether all that *names* are computed from is little enough to run interpreted."""
        order = self._vdag.with_ancestors(names)
        leaves = sum(self._leaf(leaf).bytes for leaf in self._leaves_of(order))
        return leaves + self._copied_bytes(order) < SMALL_BYTES

    def _leaves_of(self, order: Collection[str]) -> list[str]:
        """The leaves that nodes of *order* read; what base views read is theirs to follow."""
        nodes = [self._vdag.nodes[name] for name in order if not self._vdag.nodes[name].base]
        return list(dict.fromkeys(i for node in nodes for i in node.inputs if i not in self._vdag.nodes))

    def _leaf(self, name: str) -> _Leaf:
        source_name, table = name.split(".", 1)
        source = self._sources.get(source_name)
        if source is None:
            return _Leaf(
                None, (), Reason("SOURCE_TABLE_GONE", f"source {source_name} is not declared any more"), 0, 0, {}
            )
        try:
            position = self._shown_by_bases(name) or source.position(table)
            if source_name not in self._tables:
                self._tables[source_name] = source.tables()
            columns = self._tables[source_name][table].columns
            size = source.size(table, position)
        except SourceError as error:
            return _Leaf(None, (), Reason("SOURCE_TABLE_GONE", error.message), 0, 0, {})
        return _Leaf(position, columns, None, size.rows, size.bytes, {})

    def _shown_by_bases(self, leaf: str) -> Position:
        """Where base views have a table that others read too: all of them must show the same of it."""
        return next((state.positions[leaf] for state in self._bases.values() if leaf in state.positions), None)

    def _copied_bytes(self, order: Collection[str]) -> int:
        nodes = [self._vdag.nodes[name] for name in order]
        return sum(self._table_size(node).bytes for node in nodes if node.copied or node.base)

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
                estimated_rows=self._table_rows(node) if state.peek.rows is None else state.peek.rows,
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

    def _peek(self, name: str, leaf: _Leaf, after: Position) -> Peek:
        """What happened to a leaf since *after*; asked once for all nodes that have seen the same of it."""
        found = leaf.peeks.get(key_of(after))
        if found is None:
            source_name, table = name.split(".", 1)
            found = self._sources[source_name].peek(table, after, leaf.position)
            leaf.peeks[key_of(after)] = found
        return found

    def _node(
        self,
        node: Node,
        leaves: Mapping[str, _Leaf],
        planned: Mapping[str, NodePlan],
        requested: bool,
        held: Reason | None,
    ) -> NodePlan:
        base = self._baselines.get(node.record.id)
        positions = self._positions(node, leaves, planned)
        blocked = held or self._blocked(node, leaves, planned)
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
        reason = self._full_reason(node, base, leaves, planned, requested)
        if reason is not None:
            if node.policy == "INCREMENTAL STRICT" and reason.code not in _REBASELINE:
                raise RefreshError(
                    "INCREMENTAL_STRICT",
                    f"view {node.name} would be recomputed ({reason}), and its policy forbids that; "
                    "refresh it with FULL, or change its policy to INCREMENTAL.",
                )
            return replace(draft, strategy="full", reason=reason)
        assert base is not None
        changed = self._changed(node, base, leaves, planned)
        if not changed:
            return replace(draft, positions=dict(base.positions))
        return self._incremental(node, replace(draft, changed=tuple(changed)), base, leaves, planned)

    def _positions(
        self, node: Node, leaves: Mapping[str, _Leaf], planned: Mapping[str, NodePlan]
    ) -> dict[str, Position]:
        found: dict[str, Position] = {}
        for name in node.inputs:
            if name in leaves:
                found[name] = leaves[name].position
            else:
                found.update(planned[name].positions)
        return found

    def _blocked(self, node: Node, leaves: Mapping[str, _Leaf], planned: Mapping[str, NodePlan]) -> Reason | None:
        for name in node.inputs:
            if name in planned and planned[name].blocked:
                if self._vdag.nodes[name].copied:
                    return planned[name].reason
                return Reason("INPUT_FAILED", f"{name} cannot be refreshed: {planned[name].reason}")
            if name in planned and self._vdag.nodes[name].copied:
                problem = schema_problem(node, name, self._vdag.nodes[name].visible)
                if problem is not None:
                    return problem
            if name in leaves:
                problem = leaves[name].problem or schema_problem(node, name, leaves[name].columns)
                if problem is not None:
                    return problem
        return None

    def _full_reason(
        self,
        node: Node,
        base: VersionRecord | None,
        leaves: Mapping[str, _Leaf],
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
        changed = self._changed(node, base, leaves, planned)
        for name in changed:
            if name in leaves:
                gap = self._peek(name, leaves[name], base.inputs[name]).gap
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

    def _changed(
        self, node: Node, base: VersionRecord, leaves: Mapping[str, _Leaf], planned: Mapping[str, NodePlan]
    ) -> list[str]:
        """The inputs that differ from what the node has seen."""
        changed = []
        for name in node.inputs:
            seen = base.inputs.get(name)
            if name in leaves:
                moved = seen != leaves[name].position
                if moved and (seen is None or self._peek(name, leaves[name], seen).changes_data):
                    changed.append(name)
            elif planned[name].strategy != "none" or planned[name].baseline != self._seen(name, seen):
                changed.append(name)
        return changed

    def _incremental(
        self,
        node: Node,
        draft: NodePlan,
        base: VersionRecord,
        leaves: Mapping[str, _Leaf],
        planned: Mapping[str, NodePlan],
    ) -> NodePlan:
        assert node.block is not None
        growing = [
            name
            for name in draft.changed
            if AppendOnly(name) in self._constraints
            or (
                self._peek(name, leaves[name], base.inputs[name]).insert_only
                if name in leaves
                else self._only_inserts(planned[name], base)
            )
        ]
        insert_only = len(growing) == len(draft.changed)
        assumed, lines = planned_by(node, self._constraints, base.inputs, growing)
        self._assumed[node.name] = assumed
        draft = replace(draft, constraints=lines)
        delta = delta_of(node.block, draft.changed, insert_only=insert_only, assumed=assumed)
        if delta is None:
            nothing = Reason("CHANGES", "constraints say that these changes change nothing")
            return replace(draft, strategy="incremental", reason=nothing, insert_only=True, estimated_rows=0)
        table_rows = self._table_rows(node)
        rows = sum(self._changed_rows(name, base, leaves, planned) for name in draft.changed)
        looked_up = [self._input_size(name, leaves) for name in looked_up_by(delta)]
        work = Work(
            rows,
            len(delta.terms),
            sum(self._input_size(name, leaves).rows or 0 for name in node.inputs),
            table_rows,
            sum(size.rows or 0 for size in looked_up),
            delta.touched_keys is not None,
            len(node.block.partials),
            expected_install(node.block, table_rows, insert_only=insert_only),
        )
        chosen = Choice("explicit", "", self._prices.costs.incremental(work))
        free_method = node.block.grouped and delta.form == "explicit" and delta.touched_keys is None
        self._readings[node.name] = Reading(work, sum(size.bytes for size in looked_up), free_method)
        if free_method:
            chosen = settled_method(node, work, self._prices, self._vdag.dependants(node.name))
            delta = delta_of(node.block, draft.changed, insert_only=insert_only, method=chosen.method, assumed=assumed)
            assert delta is not None
        cost, cost_full = chosen.cost, self._prices.costs.full(work)
        found = replace(
            draft,
            strategy=delta.strategy,
            reason=_delta_reason(delta, chosen),
            method=chosen.method,
            method_reason=chosen.why,
            insert_only=insert_only,
            operators=delta.operators,
            terms=len(delta.terms),
            estimated_rows=rows,
            cost=cost,
            cost_full=cost_full,
            order=self._order(node, base, draft.changed, leaves, planned),
        )
        if node.name in self._weighed.recomputed:
            detail = f"recomputing is estimated at {cost_full:.2f}, applying {rows} changed rows at {cost:.2f}"
            return replace(found, strategy="full", reason=Reason("COST", detail), method_reason="")
        if node.name in self._weighed.alone:
            detail = f"recomputing is estimated at {cost_full:.2f}, changes at {cost:.2f}, but views above read them"
            return replace(found, reason=Reason(found.reason.code, detail))
        return found

    def _order(
        self,
        node: Node,
        base: VersionRecord,
        changed: Sequence[str],
        leaves: Mapping[str, _Leaf],
        planned: Mapping[str, NodePlan],
    ) -> tuple[str, ...]:
        """In which order the inputs of its joins are taken to change."""
        assert node.block is not None

        def growth(name: str) -> int:
            rows = self._changed_rows(name, base, leaves, planned)
            if name not in leaves:
                return rows if self._only_inserts(planned[name], base) else 0
            if self._peek(name, leaves[name], base.inputs[name]).insert_only:
                return rows
            source, table = name.split(".", 1)
            before, after = self._sources[source].size(table, base.inputs[name]).rows, leaves[name].rows
            return 0 if before is None or after is None else after - before

        return order_of_changes(node.block.body, changed, growth)

    def _goes_by_cost(self, node: Node) -> bool:
        """Whether the cheapest way is taken; a hidden block is a part of views, and does as the strictest of them."""
        if node.hidden:
            return all(self._goes_by_cost(self._vdag.nodes[name]) for name in self._vdag.dependants(node.name))
        return node.policy in ("AUTO", "FULL")

    def _only_inserts(self, below: NodePlan, base: VersionRecord) -> bool:
        """Whether the delta of a node below, from what the version *base* of a node above has seen, only inserts."""
        from_there = below.baseline == self._seen(below.name, base.inputs.get(below.name))
        return below.insert_only and below.strategy == "incremental" and from_there and not self._grouped(below.name)

    def _seen(self, name: str, pin: Json) -> int | None:
        """The version of a node below that a pin names."""
        return self._vdag.nodes[name].pinned_version(pin)

    def _grouped(self, name: str) -> bool:
        node = self._vdag.nodes[name]
        if node.copied:
            return False
        block = node.block
        return block is None or block.ordered is not None or (block.grouped and not block.counted)

    def _changed_rows(
        self, name: str, base: VersionRecord, leaves: Mapping[str, _Leaf], planned: Mapping[str, NodePlan]
    ) -> int:
        if name in leaves:
            rows = self._peek(name, leaves[name], base.inputs[name]).rows
            size = leaves[name].rows
            found = UNKNOWN_ROWS if rows is None else rows
            return found if size is None else min(found, 2 * max(size, 1))
        return self._changed_rows_below(planned[name])

    def _changed_rows_below(self, plan: NodePlan) -> int:
        """The rows of the delta of a node, as far as can be told; all of a table may change if it is recomputed."""
        rows = self._table_rows(self._vdag.nodes[plan.name])
        if plan.strategy == "full" and (plan.reason.code != "COST" or plan.estimated_rows is None):
            return rows
        return min(plan.estimated_rows or 0, 2 * max(rows, 1))

    def _input_size(self, name: str, leaves: Mapping[str, _Leaf]) -> TableSize:
        if name in leaves:
            return TableSize(leaves[name].rows, leaves[name].bytes, 0)
        return self._table_size(self._vdag.nodes[name])

    def _table_rows(self, node: Node) -> int:
        return self._table_size(node).rows or 0

    def _table_size(self, node: Node) -> TableSize:
        if node.name not in self._sizes:
            try:
                self._sizes[node.name] = DeltaLog(node.path, self._engine.storage_options).size()
            except NoSuchTable:
                self._sizes[node.name] = TableSize(0, 0, 0)
        return self._sizes[node.name]

    def _steps(self, planned: Mapping[str, NodePlan], leaves: Mapping[str, _Leaf], sharing: Sharing) -> list[Step]:
        """Leaves first, then each node after its inputs, then the new state."""
        steps = self._capture_steps(planned)
        intervals: dict[tuple[str, str], Step] = {}
        for plan in planned.values():
            if plan.strategy in ("incremental", "affected") and not self._vdag.nodes[plan.name].base:
                for name in plan.changed:
                    if name in leaves:
                        after = plan.pinned[name]
                        intervals.setdefault((name, key_of(after)), self._ingest_step(name, leaves[name], after))
        steps.extend(intervals.values())
        compared = self._compared(planned)
        to_share = dict(sharing.works)
        for plan in planned.values():
            steps.extend(self._share_step(name, to_share.pop(name)) for name in plan.shares if name in to_share)
            node = self._vdag.nodes[plan.name]
            copied = node.copied or node.base
            if plan.strategy in ("incremental", "affected") or (copied and plan.changed):
                steps.extend(self._change_steps(node, plan))
            elif plan.strategy == "full" and not copied:
                sizes = [self._input_size(name, leaves) for name in node.inputs]
                steps.append(self._recompute_step(node, sizes))
            rows, size = self._changed_rows_below(plan), self._table_size(node)
            charged = charges.compared(size.rows or 0, rows)
            for version in compared.get(plan.name, ()):
                steps.append(self._step("compare", plan.name, charged, 2 * size.bytes, after=version))
        held = unpublished(self._catalog, self._vdag, self._groups)
        shown_late = any(plan.name in held and not plan.blocked for plan in planned.values())
        return [*steps, Step("", "publish")] if steps or shown_late else []

    def _step(
        self,
        kind: StepKind,
        subject: str,
        charged: Charges | None,
        bytes: int,
        after: Position = None,
        upto: Position = None,
    ) -> Step:
        return priced(Step("", kind, subject, True, after, upto), charged, bytes, self._prices, SMALL_BYTES)

    def _ingest_step(self, name: str, leaf: _Leaf, after: Position) -> Step:
        peek = self._peek(name, leaf, after)
        rows = UNKNOWN_ROWS if peek.rows is None else peek.rows
        # What was rewritten is read as it was and as it is, unless there is a change feed.
        share = 0.0 if peek.insert_only else min(peek.bytes / max(leaf.bytes, 1), 1.0)
        charged = charges.ingested(rows, int(share * (leaf.rows or 0)))
        return self._step("ingest", name, charged, 2 * peek.bytes, after=after, upto=leaf.position)

    def _share_step(self, name: str, work: Reading) -> Step:
        return self._step("share", name, sharing_charges(work.work), work.bytes)

    def _change_steps(self, node: Node, plan: NodePlan) -> list[Step]:
        """The delta of a node, and its install."""
        size = self._table_size(node)
        reading = self._readings.get(node.name)
        computed: Charges | None
        if reading is not None:
            computed, read = computing(reading, plan.method), reading.bytes
            read += size.bytes if reading.work.partials and plan.method != "summary" else 0
        else:
            rows = plan.estimated_rows or 0
            install: Install = (
                "append" if plan.insert_only else "overwrite" if (size.rows or 0) <= TINY_ROWS else "merge"
            )
            reading = Reading(Work(rows, 1, 0, size.rows or 0, install=install))
            # A delta that a source's answers or a dump give is not computed here.
            known = node.copied and isinstance(self._sources.get(node.name.split(".", 1)[0]), CopiedSource)
            computed, read = charges.ingested(rows) if known else None, size.bytes
        return [
            self._step("compute", node.name, computed, read),
            self._step("install", node.name, installing(reading, plan.method), size.bytes),
        ]

    def _recompute_step(self, node: Node, inputs: Sequence[TableSize]) -> Step:
        rows, read = sum(size.rows or 0 for size in inputs), sum(size.bytes for size in inputs)
        partials = len(node.block.partials) if node.block is not None else 0
        charged = charges.recomputed(Work(0, 0, rows, self._table_rows(node), partials=partials))
        return self._step("recompute", node.name, charged, read)

    def _capture_steps(self, planned: Mapping[str, NodePlan]) -> list[Step]:
        if not self._captures:
            return []
        upto = {
            plan.name.split(".", 1)[0]: plan.positions[plan.name]
            for plan in planned.values()
            if plan.changed and isinstance(self._sources.get(plan.name.split(".", 1)[0]), CopiedSource)
        }
        return [Step("", "capture", source, upto=position) for source, position in upto.items()]

    def _compared(self, planned: Mapping[str, NodePlan]) -> dict[str, list[Json]]:
        """Nodes whose delta must be had by comparing versions, with the versions to compare from.

        That is so for a recomputed node, and for one that was refreshed earlier without a node above it.
        """
        found: dict[str, list[Json]] = {}
        for plan in planned.values():
            node = self._vdag.nodes[plan.name]
            if plan.strategy not in ("incremental", "affected") or node.copied or node.base:
                continue
            for name in plan.changed:
                below = planned.get(name)
                if below is None:
                    continue
                seen = self._seen(name, plan.pinned[name])
                computed = below.strategy in ("incremental", "affected") and below.baseline == seen
                if not computed and plan.pinned[name] not in found.setdefault(name, []):
                    found[name].append(plan.pinned[name])
        return found


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


def _delta_reason(delta: BlockDelta, chosen: Choice) -> Reason:
    if delta.strategy != "affected":
        return Reason("CHANGES")
    code = _AFFECTED.get(delta.operators[-1], "KEYS_AFFECTED")
    return Reason(code, chosen.why if chosen.method == "affected" else "")


def _sharing_in(plan: NodePlan, sharing: Sharing) -> NodePlan:
    reader = sharing.readers.get(plan.name)
    if reader is None:
        return plan
    return replace(plan, shares=tuple(join.name for join in reader.shared), terms=reader.reading.work.terms)


def _numbered(steps: list[Step], plan_id: str) -> tuple[Step, ...]:
    return tuple(replace(step, id=f"{plan_id[:12]}-{place + 1:03d}") for place, step in enumerate(steps))
