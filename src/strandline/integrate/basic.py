"""Basic (Zhuge et al., Algorithm 5.1): each update is a query, each answer is added.

It keeps no level: an answer has seen later updates, and their own queries count them again. Kept for teaching and
tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.term import Term, substitute_now
from strandline.integrate.algorithm import Algorithm, require_one_source, taken
from strandline.integrate.expressions import bag
from strandline.integrate.messages import VIEW, Answer, Install, Messages, Part, Query, Update, answer_bag
from strandline.integrate.state import part_of_states
from strandline.sql.statements import Consistency


@part_of_states
@dataclass(frozen=True)
class BasicState:
    """The queries sent and not yet answered."""

    open: tuple[Query, ...] = ()
    last: int = 0


class Basic(Algorithm[BasicState]):
    """``Q_i = V<U_i>``; ``MV += A_i``."""

    name: ClassVar[str] = "basic"
    promises: ClassVar[Consistency | None] = None

    def _require(self) -> None:
        require_one_source(self.name, self.view)

    def start(self) -> BasicState:
        return BasicState()

    def on_update(self, update: Update) -> Messages:
        self.state = replace(self.state, last=update.number)
        terms = substitute_now(Term(self.view.plan), update.changes)
        if not terms:
            return ()
        query = Query(str(update.number), update.source, update.number, (Part("", terms),))
        self.state = replace(self.state, open=(*self.state.open, query))
        return (query,)

    def on_answer(self, answer: Answer) -> Messages:
        query, rest = taken(self.state.open, answer)
        self.state = replace(self.state, open=rest)
        return (Install(((VIEW, bag(answer_bag(query.id, ""), self.view.columns)),), self.state.last),)
