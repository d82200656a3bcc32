"""What all maintenance algorithms are: state machines over events, for one view."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from typing import ClassVar, Generic, TypeVar

from strandline.algebra.plan import Bag, Plan
from strandline.errors import IntegrateError
from strandline.integrate.messages import VIEW, Answer, Messages, Query, Update
from strandline.integrate.view import View
from strandline.sql.statements import Consistency

State = TypeVar("State")


class Algorithm(ABC, Generic[State]):
    """A maintenance algorithm for *view*; *state* is all that it remembers, and its handlers change nothing else."""

    name: ClassVar[str]
    promises: ClassVar[Consistency | None]
    """The level that its published states have, in the order in which updates arrive at the warehouse."""

    def __init__(self, view: View, state: State | None = None) -> None:
        self.view = view
        self._require()
        self.state: State = self.start() if state is None else state

    @abstractmethod
    def start(self) -> State:
        """The state before the first event."""

    @abstractmethod
    def on_update(self, update: Update) -> Messages:
        """What is to be done, in order, now that *update* has arrived."""

    @abstractmethod
    def on_answer(self, answer: Answer) -> Messages:
        """What is to be done, in order, now that *answer* has arrived."""

    def on_idle(self) -> Messages:
        """What is to be done when nothing has happened for a while."""
        return ()

    @property
    def restless(self) -> bool:
        """Whether there is something to be done then."""
        return False

    def kept(self) -> Mapping[Bag, Plan]:
        """The bags that ``Install`` keeps, and what they hold at first, over the relations."""
        return {VIEW: self.view.plan}

    def held(self) -> Mapping[str, Plan | None]:
        """Bags on the way to the view, under the names that the literature has for them; None is the empty bag."""
        return {}

    def _require(self) -> None:
        """Refuse a view that the algorithm cannot maintain."""


def require_one_source(name: str, view: View) -> None:
    """Refuse a view over several sources."""
    if len(view.sources) > 1:
        raise IntegrateError(
            "SEVERAL_SOURCES",
            f"{name} maintains views over one source, and this one reads {', '.join(view.sources)}; "
            "use sweep, grouped, strobe or c-strobe.",
        )


def require_keys(name: str, view: View) -> None:
    """Refuse a view that does not show a key of each relation."""
    missing = [relation for place, relation in enumerate(view.relations) if view.key_outputs(place) is None]
    if missing:
        raise IntegrateError(
            "KEYS_MISSING",
            f"{name} needs a key of every relation in the view's columns, and there is none of "
            f"{', '.join(dict.fromkeys(missing))}; declare it and select it, or use an algorithm without keys.",
        )


def taken(queries: Iterable[Query], answer: Answer) -> tuple[Query, tuple[Query, ...]]:
    """The open query that *answer* is for, and the others."""
    rest = tuple(queries)
    for query in rest:
        if query.id == answer.query:
            return query, tuple(other for other in rest if other is not query)
    raise unknown_query(answer)


def unknown_query(answer: Answer) -> IntegrateError:
    """The error for an answer to nothing."""
    return IntegrateError(
        "UNKNOWN_QUERY", f"an answer names query {answer.query}, which is not open; deliver each answer once."
    )
