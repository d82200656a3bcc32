"""Groups that sweep at the same time (Wang et al., section 5.1): complete in order of arrival.

Phase 1: each group runs SWEEP on its own updates; it never reads its auxiliary view, which may lag behind. Phase 2:
finished effects are combined in order of arrival, one after another. (The paper leaves open when phase 2 runs.
Combining whatever is ready is right only for an order of the warehouse's own making; arrival order costs nothing.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.plan import Bag, Plan
from strandline.algebra.term import Sum
from strandline.integrate.algorithm import Algorithm, unknown_query
from strandline.integrate.expressions import bag
from strandline.integrate.groups import Groups
from strandline.integrate.messages import Answer, Messages, Update
from strandline.integrate.state import part_of_states
from strandline.integrate.sweeping import Progress, Sweeping, advanced, answered, arrived
from strandline.integrate.tour import columns
from strandline.integrate.view import View
from strandline.sql.statements import Consistency


@part_of_states
@dataclass(frozen=True)
class Finished:
    """The effect of an update on the auxiliary view of its group."""

    group: int
    update: Update
    effect: Sum


@part_of_states
@dataclass(frozen=True)
class ParallelState:
    """The numbers of the updates that are not installed, in order; each group's sweep; effects not yet combined."""

    order: tuple[int, ...]
    groups: tuple[Sweeping, ...]
    done: tuple[Finished, ...] = ()


class ParallelGroups(Algorithm[ParallelState]):
    """Sweeps of all groups at once, combined in order of arrival; *sources* are the groups."""

    name: ClassVar[str] = "parallel-groups"
    promises: ClassVar[Consistency | None] = "COMPLETE"

    def __init__(self, view: View, state: ParallelState | None = None, *, sources: tuple[tuple[str, ...], ...]) -> None:
        self.groups = Groups(view, sources)
        super().__init__(view, state)

    def start(self) -> ParallelState:
        return ParallelState((), tuple(Sweeping() for _ in self.groups.sources))

    def kept(self) -> Mapping[Bag, Plan]:
        return {**super().kept(), **self.groups.kept()}

    def held(self) -> Mapping[str, Plan | None]:
        tours = [(k, s.tour) for k, s in enumerate(self.state.groups)]
        views = self.groups.views
        return {f"T_{k + 1}": bag(t.partial, columns(views[k], t.joined)) for k, t in tours if t is not None}

    def on_update(self, update: Update) -> Messages:
        group = self.groups.of(update)
        self._set(group, arrived(self.groups.views[group], self.state.groups[group], update))
        self.state = replace(self.state, order=(*self.state.order, update.number))
        return (*self._run(group), *self._combine())

    def on_answer(self, answer: Answer) -> Messages:
        for group, sweeping in enumerate(self.state.groups):
            if sweeping.tour is not None and sweeping.tour.query == answer.query:
                messages = self._take(group, answered(self.groups.views[group], sweeping, answer))
                return (*messages, *self._run(group), *self._combine())
        raise unknown_query(answer)

    def _run(self, group: int) -> Messages:
        messages: Messages = ()
        while self.state.groups[group].ready:
            messages += self._take(group, advanced(self.groups.views[group], self.state.groups[group]))
        return messages

    def _take(self, group: int, progress: Progress) -> Messages:
        self._set(group, progress.sweeping)
        if progress.finished is not None:
            self.state = replace(self.state, done=(*self.state.done, Finished(group, *progress.finished)))
        return progress.messages

    def _set(self, group: int, sweeping: Sweeping) -> None:
        groups = self.state.groups
        self.state = replace(self.state, groups=(*groups[:group], sweeping, *groups[group + 1 :]))

    def _combine(self) -> Messages:
        """Install, in order of arrival, what is finished."""
        messages: Messages = ()
        while (first := self._combinable()) is not None:
            left = tuple(each for each in self.state.done if each is not first)
            order = tuple(number for number in self.state.order if number != first.update.number)
            self.state = replace(self.state, order=order, done=left)
            messages = (*messages, self.groups.install(first.group, first.update, first.effect))
        return messages

    def _combinable(self) -> Finished | None:
        """The finished effect whose turn it is."""
        return next((each for each in self.state.done if each.update.number == self.state.order[0]), None)
