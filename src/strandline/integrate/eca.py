"""ECA, eager compensation (Zhuge et al., Algorithm 5.2): strong, one source.

Each update's query takes off what that update adds to the answers that are still to come:
``Q_i = V<U_i> - sum of Q_j<U_i>`` over the unanswered queries, because ``Q[before] = Q[after] - Q<U>[after]`` (Lemma
B.2). Answers are collected and installed when no query is unanswered; under steady updates that may never be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.plan import Plan
from strandline.algebra.term import Sum, Term, substitute_now
from strandline.integrate.algorithm import Algorithm, require_one_source, taken
from strandline.integrate.expressions import bag, total
from strandline.integrate.messages import VIEW, Answer, Install, Messages, Part, Query, Update, answer_bag
from strandline.integrate.state import part_of_states
from strandline.integrate.view import View
from strandline.sql.statements import Consistency


@part_of_states
@dataclass(frozen=True)
class EcaState:
    """The unanswered query set, and COLLECT as a sum of what it is made of."""

    open: tuple[Query, ...] = ()
    collect: Sum = ()
    last: int = 0


def compensation(term: Term, update: Update) -> Sum:
    """What has to be added to an unanswered *term*, so that its answer is as if *update* had not been."""
    return tuple(-found for found in substitute_now(term, update.changes))


class Eca(Algorithm[EcaState]):
    """With *split*, terms without a relation are evaluated here; without it they are asked for, as printed."""

    name: ClassVar[str] = "eca"
    promises: ClassVar[Consistency | None] = "STRONG"

    def __init__(self, view: View, state: EcaState | None = None, *, split: bool = True) -> None:
        self.split = split
        super().__init__(view, state)

    def _require(self) -> None:
        require_one_source(self.name, self.view)

    def start(self) -> EcaState:
        return EcaState()

    def held(self) -> Mapping[str, Plan | None]:
        return {"COLLECT": total(self.state.collect)}

    def on_update(self, update: Update) -> Messages:
        terms = substitute_now(Term(self.view.plan), update.changes)
        for query in self.state.open:
            for term in query.terms:
                terms += compensation(term, update)
        local = tuple(term for term in terms if self.split and term.only_deltas)
        asked = tuple(term for term in terms if not (self.split and term.only_deltas))
        self.state = replace(self.state, collect=(*self.state.collect, *local), last=update.number)
        if not asked:
            return self._settle()
        query = Query(str(update.number), update.source, update.number, (Part("", asked),))
        self.state = replace(self.state, open=(*self.state.open, query))
        return (query,)

    def on_answer(self, answer: Answer) -> Messages:
        query, rest = taken(self.state.open, answer)
        answered = Term(bag(answer_bag(query.id, ""), self.view.columns))
        self.state = replace(self.state, open=rest, collect=(*self.state.collect, answered))
        return self._settle()

    def _settle(self) -> Messages:
        if self.state.open:
            return ()
        collect = total(self.state.collect)
        self.state = replace(self.state, collect=())
        return (Install(((VIEW, collect),) if collect is not None else (), self.state.last),)
