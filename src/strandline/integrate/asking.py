"""How the terms of a query are answered: by a source that is held in one state, or from a version of a table."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from strandline.algebra.bag import SignedBag
from strandline.algebra.plan import At, Bag, Filter, Operand, Plan, Project, Scan, scans
from strandline.algebra.scalar import columns
from strandline.integrate.messages import Query
from strandline.integrate.view import taken_apart
from strandline.integrate.workbench import Table, Workbench
from strandline.sources.questions import HeldSnapshot, Question, Reply


@dataclass(frozen=True)
class Traffic:
    """What was asked of sources and what came back."""

    queries: int = 0
    sent_bytes: int = 0
    fetched_rows: int = 0
    fetched_bytes: int = 0

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(
            self.queries + other.queries,
            self.sent_bytes + other.sent_bytes,
            self.fetched_rows + other.fetched_rows,
            self.fetched_bytes + other.fetched_bytes,
        )


class Answering(Protocol):
    """Answers terms in one state of its relations."""

    traffic: Traffic

    def rows(self, plan: Plan, given: Mapping[Operand, SignedBag]) -> SignedBag:
        """The rows of a select-project-join *plan* over relations and *given* rows."""


class Asks(Protocol):
    """Answers questions in one state of a source."""

    def ask(self, question: Question) -> Reply:
        """Answer in that state."""


class AskedOnce:
    """A held snapshot that several base views ask: a question that one of them has asked is not put again."""

    def __init__(self, held: HeldSnapshot) -> None:
        self._held = held
        self._replies: dict[Hashable, Reply] = {}

    def ask(self, question: Question) -> Reply:
        """Questions are the same if they give the same rows, whatever these are called."""
        read = [
            (given if (given := _given(question, scan)) is not None else scan.operand, scan.alias, scan.fields)
            for scan in question.scans
        ]
        asked = (tuple(read), question.conditions, question.wanted)
        if asked in self._replies:
            return replace(self._replies[asked], fetched_rows=0, fetched_bytes=0, sent_bytes=0, queries=0)
        self._replies[asked] = self._held.ask(question)
        return self._replies[asked]


def _given(question: Question, scan: Scan) -> Hashable | None:
    rows = question.given.get(scan.operand)
    return None if rows is None else frozenset(rows.items())


class HeldSource:
    """A source that is asked itself, in a snapshot that it holds."""

    def __init__(self, held: Asks, bench: Workbench) -> None:
        self._held = held
        self._bench = bench
        self.traffic = Traffic()

    def rows(self, plan: Plan, given: Mapping[Operand, SignedBag]) -> SignedBag:
        """The source joins and selects as far as it can; what it leaves, and the projection, is done here."""
        read, conditions, outputs = taken_apart(plan)
        wanted = dict.fromkeys(name for output in outputs for name in columns(output.value))
        reply = self._held.ask(Question(read, conditions, tuple(wanted), given))
        traffic = Traffic(reply.queries, reply.sent_bytes, reply.fetched_rows, reply.fetched_bytes)
        self.traffic = self.traffic + traffic
        found: Plan = Scan(Bag("reply"), "", reply.columns)
        for condition in reply.left:
            found = Filter(found, condition)
        return self._bench.value(Project(found, outputs), {Bag("reply"): reply.rows}, {})


class VersionedTable:
    """A table of a versioned store at one version; a small one is read once, a large one for each question."""

    def __init__(self, relation: str, table: Table, bench: Workbench) -> None:
        self._relation = At(relation)
        self._table = table
        self._bench = bench
        self._rows: SignedBag | None = None
        self.traffic = Traffic()

    def rows(self, plan: Plan, given: Mapping[Operand, SignedBag]) -> SignedBag:
        """Nothing is read if nothing can come of it."""
        if not all(given.values()):
            return SignedBag()
        if self._rows is None:
            self._rows = self._bench.loaded(self._table)
            self.traffic = self.traffic + Traffic(1, 0, len(self._rows or ()), 0)
        if self._rows is not None:
            return self._bench.value(plan, {**given, self._relation: self._rows}, {})
        found = self._bench.value(plan, given, {self._relation: self._table.signed})
        self.traffic = self.traffic + Traffic(1, 0, len(found), 0)
        return found


def answered(query: Query, source: Answering, given: Mapping[Operand, SignedBag]) -> dict[str, SignedBag]:
    """The answer to each part of a query: the sum of its terms."""
    found = {}
    for part in query.parts:
        total = SignedBag()
        for term in part.terms:
            own = {scan.operand: given[scan.operand] for scan in scans(term.plan) if scan.operand in given}
            rows = source.rows(term.plan, own)
            total = total + rows if term.sign > 0 else total - rows
        found[part.tag] = total
    return found
