"""Groups of sources with auxiliary views (Wang et al., section 4.3): complete in order of arrival.

An update is swept inside its group only; the rest is joined from the auxiliary views, here. One update at a time, as
SWEEP; that is what the paper calls locking the other auxiliary views. A group of one source sends no query at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

from strandline.algebra.plan import Bag, Plan
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
class GroupedState:
    """The group of each update that is not installed, in order of arrival, and each group's own queue."""

    order: tuple[int, ...]
    groups: tuple[Sweeping, ...]


class Grouped(Algorithm[GroupedState]):
    """A sweep inside the group of the update; *sources* are the groups."""

    name: ClassVar[str] = "grouped"
    promises: ClassVar[Consistency | None] = "COMPLETE"

    def __init__(self, view: View, state: GroupedState | None = None, *, sources: tuple[tuple[str, ...], ...]) -> None:
        self.groups = self._cut(view, sources)
        super().__init__(view, state)

    def _cut(self, view: View, sources: tuple[tuple[str, ...], ...]) -> Groups:
        return Groups(view, sources)

    def start(self) -> GroupedState:
        return GroupedState((), tuple(Sweeping() for _ in self.groups.sources))

    def kept(self) -> Mapping[Bag, Plan]:
        return {**super().kept(), **self.groups.kept()}

    def held(self) -> Mapping[str, Plan | None]:
        running = self.state.order[0] if self.state.order else 0
        tour, view = self.state.groups[running].tour, self.groups.views[running]
        return {} if tour is None else {"T": bag(tour.partial, columns(view, tour.joined))}

    def on_update(self, update: Update) -> Messages:
        group = self.groups.of(update)
        self._set(group, arrived(self.groups.views[group], self.state.groups[group], update))
        self.state = replace(self.state, order=(*self.state.order, group))
        return self._run()

    def on_answer(self, answer: Answer) -> Messages:
        if not self.state.order:
            raise unknown_query(answer)
        group = self.state.order[0]
        messages = self._take(group, answered(self.groups.views[group], self.state.groups[group], answer))
        return (*messages, *self._run())

    def _run(self) -> Messages:
        messages: Messages = ()
        while self.state.order and self.state.groups[self.state.order[0]].ready:
            group = self.state.order[0]
            messages += self._take(group, self._advanced(group))
        return messages

    def _advanced(self, group: int) -> Progress:
        return advanced(self.groups.views[group], self.state.groups[group])

    def _take(self, group: int, progress: Progress) -> Messages:
        self._set(group, progress.sweeping)
        if progress.finished is None:
            return progress.messages
        self.state = replace(self.state, order=self.state.order[1:])
        return (*progress.messages, self.groups.install(group, *progress.finished))

    def _set(self, group: int, sweeping: Sweeping) -> None:
        groups = self.state.groups
        self.state = replace(self.state, groups=(*groups[:group], sweeping, *groups[group + 1 :]))
