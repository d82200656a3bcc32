"""LCA, lazy compensation (Zhuge et al., section 5.2): complete, one source.

The queries are those of ECA, but each term is tagged with the update whose effect it helps to compute, and answers come
back by tag. ``DELTA_i`` is whole when no open query has a part with tag *i*; then it is exactly what update *i* did to
the view, and is installed alone, in order. Each compensation fixes one more relation, so an update is settled after at
most n - 1 rounds: it never starves. The paper gives the idea in one sentence; tagging is the reading of it that costs
no more messages than ECA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.plan import Plan
from strandline.algebra.term import Sum, Term, substitute_now
from strandline.integrate.algorithm import Algorithm, require_one_source, taken
from strandline.integrate.eca import compensation
from strandline.integrate.expressions import bag, total
from strandline.integrate.messages import VIEW, Answer, Install, Message, Messages, Part, Query, Update, answer_bag
from strandline.integrate.state import part_of_states
from strandline.sql.statements import Consistency


@part_of_states
@dataclass(frozen=True)
class Settling:
    """An update whose effect is not known in full, and what is known of it: ``DELTA_i``."""

    update: Update
    delta: Sum = ()


@part_of_states
@dataclass(frozen=True)
class LcaState:
    """Open queries, their parts tagged by update, and the updates that are not installed, in order."""

    open: tuple[Query, ...] = ()
    queue: tuple[Settling, ...] = ()


class Lca(Algorithm[LcaState]):
    """ECA's queries, tagged; each update's effect is installed on its own."""

    name: ClassVar[str] = "lca"
    promises: ClassVar[Consistency | None] = "COMPLETE"

    def _require(self) -> None:
        require_one_source(self.name, self.view)

    def start(self) -> LcaState:
        return LcaState()

    def held(self) -> Mapping[str, Plan | None]:
        return {f"DELTA_{each.update.number}": total(each.delta) for each in self.state.queue}

    def on_update(self, update: Update) -> Messages:
        parts: dict[str, Sum] = {str(update.number): self._asked(update)}
        for query in self.state.open:
            for part in query.parts:
                extra = tuple(found for term in part.terms for found in compensation(term, update))
                parts[part.tag] = parts.get(part.tag, ()) + extra
        self.state = replace(self.state, queue=(*self.state.queue, Settling(update)))
        for tag, terms in parts.items():
            self._learn(tag, tuple(term for term in terms if term.only_deltas))
        remote = {tag: tuple(term for term in terms if not term.only_deltas) for tag, terms in parts.items()}
        asked = tuple(Part(tag, terms) for tag, terms in remote.items() if terms)
        if not asked:
            return self._drain()
        query = Query(str(update.number), update.source, update.number, asked)
        self.state = replace(self.state, open=(*self.state.open, query))
        return (query, *self._drain())

    def on_answer(self, answer: Answer) -> Messages:
        query, rest = taken(self.state.open, answer)
        self.state = replace(self.state, open=rest)
        for part in query.parts:
            self._learn(part.tag, (Term(bag(answer_bag(query.id, part.tag), self.view.columns)),))
        return self._drain()

    def _asked(self, update: Update) -> Sum:
        """The terms of the update's own effect."""
        return substitute_now(Term(self.view.plan), update.changes)

    def _effect(self, settled: Settling) -> Plan | None:
        """What the update did to the view, now that all is known."""
        return total(settled.delta)

    def _learn(self, tag: str, terms: Sum) -> None:
        queue = tuple(
            replace(each, delta=each.delta + terms) if str(each.update.number) == tag else each
            for each in self.state.queue
        )
        self.state = replace(self.state, queue=queue)

    def _drain(self) -> Messages:
        waited_for = {part.tag for query in self.state.open for part in query.parts}
        messages: list[Message] = []
        while self.state.queue and str(self.state.queue[0].update.number) not in waited_for:
            settled, *rest = self.state.queue
            self.state = replace(self.state, queue=tuple(rest))
            effect = self._effect(settled)
            messages.append(Install(((VIEW, effect),) if effect is not None else (), settled.update.number))
        return tuple(messages)
