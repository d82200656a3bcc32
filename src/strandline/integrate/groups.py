"""A view cut into groups of relations, each with a materialized auxiliary view (Wang et al., section 4.3)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from strandline.algebra.plan import Bag, Join, Plan, Project
from strandline.algebra.term import Sum, Term
from strandline.errors import IntegrateError
from strandline.integrate.expressions import bag, total
from strandline.integrate.messages import VIEW, Install, Update
from strandline.integrate.view import View, column_of


@dataclass(frozen=True)
class Groups:
    """*view* cut by *sources*, the names of the sources of each group.

    A group never splits a source: a transaction of it would be torn. *keyed* groups keep the keys of their relations
    in the auxiliary view.
    """

    view: View
    sources: tuple[tuple[str, ...], ...]
    keyed: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        named = [source for group in self.sources for source in group]
        if sorted(named) != sorted(self.view.sources):
            raise IntegrateError(
                "GROUPS_DO_NOT_FIT",
                f"the groups name {', '.join(named)}, and the view reads {', '.join(self.view.sources)}; "
                "put each source into one group.",
            )

    @cached_property
    def views(self) -> tuple[View, ...]:
        """The auxiliary views: what the whole view, and what joins the groups, names of each group."""
        return tuple(self._view(number) for number in range(len(self.sources)))

    def bag(self, group: int) -> Bag:
        """The bag that holds an auxiliary view."""
        return Bag(f"auxiliary {group}")

    def kept(self) -> Mapping[Bag, Plan]:
        """The auxiliary views, over the relations."""
        return {self.bag(number): view.plan for number, view in enumerate(self.views)}

    def of(self, update: Update) -> int:
        """The group that an update belongs to."""
        return next(number for number, sources in enumerate(self.sources) if update.source in sources)

    def install(self, group: int, update: Update, effect: Sum) -> Install:
        """What an update of the auxiliary view of *group* does to that view and to the whole one, at once."""
        own = total(effect)
        if own is None:
            return Install((), update.number)
        whole = total(tuple(Term(self._joined(group, term.plan), term.sign) for term in effect))
        assert whole is not None
        return Install(((VIEW, whole), (self.bag(group), own)), update.number)

    def _joined(self, group: int, changed: Plan) -> Plan:
        """The delta of the whole view: that of one auxiliary view, joined with the others as they are."""
        others = [bag(self.bag(number), view.columns) for number, view in enumerate(self.views)]
        inputs: Sequence[Plan] = [changed if number == group else other for number, other in enumerate(others)]
        within = {condition for view in self.views for condition in view.conditions}
        across = tuple(condition for condition in self.view.conditions if condition not in within)
        return Project(Join(tuple(inputs), across), self.view.outputs)

    def _view(self, number: int) -> View:
        places = tuple(p for p, home in enumerate(self.view.homes) if home in self.sources[number])
        return self.view.part(places, self._keys(places) if number in self.keyed else ())

    def _keys(self, places: Collection[int]) -> tuple[str, ...]:
        scans = [self.view.scans[place] for place in places]
        return tuple(column_of(scan, name) for scan in scans for name in scan.key)
