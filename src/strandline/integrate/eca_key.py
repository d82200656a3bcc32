"""ECA-Key (Zhuge et al., section 5.4), repaired: strong, one source, a key of every relation in the view.

The view is then a set. A delete is done here, by the key that the view shows; an insert is asked for without
compensation, and duplicates are ignored. As printed it is not strong: a tuple that is inserted and then deleted while
its query is open stands in the query itself, comes back in the answer, and stays. So each open query has *pending
deletes*, which its answer goes through first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.plan import Bag, Plan
from strandline.algebra.term import Term
from strandline.integrate.algorithm import Algorithm, require_keys, require_one_source, taken
from strandline.integrate.expressions import bag, distinct, key_deleted, minus, plus
from strandline.integrate.messages import (
    VIEW,
    Answer,
    Evaluate,
    Install,
    Messages,
    Part,
    Query,
    Update,
    answer_bag,
    come,
)
from strandline.integrate.state import part_of_states
from strandline.sql.statements import Consistency


@part_of_states
@dataclass(frozen=True)
class OpenInsert:
    """An unanswered query, and the deletes that arrived since it was sent."""

    query: Query
    pending: tuple[Update, ...] = ()


@part_of_states
@dataclass(frozen=True)
class EcaKeyState:
    """The unanswered query set, and COLLECT, which is the view itself while that is empty."""

    open: tuple[OpenInsert, ...] = ()
    collect: Bag = VIEW
    last: int = 0


class EcaKey(Algorithm[EcaKeyState]):
    """Key-deletes at once, inserts by queries, both on COLLECT; installed when no query is open."""

    name: ClassVar[str] = "eca-key"
    promises: ClassVar[Consistency | None] = "STRONG"

    def _require(self) -> None:
        require_one_source(self.name, self.view)
        require_keys(self.name, self.view)

    def start(self) -> EcaKeyState:
        return EcaKeyState()

    def held(self) -> Mapping[str, Plan | None]:
        return {"COLLECT": bag(self.state.collect, self.view.columns)}

    def on_update(self, update: Update) -> Messages:
        messages: Messages = ()
        self.state = replace(self.state, last=update.number)
        if update.deletes:
            self.state = replace(self.state, open=tuple(self._pending(each, update) for each in self.state.open))
            collect = bag(self.state.collect, self.view.columns)
            kept = key_deleted(collect, self.view, [update])
            messages = self._collect(Bag(f"COLLECT {update.number} deleted"), kept)
        if update.inserts:
            places = self.view.places(update.inserts)
            asked = tuple(
                Term(self.view.with_operands({p: come(update.number, self.view.relations[p])})) for p in places
            )
            query = Query(str(update.number), update.source, update.number, (Part("", asked),))
            self.state = replace(self.state, open=(*self.state.open, OpenInsert(query)))
            messages = (*messages, query)
        return (*messages, *self._settle())

    def on_answer(self, answer: Answer) -> Messages:
        query, _ = taken((each.query for each in self.state.open), answer)
        (found,) = (each for each in self.state.open if each.query is query)
        self.state = replace(self.state, open=tuple(each for each in self.state.open if each is not found))
        rows = key_deleted(bag(answer_bag(query.id, ""), self.view.columns), self.view, found.pending)
        collect = distinct(plus(bag(self.state.collect, self.view.columns), rows))
        return (*self._collect(Bag(f"COLLECT {query.id} answered"), collect), *self._settle())

    def _pending(self, each: OpenInsert, update: Update) -> OpenInsert:
        return replace(each, pending=(*each.pending, update))

    def _collect(self, into: Bag, plan: Plan) -> Messages:
        self.state = replace(self.state, collect=into)
        return (Evaluate(into, plan),)

    def _settle(self) -> Messages:
        if self.state.open:
            return ()
        columns = self.view.columns
        changed = minus(bag(self.state.collect, columns), bag(VIEW, columns))
        self.state = replace(self.state, collect=VIEW)
        return (Install(((VIEW, changed),), self.state.last),)


class EcaKeyAsPrinted(EcaKey):
    """Without pending deletes, as Zhuge et al. prints it: for teaching and tests."""

    name: ClassVar[str] = "eca-key-as-printed"
    promises: ClassVar[Consistency | None] = None

    def _pending(self, each: OpenInsert, update: Update) -> OpenInsert:
        return each
