"""What a warehouse does not need any more, found in its catalog.

States are kept for a time, the newest for ever. They need the table versions that they show, those need the versions
that they were computed from, and the next refresh needs the last version of every view. All recorded before the first
of these can go, and so can the transactions before the positions that are left.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from strandline.catalog import (
    Catalog,
    Json,
    Outlived,
    StateEntry,
    StateRecord,
    TransactionRecord,
    VersionRecord,
    ViewRecord,
)
from strandline.ingest.uncopied import HISTORY


def outlived(catalog: Catalog, cutoff: datetime) -> Outlived:
    """What can go if states that were published before *cutoff* do."""
    states = catalog.states.all()
    old = tuple(state.number for state in states[1:] if state.published_at < cutoff)
    kept = [state for state in states if state.number not in old]
    views = catalog.views.ever()
    recorded = {view.id: catalog.versions.all(view.id) for view in views}
    first = _Reach(recorded).first(views, kept)
    versions = {view: tuple(r.step_id for r in rows[: first.get(view, len(rows))]) for view, rows in recorded.items()}
    named = {entry.view_id for state in kept for entry in state.entries.values()}
    gone = tuple(v.id for v in views if v.dropped_at is not None and v.id not in first and v.id not in named)
    left = [row for view, rows in recorded.items() for row in rows[first.get(view, len(rows)) :]]
    positions = [row.positions for row in left]
    positions += [entry.positions for state in kept for entry in state.entries.values()]
    return Outlived(
        old,
        {view: steps for view, steps in versions.items() if steps},
        _without_history(recorded, first),
        _transactions(catalog, positions, cutoff),
        gone,
    )


@dataclass(frozen=True)
class _Reach:
    """Which of the recorded versions, by view, are needed."""

    recorded: Mapping[int, Sequence[VersionRecord]]

    def first(self, views: Iterable[ViewRecord], states: Iterable[StateRecord]) -> dict[int, int]:
        """For each view of which versions are needed, the place of the first among those recorded."""
        last = {v.id: len(self.recorded[v.id]) - 1 for v in views if v.dropped_at is None and self.recorded[v.id]}
        todo = list(last.items())
        todo += [found for state in states for entry in state.entries.values() if (found := self._shown(entry))]
        first: dict[int, int] = {}
        while todo:
            view, place = todo.pop()
            before = first.get(view, len(self.recorded[view]))
            if place < before:
                first[view] = place
                pins = [pin for row in self.recorded[view][place:before] for pin in row.inputs.values()]
                todo += [found for pin in pins if (found := self._pinned(pin))]
        return first

    def _shown(self, entry: StateEntry) -> tuple[int, int] | None:
        """The version that a state shows."""
        rows = self.recorded.get(entry.view_id, ())
        same = [n for n, r in enumerate(rows) if (r.version, r.positions) == (entry.version, entry.positions)]
        return (entry.view_id, same[-1]) if same else self._pinned({"view": entry.view_id, "version": entry.version})

    def _pinned(self, pin: Json) -> tuple[int, int] | None:
        """The version that another was computed from."""
        view = pin.get("view") if isinstance(pin, dict) else None
        if not isinstance(pin, dict) or not isinstance(view, int):
            return None
        rows = self.recorded.get(view, ())
        same = [n for n, r in enumerate(rows) if r.version == pin.get("version")]
        return (view, same[-1]) if same else None


def _without_history(
    recorded: Mapping[int, Sequence[VersionRecord]], first: Mapping[int, int]
) -> dict[tuple[int, str], Mapping[str, Json]]:
    """Of each first version that is left, its inputs: single updates since a version that goes cannot be shown."""
    found: dict[tuple[int, str], Mapping[str, Json]] = {}
    for view, place in first.items():
        row = recorded[view][place]
        if place and row.inputs.get(HISTORY) is not None:
            found[(view, row.step_id)] = {**row.inputs, HISTORY: None}
    return found


def _transactions(catalog: Catalog, positions: Sequence[Mapping[str, Json]], cutoff: datetime) -> dict[str, int]:
    """For each leaf the csn before which its transactions can go."""
    found = {}
    for leaf in catalog.leaves.all():
        rows = catalog.unit_of_work.since(leaf.name)
        first = _first_needed(rows, [p[leaf.name] for p in positions if leaf.name in p], cutoff)
        if first:
            found[leaf.name] = rows[first].csn
    return found


def _first_needed(rows: Sequence[TransactionRecord], positions: Sequence[Json], cutoff: datetime) -> int:
    """The place of the first transaction that is needed, or is not old; the last one always stays."""
    places = [_place(position) for position in positions]
    lowest: dict[str, int] = {}
    for log, place in (found for found in places if found is not None):
        lowest[log] = min(place, lowest.get(log, place))
    if None in places or not rows:
        return 0
    for number, row in enumerate(rows):
        where = _place(row.position)
        recent = row.committed_at is not None and row.committed_at >= cutoff
        if where is None or recent or where[1] >= lowest.get(where[0], where[1] + 1):
            return number
    return len(rows) - 1


def _place(position: Json) -> tuple[str, int] | None:
    """The log and the place in it that a position names, or the version of a table."""
    if not isinstance(position, dict):
        return None
    place = position.get("place", position.get("version"))
    return (str(position.get("log", "")), place) if isinstance(place, int) else None
