"""How far views are behind their sources, as far as a look tells: what whoever keeps them up to date goes by.

A plan says which views have something to take in; logs and the catalog say since when. No Spark job runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime

from strandline.catalog import StateRecord
from strandline.errors import SourceError
from strandline.ingest.copied import CopiedSource
from strandline.ingest.copies import place_of
from strandline.ingest.dumped import DumpedSource
from strandline.ingest.logged import log_of
from strandline.ingest.uncopied import UncopiedSource
from strandline.propagate.context import Context
from strandline.propagate.leaves import Advanced
from strandline.propagate.plan import NodePlan, RefreshPlan
from strandline.reasons import Reason
from strandline.sources.protocol import Patient, Position, Source
from strandline.sql.schedule import Schedule

LOOK_SECONDS = 2.0
"""How long a look waits for a source that does not answer."""

MAINTAINED = "maintained at"
"""The setting that tells when upkeep was last done."""


@dataclass(frozen=True)
class ViewBehind:
    """One view: whether a refresh would move it, and since when, where that is known.

    *over* are the user's views that it is computed from; *problem* is why it keeps its last state; *refreshed_at* is
    when its table last got a new version.
    """

    name: str
    schedule: Schedule | None
    over: frozenset[str]
    sources: frozenset[str]
    changed: bool
    since: datetime | None
    problem: Reason | None
    refreshed_at: datetime | None


@dataclass(frozen=True)
class SourceBehind:
    """One source with a log: whether that goes on beyond what is taken in, and how much it keeps for us."""

    name: str
    ahead: bool
    retained_bytes: int | None
    problem: str | None


@dataclass(frozen=True)
class Behind:
    """The whole warehouse; *pending* names views whose files are not applied yet."""

    state: int | None
    published_at: datetime | None
    views: tuple[ViewBehind, ...]
    sources: tuple[SourceBehind, ...]
    pending: tuple[str, ...]
    unfinished: bool
    maintained_at: datetime | None


def behind(context: Context, plan: RefreshPlan, found: Advanced, pending: tuple[str, ...]) -> Behind:
    """What *plan*, a look at the sources (*found*) and the catalog tell of the user's views in the plan."""
    catalog = context.catalog
    newest = catalog.states.newest()
    maintained = catalog.settings.get(MAINTAINED)
    return Behind(
        newest.number if newest else None,
        newest.published_at if newest else None,
        tuple(_view(context, node, found, newest) for node in plan.nodes if not node.hidden),
        tuple(_source(context, s) for s in context.sources.values() if isinstance(s, CopiedSource | UncopiedSource)),
        pending,
        catalog.refreshes.unfinished() is not None,
        None if maintained is None else datetime.fromisoformat(maintained),
    )


@contextmanager
def hurried(sources: Mapping[str, Source]) -> Iterator[None]:
    """Within, no source is waited for longer than a look may take."""
    with ExitStack() as stack:
        for source in sources.values():
            inner = source.inner if isinstance(source, CopiedSource | DumpedSource | UncopiedSource) else source
            if isinstance(inner, Patient):
                stack.enter_context(inner.hurried(LOOK_SECONDS))
        yield


def _view(context: Context, planned: NodePlan, found: Advanced, newest: StateRecord | None) -> ViewBehind:
    node = context.vdag.nodes[planned.name]
    below = [context.vdag.nodes[name] for name in context.vdag.with_ancestors([node.name]) if name != node.name]
    over = frozenset(each.name for each in below if not each.hidden)
    leaves = {leaf for each in (node, *below) for leaf in (each.name, *each.inputs) if "." in leaf}
    changed = planned.strategy != "none" and not planned.blocked
    base = context.catalog.versions.baseline(node.record.id)
    return ViewBehind(
        node.name,
        node.schedule,
        over,
        frozenset(leaf.split(".", 1)[0] for leaf in leaves),
        changed,
        _since(context, planned, found, newest) if changed else None,
        planned.reason if planned.blocked else None,
        base.recorded_at if base else None,
    )


def _since(context: Context, planned: NodePlan, found: Advanced, newest: StateRecord | None) -> datetime | None:
    """When the oldest change was committed that a view does not show."""
    below = context.vdag.with_ancestors([planned.name])
    looked = [found.copies[name].peek for name in below if name in found.copies]
    looked += [found.bases[name].peek for name in below if name in found.bases]
    times = [t.committed_at for peek in looked for t in peek.transactions if t.changes_data]
    entry = newest.entries.get(planned.name) if newest else None
    for leaf, shown in (entry.positions if entry else {}).items():
        times += _committed(context, leaf, shown, planned.positions.get(leaf))
    return min((time for time in times if time is not None), default=None)


def _committed(context: Context, leaf: str, shown: Position, upto: Position) -> list[datetime | None]:
    """When changes of a leaf were committed between two positions; of what is in our own log, the first."""
    name, table = leaf.split(".", 1)
    source = context.sources.get(name)
    if source is None or shown == upto or upto is None:
        return []
    if isinstance(source, CopiedSource | UncopiedSource):
        first = context.catalog.unit_of_work.first(leaf, place_of(shown), place_of(upto))
        return [first.committed_at] if first is not None and log_of(shown) == log_of(upto) else []
    try:
        return [t.committed_at for t in source.peek(table, shown, upto).transactions if t.changes_data]
    except SourceError:
        return []


def _source(context: Context, source: CopiedSource | UncopiedSource) -> SourceBehind:
    record = context.catalog.captures.get(source.name)
    if record is None:
        return SourceBehind(source.name, False, None, None)
    try:
        health = source.inner.health(record.place, record.details)
        ahead = health.lost is None and source.inner.end() > record.place
    except SourceError as error:
        return SourceBehind(source.name, False, None, f"{error.code}: {error.message}")
    return SourceBehind(source.name, ahead, health.retained_bytes, None if health.lost is None else str(health.lost))
