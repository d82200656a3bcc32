"""The warehouse's side of an algorithm, in memory: it holds the rows and does what the messages say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from strandline.algebra.bag import SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Bag, Change, Operand, Plan
from strandline.errors import IntegrateError
from strandline.integrate import one_channel
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.messages import (
    VIEW,
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


@dataclass(frozen=True)
class Sent:
    """A query with the rows that go along with it."""

    query: Query
    literals: Mapping[Operand, SignedBag] = field(repr=False)


Rows = Mapping[str, SignedBag]


class Memory:
    """Runs *algorithm* on rows in memory; *relations* are the rows of all relations at first."""

    def __init__(self, algorithm: Algorithm[Any], relations: Rows) -> None:
        self.algorithm = algorithm
        self.number = 0
        self.kept = {name: evaluate(plan, lambda o: _initial(o, relations)) for name, plan in algorithm.kept().items()}
        self.shown = [self.view]
        """The view at first and after each install."""
        self.upto = [0]
        """Up to which update each of them shows all."""
        self._bags: dict[Operand, SignedBag] = {}
        self._open: dict[str, Sent] = {}
        self._channels = {source: one_channel.Channel() for source in algorithm.view.sources}
        self._early: dict[str, Mapping[str, SignedBag]] = {}

    @property
    def view(self) -> SignedBag:
        """The rows of the view."""
        return self.kept[VIEW]

    def waiting(self) -> list[Sent]:
        """The queries that are sent and not answered, in order."""
        return list(self._open.values())

    def held(self) -> dict[str, SignedBag]:
        """The bags on the way to the view."""
        found = self.algorithm.held()
        return {name: SignedBag() if plan is None else self._value(plan) for name, plan in found.items()}

    def update(self, source: str, sequence: int, deltas: Rows) -> list[Sent]:
        """Transaction *sequence* of *source* has come: what is sent because of it."""
        if source not in self._channels:
            raise IntegrateError(
                "UNKNOWN_SOURCE",
                f"a transaction comes from {source}; the view reads {', '.join(self._channels)}; deliver only theirs.",
            )
        self.number += 1
        update = Update(self.number, source, sequence, self._received(source, deltas))
        sent = self._done(self.algorithm.on_update(update))
        self._channels[source], due = one_channel.delivered(self._channels[source], sequence)
        for query in due:
            sent += self._deliver(query, self._early.pop(query), None)
        return sent

    def answer(self, query: str, rows: Mapping[str, SignedBag], seen: int | None = None) -> list[Sent]:
        """The answer to *query* has come, by tag; *seen* transactions of its source were in it, if that is known."""
        if query in self._open:
            source = self._open[query].query.source
            match one_channel.fate(self._channels[source], seen):
                case "ask again":
                    return [self._open[query]]
                case "wait":
                    assert seen is not None
                    self._channels[source] = one_channel.wait(self._channels[source], query, seen)
                    self._early[query] = rows
                    return []
        return self._deliver(query, rows, seen)

    def idle(self) -> list[Sent]:
        """Nothing has happened for a while."""
        return self._done(self.algorithm.on_idle())

    def _deliver(self, query: str, rows: Mapping[str, SignedBag], seen: int | None) -> list[Sent]:
        for tag, found in rows.items():
            self._bags[answer_bag(query, tag)] = found
        self._open.pop(query, None)
        return self._done(self.algorithm.on_answer(Answer(query, seen)))

    def _received(self, source: str, deltas: Rows) -> tuple[Delta, ...]:
        view = self.algorithm.view
        found = []
        for relation, rows in deltas.items():
            homes = {view.homes[place] for place in view.places({relation})}
            if homes and homes != {source}:
                raise IntegrateError(
                    "GLOBAL_TRANSACTION",
                    f"a transaction of {source} changes {relation}, which is at {', '.join(homes)}; transactions over "
                    "several sources are not maintained: report the part of each source as a transaction of its own.",
                )
            rows = self._relevant(relation, rows) if homes else SignedBag()
            if rows:
                self._bags[delta(self.number, relation)] = rows
                self._bags[come(self.number, relation)] = rows.inserted
                self._bags[gone(self.number, relation)] = rows.deleted
                found.append(Delta(relation, sum(rows.inserted.values()), sum(rows.deleted.values())))
        return tuple(found)

    def _relevant(self, relation: str, rows: SignedBag) -> SignedBag:
        plan = self.algorithm.view.relevance(relation, Bag("rows"))
        return rows if plan is None else evaluate(plan, lambda _: rows)

    def _done(self, messages: Messages) -> list[Sent]:
        sent = []
        for message in messages:
            match message:
                case Evaluate(into, plan):
                    self._bags[into] = self._value(plan)
                case Install(changes, upto):
                    values = [(name, self._value(plan)) for name, plan in changes]
                    for name, value in values:
                        self.kept[name] = self.kept[name] + value
                    self.shown.append(self.view)
                    self.upto.append(upto)
                case Query():
                    literals: dict[Operand, SignedBag] = {each: self._rows(each) for each in message.literals}
                    self._open[message.id] = Sent(message, literals)
                    sent.append(self._open[message.id])
        used = set(operands(self.algorithm.state))
        self._bags = {name: rows for name, rows in self._bags.items() if name in used}
        return sent

    def _value(self, plan: Plan) -> SignedBag:
        return evaluate(plan, self._rows)

    def _rows(self, operand: Operand) -> SignedBag:
        if isinstance(operand, Bag) and operand in self.kept:
            return self.kept[operand]
        assert isinstance(operand, Bag | Change), f"{operand} is not at the warehouse"
        return self._bags[operand]


def _initial(operand: Operand, relations: Rows) -> SignedBag:
    assert isinstance(operand, At)
    return relations[operand.relation]
