"""RV, recompute the view (Zhuge et al., Algorithm D.1): after every *s* updates the whole view is asked for.

Each answer is a later state of the source than the one before, so overlapping recomputations are harmless. The last
``k mod s`` updates would never show; ``on_idle`` asks for them, which the printed algorithm does not.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.term import Term
from strandline.integrate.algorithm import Algorithm, require_one_source, taken
from strandline.integrate.expressions import bag, minus
from strandline.integrate.messages import VIEW, Answer, Install, Messages, Part, Query, Update, answer_bag
from strandline.integrate.state import part_of_states
from strandline.integrate.view import View
from strandline.sql.statements import Consistency


@part_of_states
@dataclass(frozen=True)
class RvState:
    """How many updates no recomputation covers yet, and the recomputations under way."""

    count: int = 0
    last: int = 0
    open: tuple[Query, ...] = ()


class Rv(Algorithm[RvState]):
    """``Q_i = V`` after *every* updates; ``MV = A_i``."""

    name: ClassVar[str] = "rv"
    promises: ClassVar[Consistency | None] = "STRONG"

    def __init__(self, view: View, state: RvState | None = None, *, every: int = 1) -> None:
        self.every = every
        super().__init__(view, state)

    def _require(self) -> None:
        require_one_source(self.name, self.view)

    def start(self) -> RvState:
        return RvState()

    def on_update(self, update: Update) -> Messages:
        self.state = replace(self.state, count=self.state.count + 1, last=update.number)
        return self._recompute() if self.state.count == self.every else ()

    def on_answer(self, answer: Answer) -> Messages:
        query, rest = taken(self.state.open, answer)
        self.state = replace(self.state, open=rest)
        columns = self.view.columns
        changed = minus(bag(answer_bag(query.id, ""), columns), bag(VIEW, columns))
        return (Install(((VIEW, changed),), self.state.last),)

    def on_idle(self) -> Messages:
        return self._recompute() if self.restless else ()

    @property
    def restless(self) -> bool:
        return self.state.count > 0

    def _recompute(self) -> Messages:
        last = self.state.last
        query = Query(str(last), self.view.sources[0], last, (Part("", (Term(self.view.plan),)),))
        self.state = replace(self.state, count=0, open=(*self.state.open, query))
        return (query,)
