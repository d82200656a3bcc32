"""How a delta is computed and installed, before it is: of aggregates, the cheapest of the ways that are allowed.

The four methods are those of WHIPS, 7.3.2; recomputing in full is weighed against the best of these by the planner.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.algebra.block import Block, Method
from strandline.algebra.differentiate import monotone
from strandline.cost.calibration import Prices
from strandline.cost.charges import Extent, Install, Work
from strandline.cost.model import CostModel
from strandline.store import marking
from strandline.store.install import is_tiny
from strandline.store.node import Node
from strandline.store.replacing import pays

MARGIN = 0.8
"""Computing groups anew must be that much cheaper: how many rows they have is a guess."""


@dataclass(frozen=True)
class Choice:
    """A method, why it was chosen, and what it is estimated to cost."""

    method: Method
    why: str
    cost: float


def expected_install(
    block: Block,
    table: Extent,
    *,
    insert_only: bool,
    changed: int = 0,
    replaceable: Extent | None = None,
    can_be_marked: bool = False,
) -> Install:
    """How a delta of so many *changed* rows will be installed, as far as can be told before it is computed.

    *replaceable* are the files near it, if their rows can be replaced.
    """
    if insert_only and not block.grouped and monotone(block.body):
        return "append"
    if is_tiny(table.rows, table.bytes):
        return "overwrite"
    marked = can_be_marked and changed <= marking.MOST_ROWS
    if replaceable is not None and pays(changed, replaceable.rows, replaceable.bytes, can_be_marked=marked):
        return "replace"
    if marked:
        return "mark"
    return "merge"


def aggregate_method(node: Node, work: Work, cost: CostModel, above: Sequence[str]) -> Choice:
    """The method for one refresh of *node*, which the nodes *above* read.

    A summary delta does not say which groups appear or vanish, so it is no delta for views above; and it is merged, for
    which a table that is written anew otherwise is too small.
    """
    asked = node.setting("aggregates") or "auto"
    explicit, affected = cost.incremental(work), cost.incremental(replace(work, recomputes_groups=True))
    absorbed = cost.absorbed(work)
    costs = f"estimated {explicit:.2f} explicit, {absorbed:.2f} merged, {affected:.2f} anew"
    if asked == "explicit":
        return Choice("explicit", "as declared", explicit)
    if asked == "affected":
        return Choice("affected", "as declared", affected)
    if above:
        needed = f"{', '.join(above)} reads its changes"
        if asked == "summary" or explicit * MARGIN <= affected:
            return Choice("explicit", f"{needed}; {costs}", explicit)
        return Choice("affected", f"computing the groups anew is cheaper; {costs}", affected)
    if asked == "summary":
        return Choice("summary", "as declared", absorbed)
    if affected < MARGIN * min(explicit, absorbed):
        return Choice("affected", f"computing the groups anew is cheaper; {costs}", affected)
    if absorbed < explicit and work.install == "merge":
        return Choice("summary", f"no view reads its changes; {costs}", absorbed)
    return Choice("explicit", f"the cheapest; {costs}", explicit)


def settled_method(node: Node, work: Work, prices: Prices, above: Sequence[str]) -> Choice:
    """The method by the costs of the warehouse, which differ from the fixed ones only where they are sure."""
    found = aggregate_method(node, work, prices.costs, above)
    method = prices.choose(
        lambda cost: found.method if cost is prices.costs else aggregate_method(node, work, cost, above).method,
        lambda cost, method: _cost(work, method, cost),
    )
    if method == found.method:
        return found
    return Choice(method, f"{found.method} is estimated to be a little cheaper", _cost(work, method, prices.costs))


def _cost(work: Work, method: Method, cost: CostModel) -> float:
    match method:
        case "explicit":
            return cost.incremental(work)
        case "summary":
            return cost.absorbed(work)
        case "affected":
            return cost.incremental(replace(work, recomputes_groups=True))
