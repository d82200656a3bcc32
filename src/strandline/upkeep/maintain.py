"""Maintaining a warehouse: a list of steps, recorded in the catalog like those of a refresh.

Each step looks anew at what there is to do, and does it so that it can be done again: killed anywhere, it is carried on
by whoever takes the lock next. Rows go before the files that they name; a compacted table counts when the catalog says
so, and its old files go after that.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any, Literal, TypeAlias

from strandline.catalog import Json, Lease, Outlived, understanding
from strandline.errors import StrandlineError
from strandline.ingest.trimming import TableLog, many_files, outlived_entries, table_logs, trim
from strandline.propagate.context import Context
from strandline.propagate.progress import Event, Watcher
from strandline.store.node import Node, node_of
from strandline.upkeep.leftovers import Leftover, leftovers, remove
from strandline.upkeep.outlived import outlived
from strandline.upkeep.report import MaintainReport, TableReport
from strandline.upkeep.tables import Tables

Kind: TypeAlias = Literal["purge", "trim", "compact", "vacuum", "clear"]

UPKEEP = "upkeep"
"""What a recorded plan has its steps under if it is one of upkeep."""


@dataclass(frozen=True)
class UpkeepStep:
    """One step: *subject* is a table of the warehouse by its location, or a source table."""

    id: str
    kind: Kind
    subject: str = ""


class Maintenance:
    """Upkeep of one warehouse."""

    def __init__(self, context: Context, keep: timedelta) -> None:
        self._context = context
        self._catalog = context.catalog
        self._keep = keep
        self._now: datetime = context.catalog.clock()
        self._tables = Tables(context.catalog, context.engine, context.keep_states, keep)

    # What there is to do

    def steps(self) -> list[UpkeepStep]:
        """All steps, in their order."""
        purge = self._outlived()
        kept = [node for node in self._nodes() if node.record.id not in purge.views]
        found: list[tuple[Kind, str]] = [("purge", "")]
        found += [("trim", log.name) for log in self._logs().values() if self._worth_trimming(log)]
        found += [("compact", n.record.location) for n in kept if self._tables.needs_compaction(n)]
        found += [("vacuum", node.record.location) for node in kept]
        found.append(("clear", ""))
        plan = uuid.uuid4().hex[:12]
        return [UpkeepStep(f"{plan}-{number:03d}", *step) for number, step in enumerate(found, 1)]

    def would_do(self) -> MaintainReport:
        """What the steps would do now; nothing is changed, and Spark is not started."""
        began, results, problems = time.monotonic(), [], {}
        for step in self.steps():
            try:
                results.append((step, self._look(step)))
            except StrandlineError as error:
                problems[self._named(step)] = f"{error.code}: {error.message}"
        return self._report("", results, problems, time.monotonic() - began, dry_run=True)

    def needs_spark(self, steps: list[UpkeepStep]) -> bool:
        """Whether a step is left to Spark."""
        nodes = {node.record.location: node for node in self._nodes()}
        concerned = [nodes[step.subject] for step in steps if step.subject in nodes]
        return any(self._tables.needs_spark(node) for node in concerned)

    # Doing it

    def begin(self, steps: list[UpkeepStep], lease: Lease) -> str:
        """Record the steps; the id of this upkeep."""
        identity = uuid.uuid4().hex
        listed: list[Json] = [asdict(step) for step in steps]
        rows = [(step.id, step.kind, None) for step in steps]
        self._catalog.refreshes.begin(identity, {UPKEEP: listed}, rows, lease)
        return identity

    def carry_out(self, identity: str, steps: list[UpkeepStep], lease: Lease, watcher: Watcher) -> MaintainReport:
        """Do the steps that are not done yet."""
        began, results, problems = time.monotonic(), [], dict[str, str]()
        records = {record.id: record for record in self._catalog.refreshes.steps(identity)}
        for place, step in enumerate(steps):
            record, event = records[step.id], (step.kind, self._named(step), place, len(steps))
            if record.status == "done":
                results.append((step, dict(record.result)))
                continue
            if record.status == "failed":
                problems[self._named(step)] = record.error or "failed"
                continue
            watcher(Event("started", *event))
            self._catalog.refreshes.step_started(step.id, lease)
            started = time.monotonic()
            try:
                result = self._do(step, lease)
            except Exception as error:
                message = f"{error.code}: {error.message}" if isinstance(error, StrandlineError) else str(error)[:500]
                self._catalog.refreshes.step_failed(step.id, message, lease)
                problems[self._named(step)] = message
                watcher(Event("failed", *event, time.monotonic() - started, message))
                continue
            seconds = time.monotonic() - started
            self._catalog.refreshes.step_done(step.id, result, seconds, lease)
            results.append((step, result))
            watcher(Event("done", *event, seconds, _detail(result)))
        if problems:
            told = "; ".join(f"{name}: {why}" for name, why in problems.items())
            self._catalog.refreshes.fail(identity, told, lease)
        else:
            self._catalog.refreshes.finish(identity, lease)
        return self._report(identity, results, problems, time.monotonic() - began, dry_run=False)

    def _do(self, step: UpkeepStep, lease: Lease) -> dict[str, Any]:
        match step.kind:
            case "purge":
                return dict(self._catalog.purging.purge(self._outlived(), lease))
            case "trim":
                log = self._logs()[step.subject]
                return {"entries": trim(self._catalog, log, self._context.engine.storage_options, lease)}
            case "compact":
                return self._tables.compact(self._node(step), step.id, lease)
            case "vacuum":
                return self._tables.vacuum(self._node(step), lease)
            case "clear":
                found = self._leftovers()
                for leftover in found:
                    remove(leftover, self._context.engine.storage_options)
                return {"folders": [each.path for each in found], "bytes": sum(each.bytes for each in found)}

    def _look(self, step: UpkeepStep) -> dict[str, Any]:
        match step.kind:
            case "purge":
                found = self._outlived()
                rows = {leaf: self._catalog.unit_of_work.since(leaf) for leaf in found.transactions}
                return {
                    "states": len(found.states),
                    "versions": sum(map(len, found.versions.values())),
                    "transactions": sum(
                        row.csn < found.transactions[leaf] for leaf, listed in rows.items() for row in listed
                    ),
                    "views": len(found.views),
                }
            case "trim":
                return {"entries": outlived_entries(self._logs()[step.subject], self._context.engine.storage_options)}
            case "compact":
                return {"files_before": self._tables.small_files(self._node(step)).count, "files": 1}
            case "vacuum":
                node = self._node(step)
                return self._tables.to_vacuum(node, self._outlived().versions.get(node.record.id, ()))
            case "clear":
                left = self._leftovers()
                return {"folders": [each.path for each in left], "bytes": sum(each.bytes for each in left)}

    def _report(
        self,
        identity: str,
        results: list[tuple[UpkeepStep, dict[str, Any]]],
        problems: Mapping[str, str],
        seconds: float,
        *,
        dry_run: bool,
    ) -> MaintainReport:
        tables: dict[str, dict[str, Any]] = {}
        for step, result in results:
            if step.kind == "compact":
                files = {name: result[name] for name in ("files_before", "files")}
                tables.setdefault(self._named(step), {}).update(files)
            elif step.kind == "vacuum":
                tables.setdefault(self._named(step), {})["bytes_freed"] = result["bytes"]
        lost = {self._named(step): result["problem"] for step, result in results if result.get("problem")}
        by_kind = {step.kind: result for step, result in results}
        freed = sum(result.get("bytes") or 0 for _, result in results)
        return MaintainReport(
            identity,
            dry_run,
            {name: TableReport(**table) for name, table in tables.items()},
            {step.subject: result["entries"] for step, result in results if step.kind == "trim"},
            by_kind.get("purge", {}),
            tuple(by_kind.get("clear", {}).get("folders", ())),
            freed,
            seconds,
            problems={**lost, **problems},
        )

    def _leftovers(self) -> list[Leftover]:
        options = self._context.engine.storage_options
        return leftovers(self._catalog, self._context.root, self._now, self._keep, options)

    def _outlived(self) -> Outlived:
        return outlived(self._catalog, self._now - self._keep)

    def _worth_trimming(self, log: TableLog) -> bool:
        options = self._context.engine.storage_options
        return outlived_entries(log, options) > 0 or many_files(log, options)

    def _logs(self) -> dict[str, TableLog]:
        return {log.name: log for log in table_logs(self._catalog)}

    def _nodes(self) -> Iterator[Node]:
        """All tables of which a version counts."""
        for record in self._catalog.views.ever():
            if self._catalog.versions.baseline(record.id) is not None:
                yield node_of(record, self._context.root)

    def _node(self, step: UpkeepStep) -> Node:
        record = next(record for record in self._catalog.views.ever() if record.location == step.subject)
        return node_of(record, self._context.root)

    def _named(self, step: UpkeepStep) -> str:
        """What people call the subject of a step."""
        names = {record.location: record for record in self._catalog.views.ever()}
        record = names.get(step.subject)
        if record is None:
            return step.subject or step.kind
        return record.name if record.dropped_at is None else f"{record.name} (earlier, {record.location})"


def steps_of(plan: Json) -> list[UpkeepStep] | None:
    """The steps of a recorded plan if it is one of upkeep."""
    if not isinstance(plan, dict) or UPKEEP not in plan:
        return None
    listed: Any = plan[UPKEEP]
    with understanding("refreshes", "the plan of the upkeep that is not finished"):
        return [UpkeepStep(**step) for step in listed]


def _detail(result: Mapping[str, Any]) -> str:
    """What a step did, in a few words."""
    told = [f"{result['bytes']:,} bytes freed"] if result.get("bytes") else []
    if "files" in result:
        told.append(f"{result['files_before']} small files, {result['files']} now")
    if "entries" in result:
        told.append(f"{result['entries']:,} entries removed")
    told += [f"{result[what]:,} {what}" for what in ("states", "versions", "transactions", "views") if result.get(what)]
    return ", ".join(told)
