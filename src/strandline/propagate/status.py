"""Where a warehouse stands: each view's state, its lag behind each source, its last refresh, its problems."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from strandline.catalog import Catalog, Json, StateEntry
from strandline.engine.delta_log import DeltaLog
from strandline.errors import SourceError
from strandline.ingest.copied import CopiedSource
from strandline.ingest.dumped import DumpedSource
from strandline.ingest.uncopied import UncopiedSource
from strandline.propagate.plan import RefreshPlan
from strandline.propagate.vdag import Vdag
from strandline.sources.protocol import Source
from strandline.store.node import Node


@dataclass(frozen=True)
class ViewStatus:
    """One view."""

    name: str
    state: int | None
    fresh: bool
    behind: Mapping[str, int | None]
    """Transactions of each leaf that the view does not show; None where they cannot be counted."""
    policy: str
    schedule: str | None
    strategy: str | None
    reason: str | None
    refreshed_at: str | None
    seconds: float | None
    problem: str | None


@dataclass(frozen=True)
class SourceStatus:
    """One table of a source that views read."""

    leaf: str
    position: Json
    seen: Json
    note: str | None
    problem: str | None


@dataclass(frozen=True)
class LogStatus:
    """The change log of a source: how far it is taken in, and how much the source keeps for us."""

    source: str
    place: int | None
    retained_bytes: int | None
    problem: str | None
    warning: str | None


@dataclass(frozen=True)
class BaseViewStatus:
    """A base view over tables that are not copied, or an auxiliary view *of* one: a table like any other."""

    name: str
    of: str | None
    reads: tuple[str, ...]
    algorithm: str
    consistency: str
    rows: int | None
    bytes: int | None


@dataclass(frozen=True)
class Status:
    """The whole warehouse."""

    state: int | None
    published_at: str | None
    views: tuple[ViewStatus, ...]
    sources: tuple[SourceStatus, ...]
    logs: tuple[LogStatus, ...]
    base_views: tuple[BaseViewStatus, ...]
    pending: tuple[str, ...]
    """View files that a refresh will apply."""
    notes: tuple[str, ...]
    """What is amiss with files, and no refresh will put right."""
    unfinished: str | None
    costs: Mapping[str, Any]
    """Where the constants of estimates come from: ``costs`` in words, ``calibration`` in numbers, if there is one."""

    def to_dict(self) -> dict[str, Any]:
        """As ``status --json`` prints it."""
        return asdict(self)


def status(
    catalog: Catalog,
    vdag: Vdag,
    sources: Mapping[str, Source],
    plan: RefreshPlan,
    pending: tuple[str, ...],
    notes: tuple[str, ...],
    storage_options: Mapping[str, str],
    costs: Mapping[str, Any],
) -> Status:
    """What the catalog and a look at the sources tell; no Spark job runs."""
    newest = catalog.states.newest()
    leaves: list[SourceStatus] = []
    positions: dict[str, Json] = {}
    problems: dict[str, str] = {}
    for leaf in (*vdag.leaves(), *(node.name for node in vdag.nodes.values() if node.copied)):
        source, table = leaf.split(".", 1)
        record, told = catalog.leaves.get(leaf), None
        try:
            if leaf in vdag.nodes and isinstance(dumped := sources[source], DumpedSource):
                told = _dumped(dumped, catalog, vdag.nodes[leaf], positions, problems)
            else:
                positions[leaf] = sources[source].position(table)
        except (SourceError, KeyError) as error:
            problems[leaf] = error.message if isinstance(error, SourceError) else f"source {source} is not declared"
        seen = record.position if record else None
        note = "; ".join(filter(None, (told, record.note if record else None))) or None
        leaves.append(SourceStatus(leaf, positions.get(leaf), seen, note, problems.get(leaf)))
    views = []
    for node in vdag.nodes.values():
        if node.hidden:
            continue
        entry = newest.entries.get(node.name) if newest else None
        shown = dict(entry.positions) if entry else {}
        behind: dict[str, int | None] = {}
        for leaf in sorted(shown):
            source, table = leaf.split(".", 1)
            if leaf not in positions:
                behind[leaf] = None
            elif shown[leaf] == positions[leaf]:
                behind[leaf] = 0
            else:
                peek = sources[source].peek(table, shown[leaf], positions[leaf])
                behind[leaf] = None if peek.gap else sum(t.changes_data for t in peek.transactions)
        last = _last_refresh(catalog, node.name)
        views.append(
            ViewStatus(
                node.name,
                newest.number if newest and entry else None,
                bool(entry) and not any(count != 0 for count in behind.values()),
                behind,
                node.policy,
                str(node.schedule) if node.schedule else None,
                last.get("strategy"),
                last.get("reason"),
                last.get("at"),
                last.get("seconds"),
                _problem(entry, plan, node.name),
            )
        )
    unfinished = catalog.refreshes.unfinished()
    return Status(
        newest.number if newest else None,
        newest.published_at.isoformat() if newest else None,
        tuple(views),
        tuple(leaves),
        tuple(_log(catalog, s) for s in sources.values() if isinstance(s, CopiedSource | UncopiedSource)),
        tuple(_base_view(catalog, node, storage_options) for node in vdag.nodes.values() if node.base),
        pending,
        notes,
        unfinished.id if unfinished else None,
        costs,
    )


def _dumped(
    source: DumpedSource, catalog: Catalog, node: Node, positions: dict[str, Json], problems: dict[str, str]
) -> str | None:
    """Which dump a table would show, or why not; what is to be said of it."""
    base = catalog.versions.baseline(node.record.id)
    shown = base.positions[node.name] if base else None
    if not source.inner.peekable:
        return "read whole at each refresh"
    coming = source.next(node.name.split(".", 1)[1], shown)
    if coming.problem is not None:
        problems[node.name] = str(coming.problem)
    elif coming.position is not None:
        positions[node.name] = coming.position
    return coming.note


def _base_view(catalog: Catalog, node: Node, storage_options: Mapping[str, str]) -> BaseViewStatus:
    options: Any = node.record.options
    base = catalog.versions.baseline(node.record.id)
    told = (options.get("of"), node.leaves, options["algorithm"], options["consistency"])
    if base is None:
        return BaseViewStatus(node.name, *told, None, None)
    log = DeltaLog(node.path, storage_options)
    return BaseViewStatus(node.name, *told, log.rows(base.version), log.size(base.version).bytes)


def _log(catalog: Catalog, source: CopiedSource | UncopiedSource) -> LogStatus:
    record = catalog.captures.get(source.name)
    if record is None:
        return LogStatus(source.name, None, None, None, None)
    try:
        health = source.inner.health(record.place, record.details)
    except SourceError as error:
        return LogStatus(source.name, record.place, None, f"[{error.code}] {error.message}", None)
    lost = None if health.lost is None else str(health.lost)
    return LogStatus(source.name, record.place, health.retained_bytes, lost, health.warning)


def _problem(entry: StateEntry | None, plan: RefreshPlan, name: str) -> str | None:
    """What keeps a view from its newest state now, or did so at the last refresh."""
    planned = plan.node(name)
    if planned.blocked:
        return str(planned.reason)
    return entry.problem if entry else None


def _last_refresh(catalog: Catalog, view: str) -> dict[str, Any]:
    for step, refresh in ((h.step, h.refresh) for h in catalog.refreshes.history(view, 20)):
        if step.kind in ("install", "recompute") and step.status == "done":
            plan: Any = refresh.plan
            node = next((n for n in plan["views"] if n["name"] == view), None)
            if node is not None:
                at = refresh.finished_at or step.finished_at
                return {
                    "strategy": node["strategy"],
                    "reason": node["reason"]["code"],
                    "at": at.isoformat() if at else None,
                    "seconds": _seconds(catalog, refresh.id, view),
                }
    return {}


def _seconds(catalog: Catalog, refresh_id: str, view: str) -> float:
    return sum(step.seconds or 0.0 for step in catalog.refreshes.steps(refresh_id) if step.view == view)
