"""Every state of the sources, for views that are declared CONSISTENCY COMPLETE: also those between published states.

A base view's version has, beside its rows, what each single transaction since the version before did to them, in the
order of arrival. A view that is a selection and projection of that base view can be read after any of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from strandline.algebra.plan import Change, Filter, Net, Plan, Project, Scan
from strandline.algebra.schema import names
from strandline.catalog import Catalog, StateEntry, StateRecord, VersionRecord
from strandline.engine import tables
from strandline.errors import RefreshError
from strandline.ingest.uncopied import FILLED, HISTORY
from strandline.integrate.advance import UPDATE
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN, render
from strandline.store.node import Node


@dataclass(frozen=True)
class Shown:
    """A transaction that a published state is the first to show: *number* counts from 1 within the state."""

    state: int
    number: int
    source: str
    place: int


@dataclass(frozen=True)
class Transactions:
    """The transactions between published states, as a view that keeps them shows them."""

    catalog: Catalog

    def of(self, view: Node, base: Node) -> list[Shown]:
        """The transactions of all states, in the order of arrival."""
        found = []
        for state in sorted(self.catalog.states.all(), key=lambda state: state.number):
            if view.name in state.entries:
                updates = [update for version in self._since(base, state) for update in _updates(version)]
                found += [Shown(state.number, n, source, place) for n, (source, place) in enumerate(updates, 1)]
        return found

    def select(self, view: Node, base: Node, state: StateRecord, number: int) -> str:
        """The rows of a view after so many of the transactions that *state* is the first to show."""
        versions = self._since(base, state)
        most = sum(len(_updates(version)) for version in versions)
        if not 0 <= number <= most or not versions:
            raise RefreshError(
                "UNKNOWN_TRANSACTION",
                f"state {state.number} is the first to show {most} transactions of {view.name}; there is no number "
                f"{number} among them.",
            )
        before = tables.select(base.path, self._before(base, versions[0]).version, base.stored)
        parts = [f"SELECT *, 1 AS {SIGN} FROM ({before})"]
        shown = quoted_list((*names(base.stored), SIGN))
        for version in versions:
            path, count = str(_history(version)["path"]), len(_updates(version))
            parts.append(f"SELECT {shown} FROM parquet.{quoted(path)} WHERE {UPDATE} <= {max(0, min(number, count))}")
            number -= count
        changes = " UNION ALL ".join(parts)
        rows = render(Net(Scan(Change(base.name), "", base.stored)), lambda _: changes, signed=True)
        assert view.block is not None

        def bound(scan: Scan) -> str:
            return f"SELECT {quoted_list(names(scan.fields))} FROM ({rows}) WHERE {SIGN} > 0"

        return render(view.reading(view.block.contents), bound)

    def _since(self, base: Node, state: StateRecord) -> list[VersionRecord]:
        """The recorded versions of a base view that came with a state, as far as they keep transactions.

        What was before a version that was filled from the tables themselves leads nowhere.
        """
        recorded = list(self.catalog.versions.all(base.record.id))
        earlier = [s for s in self.catalog.states.all() if s.number < state.number and base.name in s.entries]
        last = max(earlier, key=lambda s: s.number, default=None)
        first = 0 if last is None else _place(recorded, last.entries[base.name]) + 1
        versions = recorded[first : _place(recorded, state.entries[base.name]) + 1]
        filled = max((place for place, version in enumerate(versions) if version.inputs.get(FILLED)), default=0)
        return [version for version in versions[filled:] if _updates(version)]

    def _before(self, base: Node, version: VersionRecord) -> VersionRecord:
        recorded = list(self.catalog.versions.all(base.record.id))
        return recorded[recorded.index(version) - 1]


def _place(recorded: Sequence[VersionRecord], entry: StateEntry) -> int:
    """Which of the recorded versions a state shows; an update without effect leaves the table's version as it is."""
    shown = [(version.version, version.positions) for version in recorded]
    return len(shown) - 1 - shown[::-1].index((entry.version, entry.positions))


def shows_every_state(body: Plan) -> bool:
    """Whether a view over a base view can be read after each transaction: it selects and projects its rows."""
    while isinstance(body, Project | Filter):
        body = body.input
    return isinstance(body, Scan)


def _history(version: VersionRecord) -> dict[str, Any]:
    found = version.inputs.get(HISTORY)
    return found if isinstance(found, dict) else {"updates": []}


def _updates(version: VersionRecord) -> list[tuple[str, int]]:
    return [(str(source), int(place)) for source, place in _history(version)["updates"]]
