"""Published states, and what a view shows in one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from zoneinfo import ZoneInfo

from strandline.catalog import Catalog, Json, StateEntry, StateRecord, damaged
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.errors import RefreshError, StoreError
from strandline.store.node import Node, node_of


@dataclass(frozen=True)
class Published:
    """The states of one warehouse."""

    catalog: Catalog
    engine: Engine
    root: str

    def state(self, number: int | None = None, as_of: str | datetime | None = None) -> StateRecord:
        """The newest state, the one of that number, or the newest that was published by a time."""
        if number is not None and as_of is not None:
            raise RefreshError("BAD_STATE", "give a state number or a time, not both.")
        newest = self.catalog.states.newest()
        if newest is None:
            raise RefreshError("NO_STATE", "nothing has been published yet; run a refresh first.")
        if number is not None:
            found = self.catalog.states.get(number)
        elif as_of is not None:
            found = self.catalog.states.as_of(self._moment(as_of))
        else:
            found = newest
        if found is None:
            oldest = self.catalog.states.all()[-1]
            raise RefreshError(
                "UNKNOWN_STATE",
                f"there is no state {number if number is not None else f'as of {as_of}'}; states go from "
                f"{oldest.number} ({oldest.published_at:%Y-%m-%d %H:%M:%S} UTC) to {newest.number} "
                f"({newest.published_at:%Y-%m-%d %H:%M:%S} UTC).",
            )
        return found

    def entry(self, name: str, state: StateRecord | None) -> StateEntry | None:
        """What a state says of a view; None if the state does not know it."""
        record = self.catalog.views.get(name)
        return state.entries.get(record.name if record else name) if state else None

    def node(self, entry: StateEntry) -> Node:
        """The node that an entry speaks of: perhaps an earlier definition of the view."""
        record = self.catalog.views.by_id(entry.view_id)
        if record is None:
            raise damaged("views", f"row {entry.view_id}", f"is missing: a state shows {entry.view} by it")
        return node_of(record, self.root)

    def select(self, entry: StateEntry) -> str:
        """The rows that an entry shows."""
        return self.node(entry).select(entry.version)

    def require(self, entry: StateEntry, state: StateRecord) -> None:
        """Raise StoreError if what a state shows of a view was removed from outside."""
        node = self.node(entry)
        if not DeltaLog(node.path, self.engine.storage_options).holds_version(entry.version):
            raise files_gone(node, [entry.version], [state.number])

    def require_here(self, entry: StateEntry, state: StateRecord) -> None:
        """:meth:`require`, if the table is on this machine, where it costs little to look."""
        if "://" not in self.root:
            self.require(entry, state)

    def seen(self, node: Node, version: int) -> dict[str, Json]:
        """What a version of a node was computed from, as its query names it: what is hidden is looked through."""
        recorded = [v for v in self.catalog.versions.all(node.record.id) if v.version == version]
        if not recorded:
            row = f"the row of view {node.record.id} ({node.name}) and version {version}"
            raise damaged("view_versions", row, "is missing: the newest state shows it")
        pins = dict(recorded[-1].inputs)
        for name in node.inputs:
            below = self.catalog.views.get(name)
            if below is not None and below.kind in ("block", "base"):
                block = node_of(below, self.root)
                shown = block.pinned_version(pins[name])
                assert shown is not None
                pins = {**self.seen(block, shown), **pins}
        return pins

    def _moment(self, when: str | datetime) -> datetime:
        """A time; without an offset it is in the session's time zone."""
        try:
            moment = datetime.fromisoformat(when) if isinstance(when, str) else when
        except ValueError as error:
            raise RefreshError("BAD_TIME", f"{when!r} is no time; write it like 2026-11-15 09:00.") from error
        if moment.tzinfo is None:
            zone = self.engine.spark.conf.get("spark.sql.session.timeZone") or "UTC"
            moment = moment.replace(tzinfo=ZoneInfo(zone))
        return moment


def files_gone(node: Node, versions: Sequence[int], states: Sequence[int]) -> StoreError:
    """The error for versions whose files somebody removed."""
    shown = f"states {', '.join(map(str, sorted(states)))} show" if states else "no state shows"
    return StoreError(
        "FILES_GONE",
        f"files of {node.name} that are still needed were removed from outside, by a VACUUM that keeps less than "
        f"`keep_states`, say; {shown} what they held (table versions {', '.join(map(str, versions))}), which cannot be "
        "read any more; read a newer state, and refresh the view in full if its newest one is hit.",
    )
