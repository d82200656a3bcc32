"""SWEEP (Wang et al., section 3.2): several sources, complete in order of arrival, n - 1 queries for each update."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from strandline.algebra.plan import Plan
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.expressions import bag, total
from strandline.integrate.messages import VIEW, Answer, Install, Messages, Update
from strandline.integrate.sweeping import Progress, Sweeping, advanced, answered, arrived
from strandline.integrate.tour import columns
from strandline.sql.statements import Consistency


class Sweep(Algorithm[Sweeping]):
    """One update at a time: its effect is swept together, then installed."""

    name: ClassVar[str] = "sweep"
    promises: ClassVar[Consistency | None] = "COMPLETE"

    def start(self) -> Sweeping:
        return Sweeping()

    def held(self) -> Mapping[str, Plan | None]:
        tour = self.state.tour
        return {} if tour is None else {"T": bag(tour.partial, columns(self.view, tour.joined))}

    def on_update(self, update: Update) -> Messages:
        self.state = arrived(self.view, self.state, update)
        return self._run()

    def on_answer(self, answer: Answer) -> Messages:
        messages = self._take(answered(self.view, self.state, answer))
        return (*messages, *self._run())

    def _run(self) -> Messages:
        messages: Messages = ()
        while self.state.ready:
            messages += self._take(advanced(self.view, self.state))
        return messages

    def _take(self, progress: Progress) -> Messages:
        self.state = progress.sweeping
        if progress.finished is None:
            return progress.messages
        update, effect = progress.finished
        changed = total(effect)
        return (*progress.messages, Install(((VIEW, changed),) if changed is not None else (), update.number))
