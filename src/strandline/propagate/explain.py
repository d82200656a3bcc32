"""The SQL of a plan for people: pinned versions as they will be read, deltas and future versions by name."""

from __future__ import annotations

from strandline.algebra.block import Block, delta_of
from strandline.algebra.plan import At, Backing, Change, Scan
from strandline.algebra.schema import names
from strandline.engine import tables
from strandline.propagate.constraints import declared, planned_by
from strandline.propagate.context import Context
from strandline.propagate.plan import NodePlan, RefreshPlan, SharedDelta
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN, render


def plan_sql(context: Context, plan: RefreshPlan) -> dict[str, str]:
    """For each view or block that is refreshed: the SELECT of its delta, or of its contents; and of shared deltas."""
    shared = {each.name: _shared_sql(context, plan, each) for each in plan.shared}
    return shared | {
        node.name: _sql(context, plan, node)
        for node in plan.nodes
        if node.strategy != "none" and not (context.vdag.nodes[node.name].copied or context.vdag.nodes[node.name].base)
    }


def _shared_sql(context: Context, plan: RefreshPlan, shared: SharedDelta) -> str:
    reader = plan.node(shared.readers[0])
    delta = delta_of(Block(shared.name, shared.join.plan), shared.changed, insert_only=False, order=shared.order)
    assert delta is not None
    return render(delta.plan, lambda scan: _bound(context, plan, reader, scan))


def _sql(context: Context, plan: RefreshPlan, node_plan: NodePlan) -> str:
    node = context.vdag.nodes[node_plan.name]
    if node.block is None:
        return node.record.sql
    if node_plan.strategy == "full":
        return render(node.block.contents, lambda scan: _bound(context, plan, node_plan, scan))
    growing = node_plan.changed if node_plan.insert_only else ()
    assumed, _ = planned_by(node, declared(context.catalog), node_plan.pinned, growing)
    delta = delta_of(
        node.block,
        node_plan.changed,
        insert_only=node_plan.insert_only,
        method=node_plan.method,
        assumed=assumed,
        order=node_plan.order,
        shared=[shared.join for shared in plan.shared_by(node_plan)],
    )
    if delta is None:
        return "-- no change that can matter"
    return render(delta.plan, lambda scan: _bound(context, plan, node_plan, scan))


def _bound(context: Context, plan: RefreshPlan, node_plan: NodePlan, scan: Scan) -> str:
    """What a scan reads, as far as it is there already, or its name."""
    shown = quoted_list(names(scan.fields))
    match scan.operand:
        case Change(relation):
            return f"SELECT {shown}, {SIGN} FROM {quoted('delta of ' + relation)}"
        case At(relation, state) if relation in context.vdag.nodes:
            named = f"{relation} {_moment(plan, relation, before=state == 'pre')}"
            return f"SELECT {shown} FROM {quoted(named)}"
        case At(relation, state):
            pin = node_plan.pinned if state == "pre" else node_plan.positions
            return context.binding.at(relation, pin[relation], scan.fields)
        case Backing():
            assert node_plan.baseline is not None
            return tables.select(context.vdag.nodes[node_plan.name].path, node_plan.baseline, scan.fields)
        case _:
            return f"SELECT {shown} FROM {quoted(str(scan.operand))}"


def _moment(plan: RefreshPlan, relation: str, *, before: bool) -> str:
    moves = any(n.name == relation and n.strategy != "none" for n in plan.nodes)
    return "as it is" if not moves else "before this refresh" if before else "after this refresh"
