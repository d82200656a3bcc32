"""C-Strobe (after Wang et al., section 3.2, and the paper it cites): several sources, keys in the view, complete.

One update at a time. An insert tours the other relations; what concurrent updates did to its answer is undone: rows
that show a key of theirs are dropped, and for every concurrent delete a further query asks what the deleted rows would
have given, which may be contaminated in turn: up to (n-1)(1+mu)^(n-2) queries, if mu rows go in each other relation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.plan import Bag, Exists, Plan
from strandline.algebra.scalar import Col
from strandline.integrate.algorithm import Algorithm, require_keys, unknown_query
from strandline.integrate.expressions import bag, distinct, key_deleted, minus, plus, without_keys
from strandline.integrate.messages import VIEW, Answer, Evaluate, Install, Message, Messages, Update, come, gone
from strandline.integrate.state import part_of_states
from strandline.integrate.tour import Literal, Tour, absorb, depart, next_place, result, visit
from strandline.integrate.view import column_of
from strandline.sql.statements import Consistency


@part_of_states
@dataclass(frozen=True)
class CStrobeState:
    """Updates in order of arrival; of the first of them, if it is *begun*, open tours and what finished ones gave.

    *asked* names the compensating queries that were sent for it.
    """

    queue: tuple[Update, ...] = ()
    begun: bool = False
    open: tuple[Tour, ...] = ()
    asked: tuple[str, ...] = ()
    found: tuple[Bag, ...] = ()


class CStrobe(Algorithm[CStrobeState]):
    """One update after another, with compensating queries for concurrent deletes."""

    name: ClassVar[str] = "c-strobe"
    promises: ClassVar[Consistency | None] = "COMPLETE"

    def _require(self) -> None:
        require_keys(self.name, self.view)

    def start(self) -> CStrobeState:
        return CStrobeState()

    def on_update(self, update: Update) -> Messages:
        self.state = replace(self.state, queue=(*self.state.queue, update))
        return self._run()

    def on_answer(self, answer: Answer) -> Messages:
        tour = next((each for each in self.state.open if each.query == answer.query), None)
        if tour is None:
            raise unknown_query(answer)
        self.state = replace(self.state, open=tuple(each for each in self.state.open if each is not tour))
        tour, evaluate = absorb(self.view, tour, ())
        return (evaluate, *self._go_on(tour), *self._run())

    def _run(self) -> Messages:
        messages: Messages = ()
        while self.state.queue and not self.state.open:
            messages += self._finish() if self.state.begun else self._begin()
        return messages

    def _begin(self) -> Messages:
        update = self.state.queue[0]
        self.state = replace(self.state, begun=True)
        messages: Messages = ()
        for place in self.view.places(update.inserts):
            literal = come(update.number, self.view.relations[place])
            messages += self._ask(f"{update.number}.{place}", {place: literal})
        return messages

    def _finish(self) -> Messages:
        update, *rest = self.state.queue
        view = bag(VIEW, self.view.columns)
        found = (bag(each, self.view.columns) for each in self.state.found)
        rows = distinct(plus(key_deleted(view, self.view, [update]), *found))
        self.state = CStrobeState(tuple(rest))
        return (Install(((VIEW, minus(rows, view)),), update.number),)

    def _ask(self, name: str, literals: dict[int, Literal]) -> Messages:
        tour, evaluate = depart(self.view, name, self.state.queue[0].number, literals)
        return (evaluate, *self._go_on(tour))

    def _go_on(self, tour: Tour) -> Messages:
        place = next_place(self.view, tour)
        if place is None:
            return self._compensate(tour)
        tour, query = visit(self.view, tour, place)
        self.state = replace(self.state, open=(*self.state.open, tour))
        return (query,)

    def _compensate(self, tour: Tour) -> Messages:
        """Undo what the updates did that arrived after the current one, in relations that are not literals."""
        literals = dict(tour.literals)
        rows, asks = result(self.view, tour), list[Message]()
        for place in (place for place in range(len(self.view.scans)) if place not in literals):
            relation, touched = self.view.relations[place], list[Bag]()
            for update in self._concurrent(relation):
                deleted = gone(update.number, relation)
                if relation in update.deletes:
                    asks += self._ask_with(tour, place, update, self._untouched(place, deleted, touched))
                    touched.append(deleted)
                if relation in update.inserts:
                    touched.append(come(update.number, relation))
            rows = without_keys(rows, self.view, place, touched)
        found = Bag(f"A {tour.id}")
        self.state = replace(self.state, found=(*self.state.found, found))
        return (Evaluate(found, rows), *asks)

    def _ask_with(self, tour: Tour, place: int, update: Update, deleted: Plan) -> Messages:
        """Ask what *deleted* would have given at *place*; once, in whatever order deletes are compensated for."""
        first, *others = tour.id.split("+")
        name = "+".join([first, *sorted([*others, f"{update.number}.{place}"])])
        if name in self.state.asked:
            return ()
        self.state = replace(self.state, asked=(*self.state.asked, name))
        existed = Bag(f"existed {tour.update} {update.number}.{place}")
        return (Evaluate(existed, deleted), *self._ask(name, {**dict(tour.literals), place: existed}))

    def _concurrent(self, relation: str) -> Iterator[Update]:
        """The updates of *relation* that arrived after the current one: all of them, not only those since a query."""
        return (update for update in self.state.queue[1:] if relation in update.relations)

    def _untouched(self, place: int, deleted: Bag, earlier: list[Bag]) -> Plan:
        """The rows of *deleted* that were there at the current update: nobody touched their keys in between."""
        rows = self.view.scan(place, deleted)
        if not earlier:
            return rows
        touched = [replace(rows, operand=each, alias="touched") for each in earlier]
        pairs = tuple((Col(column_of(rows, name)), Col(column_of(touched[0], name))) for name in rows.key)
        return Exists(rows, plus(*touched), pairs, negated=True)
