"""What the steps of a plan should take, and how each is run: by what it reads itself.

A step over little data runs interpreted, because compiling would cost more than it saves; one over much is compiled,
and what it shuffles is cut into parts of a size that fits into memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from strandline.algebra.block import Method
from strandline.algebra.schema import Schema
from strandline.cost import charges
from strandline.cost.calibration import Prices
from strandline.cost.charges import Charges, Work
from strandline.cost.graph import Candidate
from strandline.cost.model import CostModel
from strandline.propagate.methods import aggregate_method, expected_install
from strandline.propagate.plan import NodePlan, Step
from strandline.store.node import Node

SHUFFLED_AT_ONCE = 32 << 20
"""Bytes of input for each part of a shuffle."""

MOST_PARTITIONS = 200


@dataclass(frozen=True)
class Reading:
    """What bringing a node up to date from changes takes: the work, and the bytes that its delta is computed from."""

    work: Work
    bytes: int = 0
    free_method: bool = False
    """Whether its changes can be computed by several methods."""


def priced(step: Step, charged: Charges | None, bytes: int, prices: Prices, most_bytes: int) -> Step:
    """*step* with its mode and prediction, if it is *charged* so and reads *bytes*.

    Whatever it costs, a statement that reads *most_bytes* or more is compiled: results of interpreted ones come here.
    """
    much = bytes >= most_bytes * (charged.statements if charged else 1)
    if charged is None:
        return replace(step, small=not much)
    small = not much and prices.mode(charged) == "interpreted"
    amounts = charged.amounts if small else charged.compiled
    parts = None if small else min(max(bytes // SHUFFLED_AT_ONCE, 2), MOST_PARTITIONS)
    return replace(step, small=small, charges=dict(amounts), predicted=prices.costs.seconds(amounts), partitions=parts)


def computing(reading: Reading, method: Method) -> Charges:
    """What computing a delta is charged for."""
    if method == "summary":
        return charges.summed(reading.work)
    return charges.computed(
        replace(reading.work, recomputes_groups=reading.work.recomputes_groups or method == "affected")
    )


def installing(reading: Reading, method: Method) -> Charges:
    """What installing it is charged for."""
    return charges.merged(reading.work) if method == "summary" else charges.installed(reading.work)


def candidate(
    node: Node,
    plan: NodePlan,
    reads: Sequence[str],
    reading: Reading | None,
    table_rows: int,
    below: int,
    above: Sequence[str],
    *,
    free: bool,
) -> Candidate:
    """A node that has to be brought up to date, for the choice between its changes and recomputing it.

    *below* counts the changed rows that its work takes in from the nodes that it *reads*.
    """
    if plan.strategy == "full" or reading is None or node.block is None:
        way: Literal["full", "changes"] = "full" if plan.strategy == "full" else "changes"
        return Candidate(node.name, tuple(reads), plan.estimated_rows or 0, table_rows, way, by_changes=_nothing)
    return Candidate(
        node.name,
        tuple(reads),
        reading.work.delta_rows - below,
        table_rows,
        "either" if free else "changes",
        reading.work,
        _by_changes(node, above) if reading.free_method else _incremental,
        expected_install(node.block, table_rows, insert_only=False),
        _exact(node.stored) and not node.loose,
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
