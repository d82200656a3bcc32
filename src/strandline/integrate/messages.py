"""What passes between a maintenance algorithm and whoever runs it, and the names of the bags they speak of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from strandline.algebra.plan import At, Bag, Change, Plan, scans
from strandline.algebra.term import Sum

VIEW = Bag("view")
"""The rows of the view itself, as they are before the event at hand."""


@dataclass(frozen=True)
class Delta:
    """How many rows of a relation a transaction inserts and deletes; an updated row is deleted and inserted."""

    relation: str
    inserted: int
    deleted: int


@dataclass(frozen=True)
class Update:
    """A committed transaction of one source, or one update; *deltas* has the relations of the view that it changes.

    *number* is the warehouse's own and grows in order of arrival; *sequence* is the place of the transaction among
    those of its source. The rows stand for the operands :func:`delta`, :func:`come` and :func:`gone`.
    """

    number: int
    source: str
    sequence: int
    deltas: tuple[Delta, ...]

    @property
    def relations(self) -> tuple[str, ...]:
        return tuple(each.relation for each in self.deltas)

    @property
    def changes(self) -> Mapping[str, Change]:
        """The delta operand of each relation."""
        return {relation: delta(self.number, relation) for relation in self.relations}

    @property
    def inserts(self) -> tuple[str, ...]:
        """The relations that it inserts into."""
        return tuple(each.relation for each in self.deltas if each.inserted)

    @property
    def deletes(self) -> tuple[str, ...]:
        """The relations that it deletes from."""
        return tuple(each.relation for each in self.deltas if each.deleted)


@dataclass(frozen=True)
class Answer:
    """The answer to a query has come; its rows are the bags :func:`answer_bag`.

    *seen* is the sequence number of the last transaction of the source that the answer had seen, where that is known.
    """

    query: str
    seen: int | None = None


@dataclass(frozen=True)
class Part:
    """Terms of a query that are answered by one bag."""

    tag: str
    terms: Sum


@dataclass(frozen=True)
class Query:
    """To be sent to *source* and evaluated there in one state, all parts together; it belongs to update *update*.

    Operands other than relations are bags whose rows go along with the query.
    """

    id: str
    source: str
    update: int
    parts: tuple[Part, ...]

    @property
    def terms(self) -> Sum:
        return tuple(term for part in self.parts for term in part.terms)

    @property
    def literals(self) -> tuple[Bag | Change, ...]:
        """The bags that must go along."""
        found = [scan.operand for term in self.terms for scan in scans(term.plan)]
        return tuple(dict.fromkeys(operand for operand in found if isinstance(operand, Bag | Change)))

    @property
    def relations(self) -> tuple[str, ...]:
        """The relations that are read at the source."""
        found = [scan.operand for term in self.terms for scan in scans(term.plan)]
        return tuple(dict.fromkeys(operand.relation for operand in found if isinstance(operand, At)))


@dataclass(frozen=True)
class Evaluate:
    """Compute *plan*, which reads bags only, into the new bag *into*."""

    into: Bag
    plan: Plan


@dataclass(frozen=True)
class Install:
    """Add each plan's rows to its bag, all at once: the view (``VIEW``), and auxiliary views and copies.

    The plans read the bags as they are before. Afterwards the view shows every update up to *upto*.
    """

    changes: tuple[tuple[Bag, Plan], ...]
    upto: int


Message = Query | Evaluate | Install
Messages = tuple[Message, ...]


def delta(number: int, relation: str) -> Change:
    """The signed rows by which update *number* changes *relation*."""
    return Change(relation, number - 1, number)


def come(number: int, relation: str) -> Bag:
    """The rows that update *number* inserts into *relation*."""
    return Bag(f"come {number} {relation}")


def gone(number: int, relation: str) -> Bag:
    """The rows that update *number* deletes from *relation*."""
    return Bag(f"gone {number} {relation}")


def answer_bag(query: str, tag: str) -> Bag:
    """The answer to one part of a query."""
    return Bag(f"answer {query} {tag}")
