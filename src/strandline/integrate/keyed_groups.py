"""Groups whose auxiliary views keep the keys of their relations (Wang et al., section 5.2): complete.

There a delete needs no query: the auxiliary view is at the state before the update, so it holds just the rows that go.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from strandline.algebra.plan import Negate
from strandline.algebra.term import Term
from strandline.integrate.expressions import bag, with_keys
from strandline.integrate.grouped import Grouped, GroupedState
from strandline.integrate.groups import Groups
from strandline.integrate.sweeping import Progress
from strandline.integrate.view import View


class KeyedGroups(Grouped):
    """Groups of which the *special* ones keep keys; the busiest gain most."""

    name: ClassVar[str] = "keyed-groups"

    def __init__(
        self,
        view: View,
        state: GroupedState | None = None,
        *,
        sources: tuple[tuple[str, ...], ...],
        special: tuple[int, ...],
    ) -> None:
        self.special = special
        super().__init__(view, state, sources=sources)

    def _cut(self, view: View, sources: tuple[tuple[str, ...], ...]) -> Groups:
        return Groups(view, sources, self.special)

    def _advanced(self, group: int) -> Progress:
        sweeping, view = self.state.groups[group], self.groups.views[group]
        head, *rest = sweeping.queue
        deleted = view.places(head.update.deletes)
        known = bool(deleted) and all(view.key_outputs(place) is not None for place in deleted)
        if group not in self.special or head.update.inserts or not known:
            return super()._advanced(group)
        gone = Negate(with_keys(bag(self.groups.bag(group), view.columns), view, head.update))
        return Progress(replace(sweeping, queue=tuple(rest)), (), (head.update, (Term(gone),)))
