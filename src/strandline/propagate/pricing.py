"""What the steps of a plan should take, and how each is run: by what it reads itself.

A step over little data reads and writes its tables without ceremony, and runs interpreted where compiling would cost
more than it saves; one over much is compiled, and what it shuffles is cut into parts of a size that fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from strandline.algebra.block import Method
from strandline.algebra.schema import Schema
from strandline.cost import charges
from strandline.cost.calibration import Prices
from strandline.cost.charges import Charges, Extent, Work
from strandline.cost.graph import Candidate, LeafChanges
from strandline.cost.model import CostModel
from strandline.propagate.methods import aggregate_method, expected_install
from strandline.propagate.plan import NodePlan, Step
from strandline.store.node import Node

SHUFFLED_AT_ONCE = 32 << 20
"""Bytes of input for each part of a shuffle."""

MOST_PARTITIONS = 200

SENT_EVERYWHERE = 10 << 20
"""An input of a join of no more bytes than these is sent to every task, and nothing is shuffled (Spark's default)."""


@dataclass(frozen=True)
class Reading:
    """What bringing a node up to date from changes takes."""

    work: Work
    free_method: bool = False
    """Whether its changes can be computed by several methods."""

    def bytes(self, method: Method) -> int:
        """The bytes that its delta is computed from."""
        work = by_method(self.work, method)
        matched = (work.matched or work.table) if work.partials and method != "summary" else Extent()
        return work.read.bytes + matched.bytes

    @property
    def installed_bytes(self) -> int:
        """The bytes of its table that installing the delta reads."""
        match self.work.install:
            case "append" | "mark":
                return 0
            case "overwrite":
                return self.work.table.bytes
            case "replace" | "merge":
                return (self.work.holding or self.work.matched or self.work.table).bytes


def priced(step: Step, charged: Charges | None, bytes: int, prices: Prices, most_bytes: int) -> Step:
    """*step* with its mode and prediction, if it is *charged* so and reads *bytes*.

    Whatever it costs, a statement that reads *most_bytes* or more is left to Spark: results of small ones come here.
    """
    much = bytes >= most_bytes * (charged.statements if charged else 1)
    if charged is None:
        return replace(step, small=not much, compiled=much)
    compiled = much or prices.mode(charged) == "compiled"
    amounts = charged.compiled if compiled else charged.amounts
    if much:
        amounts = {**amounts, "ceremony": charged.statements}
    parts = min(max(bytes // SHUFFLED_AT_ONCE, 2), MOST_PARTITIONS) if compiled else None
    predicted = prices.costs.seconds(amounts)
    return replace(
        step, small=not much, compiled=compiled, charges=dict(amounts), predicted=predicted, partitions=parts
    )


def shuffled(inputs: Sequence[Extent], table: Extent, *, grouped: bool) -> int:
    """The bytes that recomputing moves: inputs that are joined and too large to be sent everywhere, and groups."""
    joined = sum(extent.bytes for extent in inputs if extent.bytes > SENT_EVERYWHERE) if len(inputs) > 1 else 0
    return joined + (table.bytes if grouped else 0)


def computing(reading: Reading, method: Method) -> Charges:
    """What computing a delta is charged for."""
    if method == "summary":
        return charges.summed(reading.work)
    return charges.computed(by_method(reading.work, method))


def by_method(work: Work, method: Method) -> Work:
    """The work of computing the delta of an aggregate by a method."""
    return replace(work, recomputes_groups=work.recomputes_groups or method == "affected")


def installing(reading: Reading, method: Method) -> Charges:
    """What installing it is charged for."""
    return charges.merged(reading.work) if method == "summary" else charges.installed(reading.work)


def candidate(
    node: Node,
    plan: NodePlan,
    reads: Sequence[str],
    reading: Reading | None,
    table: Extent,
    below: int,
    above: Sequence[str],
    leaves: Sequence[LeafChanges],
    *,
    free: bool,
) -> Candidate:
    """A node that has to be brought up to date, for the choice between its changes and recomputing it.

    *below* counts the changed rows that its work takes in from the nodes that it *reads*; the others are of *leaves*.
    """
    if plan.strategy == "full" or reading is None or node.block is None:
        way: Literal["full", "changes"] = "full" if plan.strategy == "full" else "changes"
        return Candidate(node.name, tuple(reads), plan.estimated_rows or 0, table, way, by_changes=_nothing)
    work = reading.work
    return Candidate(
        node.name,
        tuple(reads),
        work.delta_rows - below,
        table,
        "either" if free else "changes",
        work,
        _by_changes(node, above) if reading.free_method else _incremental,
        expected_install(node.block, table, insert_only=False) if work.install == "append" else work.install,
        _exact(node.stored) and not node.loose,
        tuple(leaves),
    )


def _nothing(_: CostModel, __: Work) -> float:
    return 0.0


def _incremental(cost: CostModel, work: Work) -> float:
    return cost.incremental(work)


def _by_changes(node: Node, above: Sequence[str]) -> Callable[[CostModel, Work], float]:
    return lambda cost, work: aggregate_method(node, work, cost, above).cost


def _exact(columns: Schema) -> bool:
    """Whether rows with these columns come out the same however they are computed."""
    return not any(kind in column.type for column in columns for kind in ("float", "double"))
