"""A network of sources and one warehouse, to be run in any order of events that its channels allow.

Sources commit transactions and report them, and answer queries in the state that they are in; a query is answered whole
in one state. Each source has one FIFO channel to the warehouse, for notices and answers, and one back. With *split*
channels notices and answers overtake each other, and answers say what they have seen.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from strandline.algebra.bag import SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Operand
from strandline.algebra.term import Term
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.memory import Memory, Rows, Sent

Kind = Literal["commit", "serve", "notice", "answer"]
Action = tuple[Kind, str]
"""A source commits, a source answers a query, the warehouse takes a notice or an answer of a source."""


@dataclass(frozen=True)
class Answered:
    """An answer on its way."""

    sent: Sent
    rows: Mapping[str, SignedBag]
    seen: int


@dataclass(frozen=True)
class Notice:
    """A transaction on its way."""

    sequence: int
    deltas: Rows


@dataclass
class Site:
    """A source: its relations, what it has still to commit, and its channels."""

    relations: dict[str, SignedBag]
    script: deque[Rows]
    committed: int = 0
    queries: deque[Sent] = field(default_factory=deque)
    outgoing: deque[Notice | Answered] = field(default_factory=deque)


@dataclass
class Traffic:
    """What went over the network; bytes are those of rows, before plus and minus cancel (Zhuge et al., section 6)."""

    queries: int = 0
    answers: int = 0
    terms: int = 0
    rows: int = 0

    @property
    def messages(self) -> int:
        return self.queries + self.answers


class Network:
    """*relations* at first, and what each source commits: *scripts*, lists of transactions by source."""

    def __init__(
        self,
        algorithm: Algorithm[Any],
        relations: Rows,
        scripts: Mapping[str, Sequence[Rows]],
        *,
        split: bool = False,
    ) -> None:
        view = algorithm.view
        self.warehouse = Memory(algorithm, relations)
        self.split = split
        homes = dict(zip(view.relations, view.homes, strict=True))
        self.sites = {
            source: Site({r: relations[r] for r in homes if homes[r] == source}, deque(scripts.get(source, ())))
            for source in view.sources
        }
        self.traffic = Traffic()
        self._arrived: list[Rows] = [{relation: relations[relation] for relation in homes}]
        self._arrivals: list[SignedBag] = []

    @property
    def arrivals(self) -> list[SignedBag]:
        """The view at first and after each update, in order of arrival at the warehouse."""
        self._arrivals += [self._view_of(rows) for rows in self._arrived[len(self._arrivals) :]]
        return self._arrivals

    @property
    def current(self) -> SignedBag:
        """The view after the updates that have arrived: the last of :attr:`arrivals`."""
        return self._view_of(self._arrived[-1])

    def actions(self) -> list[Action]:
        """What can happen next."""
        found: list[Action] = []
        for name, site in self.sites.items():
            if site.script:
                found.append(("commit", name))
            if site.queries:
                found.append(("serve", name))
            if self._next(site, Notice) is not None:
                found.append(("notice", name))
            if self._next(site, Answered) is not None:
                found.append(("answer", name))
        return found

    def do(self, action: Action) -> Notice | Answered:
        """Let *action* happen; what was sent or taken."""
        kind, name = action
        site = self.sites[name]
        match kind:
            case "commit":
                return self._commit(site)
            case "serve":
                return self._serve(site)
            case _:
                return self._take(name, site, Notice if kind == "notice" else Answered)

    def settle(self) -> bool:
        """All is quiet: let the warehouse do what it does then, and say whether that started something."""
        sent = self.warehouse.idle()
        self._send(sent)
        return bool(sent)

    def _commit(self, site: Site) -> Notice:
        deltas = site.script.popleft()
        site.committed += 1
        for relation, rows in deltas.items():
            site.relations[relation] = site.relations[relation] + rows
        notice = Notice(site.committed, deltas)
        site.outgoing.append(notice)
        return notice

    def _serve(self, site: Site) -> Answered:
        sent = site.queries.popleft()
        rows = {part.tag: self._sum(site, sent, part.terms) for part in sent.query.parts}
        answered = Answered(sent, rows, site.committed)
        site.outgoing.append(answered)
        self.traffic.answers += 1
        return answered

    def _sum(self, site: Site, sent: Sent, terms: Sequence[Term]) -> SignedBag:
        result = SignedBag()
        for term in terms:
            found = evaluate(term.plan, lambda operand: _at_source(operand, site, sent))
            self.traffic.rows += sum(abs(count) for count in found.values())
            result = result + found if term.sign > 0 else result - found
        return result

    def _take(self, name: str, site: Site, kind: type[Notice] | type[Answered]) -> Notice | Answered:
        message = self._next(site, kind)
        assert message is not None, f"no {kind.__name__} of {name} can be taken now"
        site.outgoing.remove(message)
        if isinstance(message, Notice):
            now = self._arrived[-1]
            news = {relation: now[relation] + rows for relation, rows in message.deltas.items() if relation in now}
            self._arrived.append({**now, **news})
            self._send(self.warehouse.update(name, message.sequence, message.deltas))
        else:
            seen = message.seen if self.split else None
            self._send(self.warehouse.answer(message.sent.query.id, message.rows, seen))
        return message

    def _next(self, site: Site, kind: type[Notice] | type[Answered]) -> Notice | Answered | None:
        """The first message of *kind*; with one channel, only if it is the first of all."""
        among = site.outgoing if self.split else list(site.outgoing)[:1]
        return next((message for message in among if isinstance(message, kind)), None)

    def _send(self, sent: Sequence[Sent]) -> None:
        for each in sent:
            self.sites[each.query.source].queries.append(each)
            self.traffic.queries += 1
            self.traffic.terms += len(each.query.terms)

    def _view_of(self, relations: Rows) -> SignedBag:
        def rows(operand: Operand) -> SignedBag:
            assert isinstance(operand, At)
            return relations[operand.relation]

        return evaluate(self.warehouse.algorithm.view.plan, rows)


def _at_source(operand: Operand, site: Site, sent: Sent) -> SignedBag:
    return site.relations[operand.relation] if isinstance(operand, At) else sent.literals[operand]
