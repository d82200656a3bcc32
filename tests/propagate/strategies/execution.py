"""Strategies carried out in memory, over signed bags."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random

from strandline.algebra.bag import SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Change, Join, Operand, Output, Plan, Project, Scan
from strandline.algebra.scalar import Col, equality
from strandline.algebra.schema import Column
from strandline.propagate.strategies.expressions import Comp, Expression, Inst
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.multi_version import PinnedComp, PinnedStep
from strandline.propagate.strategies.terms import comp_terms, pinned_term

FIELDS = (Column("a", "bigint"), Column("b", "bigint"))
Contents = Mapping[str, SignedBag]


def chain(sources: Iterable[str], inputs: Iterable[Plan]) -> Plan:
    """A view of two columns: a chain of joins over *sources*, whose rows *inputs* give, in any order."""
    links = tuple(sources)
    conditions = tuple(equality(f"{left}.b", f"{right}.a") for left, right in pairwise(links))
    outputs = (Output(FIELDS[0], Col(f"{links[0]}.a")), Output(FIELDS[1], Col(f"{links[-1]}.b")))
    return Project(Join(tuple(inputs), conditions), outputs)


def scanned(views: Iterable[str]) -> list[Plan]:
    return [Scan(At(view), view, FIELDS) for view in views]


def chains(graph: ViewGraph) -> dict[str, Plan]:
    """Definitions for the derived views of *graph*."""
    return {view: chain(graph.defined_on[view], scanned(graph.defined_on[view])) for view in graph.derived}


def written_out(graph: ViewGraph, view: str, through: str) -> Plan:
    """The chain of *view* with the definition of *through* in the place of *through*."""
    below = graph.defined_on[through]
    inner = [Scan(At(source), f"{through} {source}", FIELDS) for source in below]
    rows = chain([scan.alias for scan in inner], inner)
    named = Project(
        rows, tuple(Output(Column(f"{through}.{field.name}", field.type), Col(field.name)) for field in FIELDS)
    )
    inputs = [named if source == through else scanned([source])[0] for source in graph.defined_on[view]]
    return chain(graph.defined_on[view], inputs)


def computed(graph: ViewGraph, definitions: Mapping[str, Plan], base: Contents) -> dict[str, SignedBag]:
    """All views from the base views."""
    found = dict(base)

    def current(operand: Operand) -> SignedBag:
        assert isinstance(operand, At)
        return found[operand.relation]

    for view in graph.bottom_up:
        if view in definitions:
            found[view] = evaluate(definitions[view], current)
    return found


@dataclass
class Warehouse:
    """Views as they are installed, and deltas as they gather: those of base views are there from the start."""

    definitions: Mapping[str, Plan]
    contents: dict[str, SignedBag]
    deltas: dict[str, SignedBag]
    before: dict[str, SignedBag] = field(default_factory=dict)
    """What a view held before its install, where there are versions."""

    def carry_out(self, *steps: Expression | PinnedStep) -> None:
        """*steps* side by side: each sees what was there before any of them."""
        for step, rows in [(step, self._result(step)) for step in steps]:
            if isinstance(step, Inst):
                self.before.setdefault(step.view, self.contents[step.view])
                self.contents[step.view] = self.contents[step.view] + rows
            else:
                self.deltas[step.view] = self.deltas[step.view] + rows

    def _result(self, step: Expression | PinnedStep) -> SignedBag:
        match step:
            case Inst(view):
                return self.deltas[view]
            case Comp():
                return self.comp(step)
            case PinnedComp():
                return evaluate(pinned_term(self.definitions[step.view], step), self._pinned)

    def comp(self, step: Comp) -> SignedBag:
        """The sum of all terms with at least one delta, the other operands as they are installed."""
        terms = comp_terms(self.definitions[step.view], step)
        return sum((evaluate(term, self._current) for term in terms), SignedBag())

    def _current(self, operand: Operand) -> SignedBag:
        assert isinstance(operand, At | Change)
        return (self.contents if isinstance(operand, At) else self.deltas)[operand.relation]

    def _pinned(self, operand: Operand) -> SignedBag:
        match operand:
            case At(relation, "pre"):
                return self.before.get(relation, self.contents[relation])
            case At(relation, "post"):
                assert relation in self.before, f"{relation} is not installed yet"
                return self.contents[relation]
            case Change(relation):
                return self.deltas[relation]
        raise AssertionError(f"a step reads {operand}")


@dataclass(frozen=True)
class Case:
    """A graph with definitions, base views before a refresh, and their deltas."""

    graph: ViewGraph
    definitions: Mapping[str, Plan]
    base: Contents
    changes: Contents

    def warehouse(self) -> Warehouse:
        deltas = {**dict.fromkeys(self.graph.derived, SignedBag()), **self.changes}
        return Warehouse(self.definitions, computed(self.graph, self.definitions, self.base), deltas)

    def right(self) -> dict[str, SignedBag]:
        """What all views hold after the refresh."""
        base = {view: self.base[view] + self.changes[view] for view in self.base}
        return computed(self.graph, self.definitions, base)

    def ends_right(self, steps: Iterable[Iterable[Expression | PinnedStep]]) -> bool:
        """Whether sets of steps, one after another, lead there."""
        warehouse = self.warehouse()
        for side_by_side in steps:
            warehouse.carry_out(*side_by_side)
        return warehouse.contents == self.right()


def random_case(graph: ViewGraph, random: Random) -> Case:
    """Chains of joins over few values, so that rows meet; every delta deletes and inserts."""

    def rows(count: int) -> SignedBag:
        return SignedBag.of([(random.randrange(3), random.randrange(3)) for _ in range(count)])

    base = {view: rows(6) for view in graph.views if not graph.defined_on[view]}
    changes = {}
    for view, held in base.items():
        gone = SignedBag.of(random.sample(held.rows(), 2))
        changes[view] = SignedBag() if view in graph.still else rows(2) - gone
    return Case(graph, chains(graph), base, changes)
