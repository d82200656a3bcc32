"""Visiting relations one after another, with a partial answer that each visit joins with one more relation.

Strobe, C-Strobe and SWEEP share this; they differ in what they do about updates that were seen on the way. A source
that holds several relations is visited once for each: an answer that joined two of them could not be compensated from
what the warehouse holds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from strandline.algebra.plan import At, Bag, Change, Join, Negate, Operand, Plan, Project, UnionAll
from strandline.algebra.schema import Schema
from strandline.algebra.term import Term
from strandline.integrate.expressions import bag
from strandline.integrate.messages import Evaluate, Part, Query, answer_bag
from strandline.integrate.state import part_of_states
from strandline.integrate.view import View

Literal = Bag | Change
"""What stands at a place instead of its relation."""


@part_of_states
@dataclass(frozen=True)
class Tour:
    """A partial answer on its way; *joined* has the places in it, and *visiting* the one that was asked last."""

    id: str
    update: int
    literals: tuple[tuple[int, Literal], ...]
    joined: tuple[int, ...]
    partial: Bag
    visiting: int | None = None

    @property
    def query(self) -> str:
        """The id of the query that is under way."""
        return f"{self.id}/{self.visiting}"


def depart(view: View, name: str, update: int, literals: Mapping[int, Literal]) -> tuple[Tour, Evaluate]:
    """A tour that begins with the product of *literals*, and what computes that."""
    places = tuple(literals)
    scans = tuple(view.scan(place, literal) for place, literal in literals.items())
    tour = Tour(name, update, tuple(literals.items()), places, Bag(f"T {name}"))
    return tour, Evaluate(tour.partial, Join(scans, view.conditions_within(places)))


def next_place(view: View, tour: Tour) -> int | None:
    """The place to visit next: to the left, then to the right, and first those that a condition ties to the tour."""
    origin = tour.joined[0]
    order = [*range(origin - 1, -1, -1), *range(origin + 1, len(view.scans))]
    left = [place for place in order if place not in tour.joined]
    tied = [place for place in left if view.connected(tour.joined, place)]
    return next(iter(tied or left), None)


def visit(view: View, tour: Tour, place: int) -> tuple[Tour, Query]:
    """Ask the source at *place* for the partial answer joined with its relation."""
    tour = replace(tour, visiting=place)
    term = Term(_step(view, tour, At(view.relations[place])))
    return tour, Query(tour.query, view.homes[place], tour.update, (Part("", (term,)),))


def absorb(view: View, tour: Tour, contaminating: Collection[Operand]) -> tuple[Tour, Evaluate]:
    """Take the answer in, less what deltas that must not be in it have contributed."""
    assert tour.visiting is not None
    joined = (*tour.joined, tour.visiting)
    answer: Plan = bag(answer_bag(tour.query, ""), columns(view, joined))
    off = [Negate(_step(view, tour, operand)) for operand in contaminating]
    after = replace(tour, joined=joined, partial=Bag(f"T {tour.query}"), visiting=None)
    return after, Evaluate(after.partial, UnionAll((answer, *off)) if off else answer)


def result(view: View, tour: Tour) -> Plan:
    """What a tour that is at its end contributes to the view."""
    return Project(bag(tour.partial, columns(view, tour.joined)), view.outputs)


def columns(view: View, joined: Collection[int]) -> Schema:
    """The columns of a partial answer."""
    return tuple(column for place in joined for column in view.scans[place].columns)


def _step(view: View, tour: Tour, operand: Operand) -> Plan:
    """The partial answer joined with *operand* in the place that is visited."""
    assert tour.visiting is not None
    done = view.conditions_within(tour.joined)
    now = tuple(c for c in view.conditions_within((*tour.joined, tour.visiting)) if c not in done)
    return Join((bag(tour.partial, columns(view, tour.joined)), view.scan(tour.visiting, operand)), now)
