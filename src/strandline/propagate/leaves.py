"""The first phase of a refresh: sources are captured or looked at, and tables read anew where they must be.

What it reaches is what the plan of the second phase pins.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from strandline.catalog import Lease
from strandline.errors import SourceError
from strandline.ingest.advance import DOWN, CopyState, problem_of, survey, take_in_copies
from strandline.ingest.capture import Captured
from strandline.ingest.copied import CopiedSource
from strandline.ingest.dumped import DumpedSource
from strandline.ingest.dumps import survey_dumps
from strandline.integrate.advance import Integrated
from strandline.propagate import base_views
from strandline.propagate.base_views import BaseState
from strandline.propagate.context import Context
from strandline.propagate.plan import SMALL_BYTES, NodePlan, RefreshPlan, Step
from strandline.propagate.progress import Watcher, nobody
from strandline.propagate.report import RefreshReport
from strandline.propagate.vdag import Vdag
from strandline.reasons import Reason
from strandline.sources.questions import HeldSnapshot
from strandline.store.node import Node

ROUNDS = 3
"""How often a table is read anew within one refresh, if it is altered again and again meanwhile."""


@dataclass
class Advanced:
    """Where the leaves are: the state of each copy and base view, and what was captured of each source."""

    copies: dict[str, CopyState] = field(default_factory=dict)
    bases: dict[str, BaseState] = field(default_factory=dict)
    captured: dict[str, Captured] = field(default_factory=dict)
    integrated: dict[str, Integrated] = field(default_factory=dict)
    """What base views asked their sources."""
    snapshots: dict[str, HeldSnapshot] = field(default_factory=dict)
    """The snapshots in which they asked, where these are held on."""
    loaded: list[RefreshReport] = field(default_factory=list)
    """What reading tables anew came to."""


def looked_at(context: Context, names: Collection[str]) -> Advanced:
    """The copies and base views that views read, as a refresh would find them now; nothing is captured."""
    found: dict[str, CopyState] = {}
    for source, copies in _by_source(context.vdag, names).items():
        try:
            found.update(_looked_at(context, _copies(context, source), copies))
        except SourceError as error:
            found.update({node.name: CopyState(problem=problem_of(error)) for node in copies})
    return Advanced(found, base_views.looked_at(context, names))


def advance(
    context: Context,
    names: Collection[str],
    requested: Sequence[str],
    lease: Lease,
    run: Callable[[RefreshPlan], RefreshReport],
    watch: Watcher = nobody,
    *,
    strict: bool,
    hold: ExitStack | None = None,
) -> Advanced:
    """Capture the sources that *names* read, and read tables anew, *requested* ones in any case; move base views.

    A source that fails is a problem of the views over it, or, with *strict*, an error. *hold* is how long the sources
    of base views are held, if longer than this takes.
    """
    advanced = Advanced()

    def load(plan: RefreshPlan) -> RefreshReport:
        advanced.loaded.append(run(plan))
        return advanced.loaded[-1]

    for source, copies in _by_source(context.vdag, names).items():
        try:
            match _copies(context, source):
                case CopiedSource() as captured:
                    _advance(context, captured, copies, requested, lease, load, advanced, strict=strict)
                case DumpedSource() as dumped:
                    advanced.copies.update(_take_dumps(context, dumped, copies, requested, load))
        except SourceError as error:
            if strict:
                raise
            advanced.copies.update({node.name: CopyState(problem=problem_of(error)) for node in copies})
    bases = base_views.advance(context, names, requested, lease, load, watch, strict=strict, hold=hold)
    advanced.bases.update(bases.states)
    advanced.captured.update(bases.captured)
    advanced.integrated.update(bases.integrated)
    advanced.snapshots.update(bases.snapshots)
    return advanced


def _advance(
    context: Context,
    source: CopiedSource,
    copies: Sequence[Node],
    requested: Sequence[str],
    lease: Lease,
    run: Callable[[RefreshPlan], RefreshReport],
    advanced: Advanced,
    *,
    strict: bool,
) -> None:
    name, catalog = source.name, context.catalog
    everyone = [node for node in context.vdag.nodes.values() if node.copied and node.name.split(".", 1)[0] == name]
    total = advanced.captured.setdefault(name, Captured())
    failed: dict[str, Reason] = {}
    for _ in range(ROUNDS):
        before = _anew(survey(catalog, source, copies, requested, captured=True), failed)
        try:
            taken = take_in_copies(catalog, source, everyone, list(before), context.engine.storage_options, lease)
        except SourceError as error:
            if strict or not before or error.code in DOWN:
                raise
            # It may be for the tables that are to be read anew; the others go on.
            failed |= dict.fromkeys(before, problem_of(error))
            continue
        total.add(taken)
        # After the capture, so that it tells of everything that may have come with it.
        found = survey(catalog, source, copies, requested, captured=True)
        anew = _anew(found, failed)
        if not anew:
            break
        if set(anew) <= set(before):
            report = run(_loading(context, anew, found))
            failed |= {n: Reason("SOURCE_FAILED", r.problem) for n, r in report.hidden.items() if r.problem}
            requested = ()
    else:
        failed |= {n: Reason("SOURCE_TABLE_REWRITTEN", f"{n} is altered again and again") for n in anew}
    problems = {node: replace(found[node], problem=reason) for node, reason in failed.items()}
    advanced.copies.update({**found, **problems})


def _take_dumps(
    context: Context,
    source: DumpedSource,
    copies: Sequence[Node],
    requested: Sequence[str],
    run: Callable[[RefreshPlan], RefreshReport],
) -> dict[str, CopyState]:
    """Fill the copies of tables that have none yet from their newest dumps; what the others will take in."""
    found = survey_dumps(context.catalog, source, copies, requested, only_look=False)
    anew = _anew(found, {})
    if not anew:
        return found
    report = run(_loading(context, anew, found))
    failed = {n: Reason("SOURCE_FAILED", r.problem) for n, r in report.hidden.items() if r.problem}
    # What arrived meanwhile can wait for the next refresh.
    loaded = {name: replace(found[name], anew=None) for name in anew if name not in failed}
    return {**found, **loaded, **{name: CopyState(problem=reason) for name, reason in failed.items()}}


def _anew(states: Mapping[str, CopyState], failed: Mapping[str, Reason]) -> dict[str, Reason]:
    return {name: s.anew for name, s in states.items() if s.anew is not None and name not in failed}


def _loading(context: Context, anew: Mapping[str, Reason], found: Mapping[str, CopyState]) -> RefreshPlan:
    """A plan that reads tables anew and publishes nothing."""
    newest = context.catalog.states.newest()
    plan_id = uuid.uuid4().hex
    nodes = []
    for name, reason in anew.items():
        base = context.catalog.versions.baseline(context.vdag.nodes[name].record.id)
        nodes.append(NodePlan(name, True, "full", reason, base.version if base else None))
    steps = []
    for number, name in enumerate(anew, 1):
        size = found[name].bytes
        small = size is not None and size < SMALL_BYTES
        steps.append(Step(f"{plan_id[:12]}-{number:03d}", "load", name, small, upto=found[name].position))
    return RefreshPlan(plan_id, newest.number if newest else None, tuple(nodes), tuple(steps))


def _by_source(vdag: Vdag, names: Collection[str]) -> dict[str, list[Node]]:
    """The copies among *names* and what they are computed from, by their source."""
    found: dict[str, list[Node]] = {}
    for name in vdag.with_ancestors(names):
        if vdag.nodes[name].copied:
            found.setdefault(name.split(".", 1)[0], []).append(vdag.nodes[name])
    return found


def _looked_at(context: Context, source: CopiedSource | DumpedSource, copies: Sequence[Node]) -> dict[str, CopyState]:
    if isinstance(source, DumpedSource):
        return survey_dumps(context.catalog, source, copies, (), only_look=True)
    return survey(context.catalog, source, copies, (), captured=False)


def _copies(context: Context, name: str) -> CopiedSource | DumpedSource:
    source = context.sources.get(name)
    if not isinstance(source, CopiedSource | DumpedSource):
        raise SourceError("UNKNOWN_SOURCE", f"source {name} is not declared any more; declare it again.")
    return source
