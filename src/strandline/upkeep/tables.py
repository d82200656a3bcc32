"""One table of the warehouse put in order: its files joined, its retention set, and old files removed.

Compaction makes a new version that holds the same rows. The catalog then names that one wherever it named the version
before, so that no state and no view needs the files that were joined, and no refresh sees a change.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from strandline.catalog import Catalog, Lease
from strandline.engine import compaction, places
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.propagate.published import files_gone
from strandline.store.node import Node
from strandline.store.tables import make_ready, retention


@dataclass(frozen=True)
class Tables:
    """The tables of a warehouse, whose states are kept for a time."""

    catalog: Catalog
    engine: Engine
    keep_states: str
    keep: timedelta

    def needs_compaction(self, node: Node) -> bool:
        """Whether a table has many small files, or had and the catalog does not know that they were joined."""
        base, log = self.catalog.versions.baseline(node.record.id), self._log(node)
        if base is None or node.record.dropped_at is not None or not log.readable():
            return False
        after = log.commits(base.version, log.version())
        if after is None or not log.holds_version(base.version):
            return False
        return self.small_files(node).many or any(commit.old_files for commit in after)

    def small_files(self, node: Node) -> compaction.SmallFiles:
        """The small files of a table."""
        return compaction.small_files(node.path, self.engine.storage_options)

    def needs_spark(self, node: Node) -> bool:
        """Whether Spark has to do the work."""
        return self._log(node).readable() and compaction.needs_spark(node.path, self.engine.storage_options)

    def compact(self, node: Node, step_id: str, lease: Lease) -> dict[str, Any]:
        """Join the small files of a table; how many there were and are."""
        base = self.catalog.versions.baseline(node.record.id)
        assert base is not None
        make_ready(self.engine, node, base.version, step_id)
        before = self.small_files(node)
        if before.many:
            compaction.compact(self.engine, node.path, step_id)
        head = self._log(node).version()
        if head != base.version:
            self.catalog.purging.rename_version(node.record.id, base.version, head, lease)
        return {"files_before": before.count, "files": self.small_files(node).count, "version": head}

    def to_vacuum(self, node: Node, outlived: Collection[str]) -> dict[str, Any]:
        """What :meth:`vacuum` would do without versions of the steps *outlived*; bytes are None if only Spark knows."""
        problem = self._problem(node)
        if not self._log(node).readable():
            return {"bytes": 0, "problem": problem}
        files = compaction.removable(node.path, self.keep, self._needed(node, outlived), self.engine.storage_options)
        if files is None:
            return {"bytes": None, "problem": problem}
        sizes = {file.path: file.bytes for file in places.files(node.path, self.engine.storage_options)}
        return {"bytes": sum(sizes.get(name, 0) for name in files), "problem": problem}

    def vacuum(self, node: Node, lease: Lease) -> dict[str, Any]:
        """Remove the files of a table that no version needs which counts: bytes freed, and what is wrong with it.

        Spark reads a version that is older than the retention only if it is the newest one. So commits that change no
        rows, as those of this step, leave the catalog naming the newest.
        """
        problem = self._problem(node)
        if not self._log(node).readable():
            return {"bytes": 0, "problem": problem}
        kept = retention(self.keep_states)
        here, wanted = self._log(node).configuration(), {**kept, **node.properties}
        differing = {name: wanted[name] for name in kept if here.get(name) != wanted[name]}
        if differing:
            compaction.set_properties(self.engine, node.path, differing)
        before = self._data_bytes(node)
        compaction.vacuum(self.engine, node.path, self.keep, self._needed(node))
        base, log = self.catalog.versions.baseline(node.record.id), self._log(node)
        assert base is not None
        head = log.version()
        after = log.commits(base.version, head)
        if after and not any(commit.changes_data for commit in after):
            self.catalog.purging.rename_version(node.record.id, base.version, head, lease)
        return {"bytes": before - self._data_bytes(node), "problem": problem}

    def _problem(self, node: Node) -> str | None:
        """What is wrong if a version that counts cannot be read any more."""
        log, lost = self._log(node), []
        for version in sorted(self._needed(node)):
            if log.holds_version(version):
                break
            lost.append(version)
        if not lost:
            return None
        error = files_gone(node, lost, self._states_with(node, lost))
        return f"{error.code}: {error.message}"

    def _needed(self, node: Node, outlived: Collection[str] = ()) -> set[int]:
        """The versions that count."""
        return {v.version for v in self.catalog.versions.all(node.record.id) if v.step_id not in outlived}

    def _states_with(self, node: Node, versions: list[int]) -> list[int]:
        return [
            state.number
            for state in self.catalog.states.all()
            for entry in state.entries.values()
            if entry.view_id == node.record.id and entry.version in versions
        ]

    def _log(self, node: Node) -> DeltaLog:
        return DeltaLog(node.path, self.engine.storage_options)

    def _data_bytes(self, node: Node) -> int:
        """How many bytes the files of a table have, its log apart."""
        found = places.files(node.path, self.engine.storage_options)
        return sum(file.bytes for file in found if not file.path.startswith("_delta_log/"))
