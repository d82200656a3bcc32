"""Group by, and distinct, which is grouping by all columns with nothing but a count.

Two strategies give the delta of the stored partial aggregates as explicit deletions and insertions (the WHIPS
method), so that views above can use it:

- *linear*: a summary delta is merged with the old rows of its groups. Counts and sums can be subtracted;
  minima and maxima cannot, so with them this holds only for a delta without deletions.
- *affected groups*: the groups that the delta touches are computed anew from the input after the change.

Where nobody wants explicit changes, the summary delta alone is enough, and the table absorbs it.
"""

from __future__ import annotations

from collections.abc import Collection

from strandline.algebra.plan import (
    Backing,
    Filter,
    GroupBy,
    MergeSummary,
    Negate,
    Net,
    Output,
    Partial,
    PartialKind,
    Plan,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
)
from strandline.algebra.scalar import Call, Col, Lit
from strandline.algebra.term import bind

LINEAR = "linear"
AFFECTED = "affected groups"


def absorbs(partials: tuple[Partial, ...], *, insert_only: bool) -> bool:
    """Whether a summary delta can be merged into stored rows of *partials*."""
    return all(p.invertible or (insert_only and p.kind in ("min", "max")) for p in partials)


def summary(group: GroupBy, input_delta: Plan) -> Plan:
    """The summary delta, without the groups for which everything comes out as it was.

    A minimum or maximum stands in a summary delta only if nothing is deleted; then each group has a count above zero.
    """
    changes = tuple(Call("<>", (Col(p.name), Lit(0))) for p in group.partials if p.invertible)
    return Filter(
        GroupBy(input_delta, group.keys, group.partials, keep_empty=True),
        changes[0] if len(changes) == 1 else Call("or", changes),
    )


def linear(group: GroupBy, input_delta: Plan, old: Scan) -> Plan:
    """The summary delta, merged with the stored rows before the change, which *old* scans."""
    return MergeSummary(old, summary(group, input_delta), tuple(key.name for key in group.keys), group.partials)


def absorbed(group: GroupBy, old: Plan, change: Plan) -> GroupBy:
    """All stored rows after a summary delta, groups with no rows or fewer among them."""
    keys = tuple(Output(key.column, Col(key.name)) for key in group.keys)
    return GroupBy(UnionAll((old, change)), keys, tuple(_added_up(partial) for partial in group.partials))


def _added_up(partial: Partial) -> Partial:
    kind: PartialKind = "sum" if partial.invertible else partial.kind
    return Partial(partial.column, kind, Col(partial.name))


def touched_keys(group: GroupBy, input_delta: Plan) -> Plan:
    """The keys of the groups that a delta of the input touches."""
    return Project(input_delta, group.keys)


def affected(group: GroupBy, keys: Plan, old: Scan, changed: Collection[str]) -> Plan:
    """``Net(-old + γ(input after ⋉ keys of the delta))`` over the groups that *keys* names."""
    after = bind(group.input, "post", changed)
    if group.keys:
        after = SemiJoin(after, tuple(key.value for key in group.keys), keys)
    new = GroupBy(after, group.keys, group.partials)
    touched: Plan = old
    if group.keys:
        touched = SemiJoin(old, tuple(Col(key.name) for key in group.keys), keys)
    return Net(UnionAll((Negate(touched), new)))


def backing(node: str, group: GroupBy) -> Scan:
    """The stored rows of *node* before the change."""
    return Scan(Backing(node, "pre"), "", group.columns, tuple(key.name for key in group.keys))
