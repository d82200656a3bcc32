"""Strobe (after Wang et al., section 3.2, and the paper it cites): several sources, keys in the view, strong.

ECA-Key over several sources. Inserts tour the other relations; deletes are pending on every open query and go onto the
action list, as finished answers do. The list is applied when no query is open; without such a moment the view does not
move.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.plan import Bag, Plan
from strandline.integrate.algorithm import Algorithm, require_keys, unknown_query
from strandline.integrate.expressions import bag, distinct, key_deleted, minus, plus
from strandline.integrate.messages import VIEW, Answer, Evaluate, Install, Message, Messages, Update, come
from strandline.integrate.state import part_of_states
from strandline.integrate.tour import Tour, absorb, depart, next_place, result, visit
from strandline.sql.statements import Consistency


@part_of_states
@dataclass(frozen=True)
class OpenTour:
    """An insert on its tour, and the deletes that arrived since it began."""

    tour: Tour
    pending: tuple[Update, ...] = ()


@part_of_states
@dataclass(frozen=True)
class StrobeState:
    """Open tours, and the action list: an update stands for its deletes, a bag for rows to insert."""

    open: tuple[OpenTour, ...] = ()
    actions: tuple[Update | Bag, ...] = ()
    last: int = 0


class Strobe(Algorithm[StrobeState]):
    """Tours for inserts, pending deletes, and an action list."""

    name: ClassVar[str] = "strobe"
    promises: ClassVar[Consistency | None] = "STRONG"

    def _require(self) -> None:
        require_keys(self.name, self.view)

    def start(self) -> StrobeState:
        return StrobeState()

    def held(self) -> Mapping[str, Plan | None]:
        return {"AL": self._applied(bag(VIEW, self.view.columns))}

    def on_update(self, update: Update) -> Messages:
        self.state = replace(self.state, last=update.number)
        if update.deletes:
            pending = tuple(replace(each, pending=(*each.pending, update)) for each in self.state.open)
            self.state = replace(self.state, open=pending, actions=(*self.state.actions, update))
        messages: list[Message] = []
        for place in self.view.places(update.inserts):
            literal = {place: come(update.number, self.view.relations[place])}
            tour, evaluate = depart(self.view, f"{update.number}.{place}", update.number, literal)
            messages += [evaluate, *self._go_on(OpenTour(tour))]
        return (*messages, *self._settle())

    def on_answer(self, answer: Answer) -> Messages:
        found = next((each for each in self.state.open if each.tour.query == answer.query), None)
        if found is None:
            raise unknown_query(answer)
        self.state = replace(self.state, open=tuple(each for each in self.state.open if each is not found))
        tour, evaluate = absorb(self.view, found.tour, ())
        return (evaluate, *self._go_on(replace(found, tour=tour)), *self._settle())

    def _go_on(self, open_tour: OpenTour) -> Messages:
        place = next_place(self.view, open_tour.tour)
        if place is not None:
            tour, query = visit(self.view, open_tour.tour, place)
            self.state = replace(self.state, open=(*self.state.open, replace(open_tour, tour=tour)))
            return (query,)
        rows = key_deleted(result(self.view, open_tour.tour), self.view, open_tour.pending)
        inserted = Bag(f"A {open_tour.tour.id}")
        self.state = replace(self.state, actions=(*self.state.actions, inserted))
        return (Evaluate(inserted, rows),)

    def _settle(self) -> Messages:
        if self.state.open:
            return ()
        view = bag(VIEW, self.view.columns)
        changed = minus(self._applied(view), view)
        self.state = replace(self.state, actions=())
        return (Install(((VIEW, changed),), self.state.last),)

    def _applied(self, rows: Plan) -> Plan:
        """*rows* after the action list: each row that was inserted has to outlive the deletes that follow it."""
        inserted: list[Plan] = []
        deletes: list[Update] = []
        for action in reversed(self.state.actions):
            if isinstance(action, Update):
                deletes.append(action)
            else:
                inserted.append(key_deleted(bag(action, self.view.columns), self.view, deletes))
        return distinct(plus(key_deleted(rows, self.view, deletes), *inserted))
