"""Blocks: a select-project-join-union body with at most one non-linear operator on top.

A view's definition is cut into blocks; each is a node of the view DAG with a table of its own. What the table
holds (*stored* columns: group keys and partial aggregates) and what a reader sees (*visible* columns) are
related by a selection and a projection, which are linear: the delta of the stored rows gives the delta of the
visible ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from strandline.algebra.constraints import NOTHING, Assumed, simplified
from strandline.algebra.differentiate import differentiate, group_by, monotone, sections, strategies
from strandline.algebra.inner import Inner
from strandline.algebra.ordered import Ordered
from strandline.algebra.plan import (
    COUNT,
    Filter,
    GroupBy,
    Net,
    Output,
    Partial,
    Plan,
    Project,
    Repeat,
    Scan,
    key,
    relations,
)
from strandline.algebra.scalar import Col, Scalar
from strandline.algebra.schema import Schema
from strandline.algebra.shared import SharedJoin, folded
from strandline.algebra.term import Sum, as_plan

Strategy = Literal["none", "incremental", "affected", "full"]
"""How a view is brought up to date; of several operators the weakest counts, from left to right."""

Method = Literal["explicit", "summary", "affected"]
"""How the changes of an aggregate are computed (WHIPS, 7.3): as deletions and insertions of stored rows, as a summary
delta alone, or by computing the groups anew that are touched."""

Form = Literal["explicit", "summary", "copies"]
"""What a computed delta holds: stored rows with a sign, a summary delta, or copies of the rows of a counted table."""


@dataclass(frozen=True)
class Block:
    """A node of the view DAG.

    Without *partials* the body's rows are stored as they are, duplicates as rows. With them the body is
    grouped: *keys* and *partials* are stored. With *ordered* what is stored is computed from the body's rows section by
    section. *having*, *times* and *outputs* read the stored columns; without *outputs* they are visible as they are.
    With *times* a stored row is seen so many times.
    """

    node: str
    body: Plan
    keys: tuple[Output, ...] = ()
    partials: tuple[Partial, ...] = ()
    having: Scalar | None = None
    outputs: tuple[Output, ...] = ()
    times: Scalar | None = None
    ordered: Ordered | None = None

    @property
    def grouped(self) -> bool:
        return bool(self.partials)

    @property
    def counted(self) -> bool:
        """Whether the body's rows are stored each once with the number of its copies (WHIPS's COUNT, not DUP)."""
        whole = tuple(Col(column.name) for column in self.body.columns)
        return self.times == Col(COUNT) and len(self.partials) == 1 and tuple(k.value for k in self.keys) == whole

    @property
    def contents(self) -> Plan:
        """The stored rows, from the inputs."""
        if self.ordered is not None:
            return self.ordered.rows(self.body)
        return GroupBy(self.body, self.keys, self.partials) if self.grouped else self.body

    @property
    def stored(self) -> Schema:
        return self.contents.columns

    @property
    def visible(self) -> Schema:
        return tuple(o.column for o in self.outputs) if self.outputs else self.stored

    @property
    def told_apart_by(self) -> tuple[Output, ...]:
        """The values of a row of the body that say with which others it is computed: of its group, or its section."""
        return self.keys if self.ordered is None else self.ordered.sections

    @property
    def inputs(self) -> tuple[str, ...]:
        """The relations that the body reads."""
        return relations(self.body)

    @property
    def key(self) -> tuple[str, ...]:
        """Stored columns that identify a stored row; empty if none are known to."""
        found = key(self.contents) or frozenset()
        return tuple(column.name for column in self.stored if column.name in found)

    @property
    def visible_key(self) -> tuple[str, ...]:
        found = key(self.reading(self.contents)) or frozenset()
        return tuple(column.name for column in self.visible if column.name in found)

    def reading(self, stored: Plan) -> Plan:
        """The visible rows, from stored ones; signed rows give signed rows."""
        chosen = stored if self.having is None else Filter(stored, self.having)
        chosen = chosen if self.times is None else Repeat(chosen, self.times)
        return Project(chosen, self.outputs) if self.outputs else chosen

    def reading_copies(self, copies: Plan) -> Plan:
        """The visible rows of a counted block, from rows that are not counted."""
        return replace(self, times=None).reading(copies)


@dataclass(frozen=True)
class BlockDelta:
    """The delta of a block's stored rows, and how it is computed."""

    plan: Plan
    strategy: Strategy
    operators: tuple[str, ...]
    terms: Sum
    touched_keys: Plan | None = None
    """The keys of the groups or sections that are computed anew."""
    form: Form = "explicit"


def delta_of(
    block: Block,
    changed: Collection[str],
    *,
    insert_only: bool,
    stored_keys: Scan | None = None,
    method: Method = "explicit",
    assumed: Assumed = NOTHING,
    order: Sequence[str] = (),
    shared: Collection[SharedJoin] = (),
    inner: Collection[Inner] = (),
) -> BlockDelta | None:
    """The delta of the stored rows of *block*, or None if nothing in *changed* can change them.

    *insert_only* says that the changes contain no deletions. Where groups or sections are computed anew, their keys are
    read twice; *stored_keys* scans them if they were stored. A *method* that the aggregates do not allow gives way to
    the one that they do. A counted block's delta is that of its body: counts follow when it is installed. *assumed* are
    constraints that hold before and after the changes. In joins inputs are taken to change in *order*: any is right,
    and it says which are read before the change. The deltas of *shared* joins are stored, and read where the body holds
    such a join; so are those of the *inner* plans of the body.
    """
    body, known = folded(simplified(block.body, assumed)[0], shared)
    known |= {folded(each.plan, shared)[0]: each.delta for each in inner}
    block = replace(block, body=body)
    terms = differentiate(block.body, changed, assumed, order, known)
    changes = as_plan(terms)
    if changes is None:
        return None
    insert_only = insert_only and monotone(block.body)
    below = _named(strategies(block.body))
    if block.ordered is not None:
        touched = sections.touched(block.ordered, changes)
        plan = sections.affected(block.node, block.ordered, block.body, stored_keys or touched, changed)
        return BlockDelta(plan, "affected", (*below, sections.strategy(block.ordered)), terms, touched)
    if not block.grouped or block.counted:
        form: Form = "copies" if block.counted else "explicit"
        return BlockDelta(Net(changes), _weakest(below), below, terms, form=form)
    group = GroupBy(block.body, block.keys, block.partials)
    old = group_by.backing(block.node, group)
    if method != "affected" and group_by.absorbs(block.partials, insert_only=insert_only):
        operators = (*below, group_by.LINEAR)
        if method == "summary":
            return BlockDelta(group_by.summary(group, changes), _weakest(below), operators, terms, form="summary")
        return BlockDelta(group_by.linear(group, changes, old), _weakest(below), operators, terms)
    keys = group_by.touched_keys(group, changes)
    plan = group_by.affected(group, stored_keys or keys, old, changed)
    return BlockDelta(plan, "affected", (*below, group_by.AFFECTED), terms, keys)


def _named(found: tuple[str, ...]) -> tuple[str, ...]:
    """The strategies of a body as EXPLAIN names them: that of the scans only if there is no other."""
    return tuple(name for name in found if name != "linear") or ("linear",)


def _weakest(operators: tuple[str, ...]) -> Strategy:
    return "affected" if any(name.startswith("affected") for name in operators) else "incremental"
