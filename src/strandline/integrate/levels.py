"""The checker: which levels of consistency a history has (Zhuge et al., section 3.1; Wang et al., section 3).

A history is the view computed on each state of the sources, in order, and the view as it was shown, in order; both
begin with the same state. Any values with equality will do. Levels are checked by order-preserving maps: the literal
definitions of Zhuge et al., by pairs and by value, let histories pass that its prose does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeVar

from strandline.sql.statements import Consistency

Level = Literal["convergence", "weak", "consistency", "strong", "complete"]
LEVELS: tuple[Level, ...] = ("convergence", "weak", "consistency", "strong", "complete")

T = TypeVar("T")
Vector = tuple[int, ...]


@dataclass(frozen=True)
class Verdict:
    """The levels that hold, and for each other one a witness: what is wrong, in words."""

    holds: tuple[Level, ...]
    witnesses: Mapping[Level, str]

    @property
    def reached(self) -> Consistency | None:
        """The best level that a view can be declared with; None if there is none."""
        if "complete" in self.holds:
            return "COMPLETE"
        if "strong" in self.holds:
            return "STRONG"
        return "CONVERGENT" if "convergence" in self.holds else None

    def reaches(self, promised: Consistency) -> bool:
        """Whether the history is as good as *promised*."""
        order: tuple[Consistency | None, ...] = (None, "CONVERGENT", "STRONG", "COMPLETE")
        return order.index(self.reached) >= order.index(promised)


def check(source: Sequence[T], shown: Sequence[T], show: Callable[[T], str] = str) -> Verdict:
    """The levels of a history in which the states of the sources have one order; *show* writes states in witnesses.

    For several sources that is the order in which updates arrived at the warehouse, or a global order of commits.
    """
    alien = next((number for number, state in enumerate(shown) if state not in source), None)
    witnesses: dict[Level, str | None] = {
        "convergence": _convergence(source[-1], shown[-1], show),
        "weak": None if alien is None else f"state {alien}, {show(shown[alien])}, is no state of the source",
        "consistency": _unplaced(source, shown, show),
    }
    witnesses["strong"] = witnesses["consistency"] or witnesses["convergence"]
    witnesses["complete"] = witnesses["strong"] or _unpaired(source, shown, show)
    return _verdict(witnesses)


def _convergence(last: T, shown: T, show: Callable[[T], str]) -> str | None:
    return None if shown == last else f"the last state is {show(shown)}, and the source's last is {show(last)}"


def _unplaced(source: Sequence[T], shown: Sequence[T], show: Callable[[T], str]) -> str | None:
    """The first shown state that cannot be placed after those before it."""
    at = 0
    for number, state in enumerate(shown):
        found = next((place for place in range(at, len(source)) if source[place] == state), None)
        if found is None:
            return f"state {number}, {show(state)}, is not among the source's states from {at} on, reached before it"
        at = found
    return None


def _unpaired(source: Sequence[T], shown: Sequence[T], show: Callable[[T], str]) -> str | None:
    """The first state of the source that is not shown in its turn, given that all shown ones can be placed."""
    theirs, ours = list(_changes(source)), list(_changes(shown))
    for number, (place, wanted) in enumerate(theirs):
        if number >= len(ours) or ours[number][1] != wanted:
            return f"the source's state {place}, {show(wanted)}, is never shown"
    return None


def _changes(states: Sequence[T]) -> Iterator[tuple[int, T]]:
    """The states without repeats of the one before, with their numbers."""
    return ((n, state) for n, state in enumerate(states) if n == 0 or state != states[n - 1])


def check_vectors(
    view_at: Callable[[Vector], T], last: Vector, shown: Sequence[T], show: Callable[[T], str] = str
) -> Verdict:
    """The levels for several sources whose transactions have no common order.

    A state is a vector: how many transactions of each source it has, up to *last*. Any interleaving that keeps each
    source's own order counts. As in Wang et al. every level contains convergence; consistency is strong without it.
    """
    states = {vector: view_at(vector) for vector in product(*(range(n + 1) for n in last))}
    there = list(states.values())
    alien = next((number for number, state in enumerate(shown) if state not in there), None)
    convergence = _convergence(states[last], shown[-1], show)
    missing = None if alien is None else f"state {alien}, {show(shown[alien])}, is no state of the sources"
    witnesses: dict[Level, str | None] = {
        "convergence": convergence,
        "weak": missing or convergence,
        "consistency": _no_front(states, shown, show),
    }
    witnesses["strong"] = witnesses["consistency"] or convergence
    witnesses["complete"] = witnesses["strong"] or _no_path(states, last, shown)
    return _verdict(witnesses)


def _no_front(states: Mapping[Vector, T], shown: Sequence[T], show: Callable[[T], str]) -> str | None:
    """Search for vectors, each at least the one before, on which the view is what was shown."""
    front: list[Vector] | None = None
    for number, state in enumerate(shown):
        at = [vector for vector, value in states.items() if value == state]
        front = [v for v in at if front is None or any(all(a <= b for a, b in zip(f, v, strict=True)) for f in front)]
        if not front:
            return f"state {number}, {show(state)}, is no state of the sources after those shown before"
    return None


def _no_path(states: Mapping[Vector, T], last: Vector, shown: Sequence[T]) -> str | None:
    """Search for a path, one transaction a step, on which the view is what was shown, state by state."""
    wanted = [state for _, state in _changes(shown)]
    start = tuple(0 for _ in last)
    reached = {(start, 0)} if states[start] == wanted[0] else set()
    waiting = list(reached)
    while waiting:
        vector, at = waiting.pop()
        if vector == last and at == len(wanted) - 1:
            return None
        for place in range(len(last)):
            step = (*vector[:place], vector[place] + 1, *vector[place + 1 :])
            for then in (at, at + 1):
                if (
                    step in states
                    and then < len(wanted)
                    and states[step] == wanted[then]
                    and (step, then) not in reached
                ):
                    reached.add((step, then))
                    waiting.append((step, then))
    return "no order of the transactions has just the states that were shown"


def _verdict(witnesses: Mapping[Level, str | None]) -> Verdict:
    return Verdict(
        tuple(level for level in LEVELS if witnesses[level] is None),
        {level: text for level in LEVELS if (text := witnesses[level]) is not None},
    )
