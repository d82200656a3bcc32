"""Notes of a refresh under way, from which its profile is made: what threads did when, and what steps read and wrote.

They are taken by the threads that do the work, and cost next to nothing: numbers that Spark and Delta keep anyway. What
goes wrong with them is left out; no step fails for its notes.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from strandline.engine import files
from strandline.engine.delta_log import DeltaLog
from strandline.engine.metrics import Metrics, Scanned
from strandline.engine.statistics import Files, TableSize
from strandline.propagate.context import Context
from strandline.propagate.plan import NodePlan, SharedDelta, Step
from strandline.propagate.timeline import divided, part_of, seconds, shared
from strandline.propagate.touched import Place, equal_columns, meeting
from strandline.stopwatch import Span, Stopwatch, now

MOST_KEYS = 100_000
"""Of changes with more rows it is not looked up which files hold their keys."""


class Recorder:
    """The notes of one refresh; *stopwatch* is that of the thread which runs it.

    *nodes* and *shares* are those of its plan: before there is one, none.
    """

    def __init__(
        self,
        context: Context,
        stopwatch: Stopwatch,
        nodes: Iterable[NodePlan] = (),
        shares: Iterable[SharedDelta] = (),
    ) -> None:
        self._context = context
        self._stopwatch = stopwatch
        self._changed = {node.name: node.changed for node in nodes}
        self._shares = {shared.name: shared for shared in shares}
        self._moments: dict[str, dict[str, float]] = {}
        self._deltas: dict[str, list[str]] = {}
        self._names: dict[str, str] | None = None
        self._files: dict[tuple[str, int], Files] = {}
        self._keys: dict[tuple[str, str], Sequence[Any] | None] = {}

    def note(self, what: str, step: Step) -> None:
        """That a step is *ready*, as all it waits for has ended, that it *began*, *ended*, or was *recorded*."""
        self._moments.setdefault(step.id, {}).setdefault(what, now())

    def note_taken_in(self, step: Step, moments: Mapping[str, float]) -> None:
        """That a step which was carried out before the plan was made is *taken up* now, and the *moments* of that.

        Where a refresh is resumed they lie before all that its stopwatch has seen, as those of steps that were done.
        """
        if min(moments.values()) >= self._stopwatch.began:
            self._moments[step.id] = dict(moments)
        self.note("taken up", step)

    def made(self, step: Step, result: Mapping[str, Any]) -> None:
        """What a step stored for those after it; a delta without rows has no keys, and may have no files."""
        if "path" in result:
            stored = self._deltas.setdefault(step.subject, [])
            stored += [result["path"]] if result["inserted"] + result["deleted"] else []

    def ended(self, spans: Iterable[Span], metrics: Metrics | None) -> list[Span]:
        """What the thread of a step did; without *metrics* it is not known what Spark did."""
        found = divided(spans, metrics.ran if metrics is not None else None)
        self._stopwatch.beside(found)
        return found

    def of_step(self, step: Step, metrics: Metrics, result: Mapping[str, Any], stopwatch: Stopwatch) -> dict[str, Any]:
        """The profile of a step that is done, as it is stored with its result; what is not known is left out."""
        told: dict[str, Any] = {}
        with contextlib.suppress(Exception):
            told["read"] = self._read(step, metrics)
        with contextlib.suppress(Exception):
            told["wrote"] = self._wrote(step, result)
        spent = seconds(self.ended(stopwatch.spans(), metrics))
        return {"seconds": _rounded(spent)} | {what: found for what, found in told.items() if found is not None}

    def of_refresh(self) -> dict[str, Any]:
        """The profile of the refresh but for its steps, as it is stored with it; what comes after it is not counted."""
        began, own = self._stopwatch.began, self._stopwatch.spans()
        ended = own[-1].end
        planning: dict[str, float] = {}
        for span in own:
            if part_of(span) == "planning":
                planning[span.work] = planning.get(span.work, 0.0) + span.end - span.start
        parts = shared([own, *self._stopwatch.others()], began, ended)
        self._stopwatch.restart()
        return {
            "seconds": round(ended - began, 3),
            "parts": _rounded(parts),
            "planning": _rounded(planning),
            "steps": {
                step: {what: round(moment - began, 3) for what, moment in moments.items()}
                for step, moments in self._moments.items()
            },
        }

    # What was read

    def _read(self, step: Step, metrics: Metrics) -> list[dict[str, Any]] | None:
        """Of each table, how much of its files was read, and how many hold touched keys; None if no scan is known."""
        if metrics.files_read is None and not metrics.scans:
            return None
        versions: dict[str, list[Files]] = {}
        for path, version in metrics.tables:
            versions.setdefault(path, []).append(self._files_of(path, version))
        stored = {path: f"changes of {name}" for name, paths in self._deltas.items() for path in paths}
        by_path: dict[str, list[Scanned]] = {path: [] for path in (*versions, *stored)}
        for scan in metrics.scans:
            place = next((path for path in by_path if _below(scan.path, path)), None)
            if place is not None:
                by_path[place].append(scan)
        found = []
        for path, scans in by_path.items():
            if not scans:
                continue
            name = stored.get(path) or self._name(path)
            told: dict[str, Any] = {
                "table": name,
                "scans": len(scans),
                "files": sum(scan.files for scan in scans),
                "bytes": sum(scan.bytes for scan in scans),
                "rows": sum(scan.rows for scan in scans),
            }
            if path in versions:
                whole = [_read_version(versions[path], scan) for scan in scans]
                held = {there: self._holding(step, name, there) for there in set(whole)}
                holding = [held[there] for there in whole]
                told |= {"of_files": sum(each.count for each in whole), "of_bytes": sum(each.bytes for each in whole)}
                known = [size for size in holding if size is not None]
                if len(known) == len(holding):
                    told |= {"holding": sum(size.files for size in known)}
                    told |= {"holding_bytes": sum(size.bytes for size in known)}
            found.append(told)
        return found

    def _holding(self, step: Step, name: str, there: Files) -> TableSize | None:
        """The files of a table that hold keys which changes touch; None if that cannot be told.

        Of changes that no step stored, keys are not known.
        """
        pairs = list(self._meeting(step, name))
        held: set[int] = set()
        for column, (changed_table, changed_column) in pairs:
            if changed_table not in self._deltas:
                return None
            for path in self._deltas[changed_table]:
                keys = self._values(path, changed_column)
                places = None if keys is None else there.holding(column, keys)
                if places is None:
                    return None
                held |= places
        return there.sized(held) if pairs else None

    def _meeting(self, step: Step, table: str) -> Iterator[tuple[str, Place]]:
        """By which columns rows of *table* meet changed rows in a step, each with the column of these."""
        node = self._context.vdag.nodes.get(step.subject)
        if step.kind == "compute" and node is not None and node.block is not None:
            yield from meeting(equal_columns(node.block.body), table, self._changed[node.name])
        elif step.kind == "install" and node is not None and table == node.name and node.key:
            yield node.key[0], (node.name, node.key[0])
        elif step.kind == "share":
            shared = self._shares[step.subject]
            yield from meeting(equal_columns(shared.join.plan), table, shared.changed)

    def _values(self, path: str, column: str) -> Sequence[Any] | None:
        if (path, column) not in self._keys:
            options = self._context.engine.storage_options
            self._keys[(path, column)] = files.values(path, column, MOST_KEYS, options)
        return self._keys[(path, column)]

    def _files_of(self, path: str, version: int) -> Files:
        if (path, version) not in self._files:
            self._files[(path, version)] = DeltaLog(path, self._context.engine.storage_options).files(version)
        return self._files[(path, version)]

    def _name(self, path: str) -> str:
        """What a table is called."""
        if self._names is None:
            leaves = {leaf.location: leaf.name for leaf in self._context.catalog.leaves.all() if leaf.location}
            self._names = leaves | {node.path: node.name for node in self._context.vdag.nodes.values()}
        return self._names.get(path, path)

    # What was written

    def _wrote(self, step: Step, result: Mapping[str, Any]) -> list[dict[str, Any]] | None:
        """The commits of a step, with the times that the writer counted; None if the log has them no longer."""
        version, node = result.get("version"), self._context.vdag.nodes.get(step.subject)
        if version is None or node is None or result.get("install") == "none":
            return []
        log = DeltaLog(node.path, self._context.engine.storage_options)
        commits = log.commits(max(version - 2, -1), version)
        if commits is None:
            return None
        return [
            {
                "version": commit.version,
                "operation": commit.operation,
                "files_added": commit.files_added,
                "files_removed": commit.files_removed,
                "bytes_added": commit.bytes_added,
                "milliseconds": {name: value for name, value in commit.metrics.items() if name.lower().endswith("ms")},
            }
            for commit in commits
            if (commit.step_id or "").endswith(step.id)
        ]


def _read_version(versions: Sequence[Files], scan: Scanned) -> Files:
    """The version that a scan read: which one it was is not told, but it cannot have fewer files than were read."""
    ordered = sorted(versions, key=lambda files: files.count)
    return next((files for files in ordered if files.count >= scan.files), ordered[-1])


def _below(path: str, folder: str) -> bool:
    path, folder = (f"{parts.netloc}{parts.path}" for parts in map(urlsplit, (path, folder)))
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _rounded(found: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in found.items()}
