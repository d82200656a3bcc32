"""The driver: runs the algorithm of one base view on real rows.

Updates of all sources are delivered first; then the questions that the algorithm asks are answered, each by a source
that is held at the last update which was delivered. So an answer has seen what was delivered before it and nothing
else, as the algorithms demand, and however much is written meanwhile, a run comes to its end.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline.algebra.bag import SignedBag
from strandline.algebra.plan import Bag, Operand, Plan, scans
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.messages import (
    Answer,
    Delta,
    Evaluate,
    Install,
    Messages,
    Query,
    Update,
    answer_bag,
    come,
    delta,
    gone,
)
from strandline.integrate.state import operands
from strandline.integrate.workbench import Table, Workbench

Ask = Callable[[Query, Mapping[Operand, SignedBag]], Mapping[str, SignedBag]]
"""Answers a query, given the rows that go along with it: the rows of each part, by its tag."""


@dataclass
class Installed:
    """What one install adds to the view and to auxiliary views; afterwards they show all updates up to *upto*."""

    upto: int
    changes: Mapping[Bag, SignedBag]


@dataclass
class Run:
    """What a run has come to."""

    installs: list[Installed] = field(default_factory=list)
    queries: int = 0

    def total(self, bag: Bag) -> SignedBag:
        """All that was added to *bag*."""
        return SignedBag(signed for each in self.installs for signed in each.changes.get(bag, SignedBag()).items())


class Driver:
    """Runs *algorithm*; *kept* are the tables of the bags that it keeps."""

    def __init__(self, algorithm: Algorithm[Any], kept: Mapping[Bag, Table], bench: Workbench, ask: Ask) -> None:
        self._algorithm = algorithm
        self._kept = kept
        self._loaded: dict[Bag, SignedBag | None] = {}
        self._bench = bench
        self._ask = ask
        self._bags: dict[Operand, SignedBag] = {}
        self._added: dict[Bag, SignedBag] = {}
        self._open: deque[Query] = deque()
        self._number = 0
        self.run = Run()

    def update(self, source: str, sequence: int, changes: Mapping[str, SignedBag]) -> None:
        """Deliver transaction *sequence* of *source*, or several as one: signed rows by relation."""
        self._number += 1
        found = []
        for relation, rows in changes.items():
            relevant = self._relevant(relation, rows)
            if relevant:
                self._bags[delta(self._number, relation)] = relevant
                self._bags[come(self._number, relation)] = relevant.inserted
                self._bags[gone(self._number, relation)] = relevant.deleted
                counts = sum(relevant.inserted.values()), sum(relevant.deleted.values())
                found.append(Delta(relation, *counts))
        self._done(self._algorithm.on_update(Update(self._number, source, sequence, tuple(found))))

    def settle(self) -> Run:
        """Have all questions answered, until the view shows every update."""
        while self._open or self._algorithm.restless:
            if not self._open:
                self._done(self._algorithm.on_idle())
                continue
            query = self._open.popleft()
            given: dict[Operand, SignedBag] = {literal: self._bags[literal] for literal in query.literals}
            for tag, rows in self._ask(query, given).items():
                self._bags[answer_bag(query.id, tag)] = rows
            self.run.queries += 1
            self._done(self._algorithm.on_answer(Answer(query.id)))
        return self.run

    def _relevant(self, relation: str, rows: SignedBag) -> SignedBag:
        """The rows that may matter: those that meet the view's conditions on their own table."""
        plan = self._algorithm.view.relevance(relation, Bag("rows"))
        return rows if plan is None or not rows else self._bench.value(plan, {Bag("rows"): rows}, {})

    def _done(self, messages: Messages) -> None:
        for message in messages:
            match message:
                case Evaluate(into, plan):
                    self._bags[into] = self._value(plan)
                case Install(changes, upto):
                    self._install({bag: self._value(plan) for bag, plan in changes}, upto)
                case Query():
                    self._open.append(message)
        used = {*operands(self._algorithm.state), *(each for query in self._open for each in query.literals)}
        self._bags = {name: rows for name, rows in self._bags.items() if name in used}

    def _install(self, changes: Mapping[Bag, SignedBag], upto: int) -> None:
        self.run.installs.append(Installed(upto, changes))
        for bag, rows in changes.items():
            self._added[bag] = self._added.get(bag, SignedBag()) + rows

    def _value(self, plan: Plan) -> SignedBag:
        bags, tables = dict(self._bags), dict[Operand, str]()
        for bag in [bag for bag in self._kept if any(scan.operand == bag for scan in scans(plan))]:
            added = self._added.get(bag, SignedBag())
            stored = self._stored(bag)
            if stored is not None:
                bags[bag] = stored + added
            else:
                table = self._kept[bag]
                more = f" UNION ALL {self._bench.select(added, table.columns)}" if added else ""
                tables[bag] = f"{table.signed}{more}"
        return self._bench.value(plan, bags, tables)

    def _stored(self, bag: Bag) -> SignedBag | None:
        """The stored rows of a bag that is kept; None if they are too many to be held here."""
        if bag not in self._loaded:
            self._loaded[bag] = self._bench.loaded(self._kept[bag])
        return self._loaded[bag]
