"""What applying changes takes: for each node of a plan, by which method, reading how much, and at what cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from strandline.algebra.block import BlockDelta, Method
from strandline.algebra.constraints import AppendOnly, Assumed, Constraint
from strandline.algebra.few import MOST_ROWS
from strandline.algebra.near import Limits
from strandline.catalog import VersionRecord
from strandline.cost.calibration import Prices
from strandline.cost.charges import Extent, Work
from strandline.propagate.constraints import planned_by
from strandline.propagate.inner_deltas import Prepared, prepared, read_inside
from strandline.propagate.inputs import Inputs
from strandline.propagate.methods import Choice, expected_install, settled_method
from strandline.propagate.ordering import order_of_changes
from strandline.propagate.plan import NodePlan
from strandline.propagate.pricing import Reading, shuffled
from strandline.propagate.reach import Reach
from strandline.propagate.step_maker import delta_rows_of
from strandline.propagate.vdag import Vdag
from strandline.reasons import Reason
from strandline.store.node import Node

_AFFECTED = {
    "affected groups": "GROUPS_AFFECTED",
    "affected partitions": "PARTITIONS_AFFECTED",
    "one partition": "ONE_PARTITION",
    "top-k": "TOP_K",
}
"""Why a node is computed anew in part, by the strategy of the operator on top."""


@dataclass(frozen=True)
class Applied:
    """What applying its changes takes for one node.

    *changed* names the inputs whose changes matter to it, *limits* the ranges in which its own delta lies.
    """

    changed: tuple[str, ...]
    assumed: Assumed
    reading: Reading
    reach: Reach
    limits: Limits


class Applying:
    """Of the nodes of one plan, from the bottom up; what was found for each is kept."""

    def __init__(self, vdag: Vdag, inputs: Inputs, constraints: Sequence[Constraint], prices: Prices) -> None:
        self.found: dict[str, Applied] = {}
        self._untouched: set[str] = set()
        self._vdag = vdag
        self._inputs = inputs
        self._constraints = constraints
        self._prices = prices

    def plan(self, node: Node, draft: NodePlan, base: VersionRecord, planned: Mapping[str, NodePlan]) -> NodePlan:
        """How a node is brought up to date from the changes that *draft* names, given what is *planned* below it."""
        assert node.block is not None
        growing = [name for name in draft.changed if self._only_grew(name, base, planned)]
        insert_only = len(growing) == len(draft.changed)
        matters = tuple(name for name in draft.changed if self._matters(node, name, base, planned))
        if not matters:
            self._untouched.add(node.name)
            return _nothing(draft, "none of them touches a column that it reads")
        assumed, lines = planned_by(node, self._constraints, base.inputs, growing)
        draft = replace(draft, constraints=lines)
        below = {name: self.found[name].limits for name in node.inputs if self._computed_since(name, base, planned)}
        reach = Reach(self._vdag, self._inputs, base.inputs, below)
        body = prepared(node.block, matters, reach, assumed)
        derived = partial(_delta, body, insert_only)
        delta = derived("explicit")
        if delta is None:
            return _nothing(draft, "constraints say that these changes change nothing")
        rows = sum(self.changed_rows(name, base, planned) for name in matters)
        inside = read_inside(body, reach)
        reading = self._reading(node, delta, derived, rows, reach, inside, insert_only=insert_only)
        self.found[node.name] = Applied(matters, assumed, reading, reach, reach.limits(delta.plan))
        chosen = Choice("explicit", "", self._prices.costs.incremental(reading.work))
        if reading.free_method:
            chosen = settled_method(node, reading.work, self._prices, self._vdag.dependants(node.name))
            delta = derived(chosen.method)
            assert delta is not None
        return replace(
            draft,
            strategy=delta.strategy,
            reason=_delta_reason(delta, chosen),
            method=chosen.method,
            method_reason=chosen.why,
            insert_only=insert_only,
            operators=delta.operators,
            terms=len(delta.terms),
            estimated_rows=rows,
            cost=chosen.cost,
            cost_full=self._prices.costs.full(reading.work),
            order=self._order(node, base, draft.changed, planned),
        )

    def _reading(
        self,
        node: Node,
        delta: BlockDelta,
        derived: Callable[[Method], BlockDelta | None],
        rows: int,
        reach: Reach,
        inside: Extent,
        *,
        insert_only: bool,
    ) -> Reading:
        """What computing and installing *delta* takes, or one that is *derived* by another method.

        *inside* is what the deltas that it is computed from read.
        """
        assert node.block is not None
        free_method = node.block.grouped and delta.form == "explicit" and delta.touched_keys is None
        read, table = reach.read(delta.plan) + inside, self._table(node)
        anew = derived("affected") if free_method else None
        inputs = [self._inputs.extent(name, len(node.uses(name))) for name in node.inputs]
        holding = reach.holding(node.name, delta.plan)
        replaceable = holding if self._inputs.replaceable(node) else None
        install = expected_install(
            node.block,
            table,
            insert_only=insert_only,
            changed=rows,
            replaceable=replaceable,
            can_be_marked=self._inputs.can_be_marked(node),
        )
        work = Work(
            rows,
            len(delta.terms),
            sum(inputs, Extent()),
            table,
            read,
            reach.matched(node.name, delta.plan),
            read if anew is None else reach.read(anew.plan) + inside,
            shuffled(inputs, table, grouped=bool(node.block.partials)),
            read.bytes if rows > MOST_ROWS else 0,
            delta.touched_keys is not None,
            len(node.block.partials),
            install,
            holding,
        )
        return Reading(work, free_method)

    def _table(self, node: Node) -> Extent:
        return self._inputs.extent(node.name, len(node.stored))

    def changed_rows(self, name: str, base: VersionRecord, planned: Mapping[str, NodePlan]) -> int:
        """The rows of an input that changed since the version *base* of a node, as far as can be told."""
        if name in self._inputs.leaves:
            return self._inputs.changed_rows(name, base.inputs[name])
        return self.changed_rows_below(planned[name])

    def changed_rows_below(self, plan: NodePlan) -> int:
        """The rows of the delta of a node, as far as can be told."""
        return delta_rows_of(plan, self._inputs.rows_of(plan.name))

    def _matters(self, node: Node, name: str, base: VersionRecord, planned: Mapping[str, NodePlan]) -> bool:
        """Whether changes of an input touch what a node reads of it, as far as can be told."""
        if name in self._inputs.leaves:
            return self._inputs.matters(name, base.inputs[name], node.uses(name))
        return name not in self._untouched or not self._seen_by(planned[name], base)

    def _only_grew(self, name: str, base: VersionRecord, planned: Mapping[str, NodePlan]) -> bool:
        """Whether rows of an input only came since the version *base* of a node."""
        if AppendOnly(name) in self._constraints:
            return True
        if name in self._inputs.leaves:
            return self._inputs.insert_only(name, base.inputs[name])
        return self._only_inserts(planned[name], base)

    def _only_inserts(self, below: NodePlan, base: VersionRecord) -> bool:
        """Whether the delta of a node below, from what the version *base* of a node above has seen, only inserts."""
        return (
            below.insert_only
            and below.strategy == "incremental"
            and self._seen_by(below, base)
            and not self._grouped(below.name)
        )

    def _computed_since(self, name: str, base: VersionRecord, planned: Mapping[str, NodePlan]) -> bool:
        """Whether the delta of a node below, from what the version *base* of a node above has seen, is computed."""
        below = planned.get(name)
        computed = below is not None and below.strategy in ("incremental", "affected") and name in self.found
        return computed and below is not None and self._seen_by(below, base)

    def _seen_by(self, below: NodePlan, base: VersionRecord) -> bool:
        """Whether the version *base* of a node above has seen the version from which a node below goes on."""
        seen = self._vdag.nodes[below.name].pinned_version(base.inputs.get(below.name))
        return below.baseline == seen

    def _grouped(self, name: str) -> bool:
        node = self._vdag.nodes[name]
        if node.copied:
            return False
        block = node.block
        return block is None or block.ordered is not None or (block.grouped and not block.counted)

    def _order(
        self, node: Node, base: VersionRecord, changed: Sequence[str], planned: Mapping[str, NodePlan]
    ) -> tuple[str, ...]:
        """In which order the inputs of its joins are taken to change."""
        assert node.block is not None

        def growth(name: str) -> int:
            if name in self._inputs.leaves:
                return self._inputs.growth(name, base.inputs[name])
            return self.changed_rows_below(planned[name]) if self._only_inserts(planned[name], base) else 0

        return order_of_changes(node.block.body, changed, growth)


def _delta(body: Prepared, insert_only: bool, method: Method) -> BlockDelta | None:
    return body.delta(insert_only=insert_only, method=method)


def _nothing(draft: NodePlan, why: str) -> NodePlan:
    return replace(draft, strategy="incremental", reason=Reason("CHANGES", why), insert_only=True, estimated_rows=0)


def _delta_reason(delta: BlockDelta, chosen: Choice) -> Reason:
    if delta.strategy != "affected":
        return Reason("CHANGES")
    code = _AFFECTED.get(delta.operators[-1], "KEYS_AFFECTED")
    return Reason(code, chosen.why if chosen.method == "affected" else "")
