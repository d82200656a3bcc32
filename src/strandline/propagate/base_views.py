"""The first phase of a refresh, for base views: filled where they must be, then brought to one state of their sources.

What comes of it are stored deltas and positions, which the plan of the second phase pins. A crash in between loses
nothing: a base view goes on from its last version, and the logs of its sources hold what happened since.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

from strandline.algebra.plan import scans
from strandline.catalog import Json, Lease
from strandline.errors import SourceError, StrandlineError
from strandline.ingest.advance import problem_of
from strandline.ingest.capture import Captured
from strandline.ingest.uncopied import UncopiedSource
from strandline.integrate.advance import Integrated, Integration, held
from strandline.integrate.base_views import algorithm_of, home_of
from strandline.integrate.view import relation_of
from strandline.propagate.context import Context
from strandline.propagate.plan import NodePlan, RefreshPlan, Step
from strandline.propagate.progress import Event, Watcher, nobody
from strandline.propagate.report import RefreshReport
from strandline.propagate.schemas import schema_problem
from strandline.reasons import Reason
from strandline.sources.protocol import Peek, Position
from strandline.sources.questions import HeldSnapshot
from strandline.store import layout
from strandline.store.deltas import Delta
from strandline.store.node import Node

TRIES = 3
"""How often base views are begun anew, if a source loses its snapshot or does what its log does not tell."""


@dataclass(frozen=True)
class BaseState:
    """What a refresh would find, or has made, of a base view or an auxiliary view.

    *positions* is where it goes; *problem* is why it must stay where it is; *anew* is why it has to be filled before
    the refresh; *peek* is what happened since. *delta* is what that amounts to, once it is known, of so many *updates*;
    *history* is where the changes of each are, if they are kept.
    """

    positions: Mapping[str, Position] = field(default_factory=dict)
    problem: Reason | None = None
    anew: Reason | None = None
    peek: Peek = field(default_factory=lambda: Peek(()))
    delta: Delta | None = None
    updates: int = 0
    history: Mapping[str, Json] | None = None


@dataclass
class Bases:
    """Where the base views are, what was captured for them, what they asked, and the snapshots in which they did."""

    states: dict[str, BaseState] = field(default_factory=dict)
    captured: dict[str, Captured] = field(default_factory=dict)
    integrated: dict[str, Integrated] = field(default_factory=dict)
    snapshots: dict[str, HeldSnapshot] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """A base view, and its auxiliary views by the names of their bags: they move together."""

    node: Node
    parts: Mapping[str, Node]

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def nodes(self) -> tuple[Node, ...]:
        """The auxiliary views, then the base view."""
        return (*self.parts.values(), self.node)

    def tables(self, source: str) -> list[str]:
        """The tables of a source that are read."""
        return [leaf.split(".", 1)[1] for leaf in self.node.leaves if leaf.split(".", 1)[0] == source]


def looked_at(context: Context, names: Collection[str]) -> dict[str, BaseState]:
    """The base views that *names* read, as a refresh would find them now; nothing is asked or captured."""
    found: dict[str, BaseState] = {}
    for group in _groups(context, names):
        try:
            state = _looked_at(context, group)
        except SourceError as error:
            state = BaseState(problem=problem_of(error))
        found.update({node.name: state for node in group.nodes})
    return found


def advance(
    context: Context,
    names: Collection[str],
    requested: Collection[str],
    lease: Lease,
    run: Callable[[RefreshPlan], RefreshReport],
    watch: Watcher = nobody,
    *,
    strict: bool,
    hold: ExitStack | None = None,
) -> Bases:
    """Bring the base views that *names* read to one state of their sources; *requested* ones are filled in any case.

    A source that fails is a problem of the views over it, or, with *strict*, an error; the others go on. Sources are
    held until this is done, or, if *hold* is given, as long as that.
    """
    groups = _groups(context, names)
    bases = Bases()
    if not groups:
        return bases
    problems: dict[str, Reason] = {}
    again, tries = None, 0
    while tries < TRIES:
        known = len(problems)
        anew = _capture(context, groups, bases, problems, lease, requested)
        _fill(groups, problems, run, _filling(context, anew))
        requested = ()
        again = _integrate(context, groups, bases, problems, lease, watch, hold)
        if again is None:
            break
        # What failed is left out from now on, so that does not count.
        tries += len(problems) == known
    if again is not None:
        problems |= {group.name: again for group in groups if group.name not in problems}
    if strict and problems:
        raise SourceError("SOURCE_FAILED", "; ".join(f"{name}: {why}" for name, why in problems.items()))
    for group in groups:
        if group.name in problems:
            bases.states.update({node.name: BaseState(problem=problems[group.name]) for node in group.nodes})
    return bases


def _groups(context: Context, names: Collection[str]) -> list[Group]:
    """The base views that *names* read."""
    nodes = [context.vdag.nodes[name] for name in context.vdag.with_ancestors(names)]
    return [
        Group(node, {bag: context.vdag.nodes[part] for bag, part in node.auxiliary.items()})
        for node in nodes
        if node.base and "of" not in node.record.options
    ]


def _asked(context: Context, node: Node) -> dict[str, UncopiedSource]:
    """The sources that a base view is maintained by asking."""
    found = {}
    for leaf in node.leaves:
        source = context.sources.get(leaf.split(".", 1)[0])
        if source is None:
            raise SourceError("UNKNOWN_SOURCE", f"the source of {leaf} is not declared any more; declare it again.")
        if isinstance(source, UncopiedSource):
            found[source.name] = source
    return found


def _schema_problem(context: Context, node: Node) -> Reason | None:
    for leaf in node.leaves:
        source, table = leaf.split(".", 1)
        info = context.sources[source].tables().get(table)
        if info is None:
            return Reason("SOURCE_TABLE_GONE", f"{leaf} does not exist any more; `strandline source check` says why")
        if info.problem is not None:
            return Reason("SOURCE_FAILED", f"[NO_REPLICA_IDENTITY] {leaf}: {info.problem}")
        problem = schema_problem(node, leaf, info.columns) or _key_problem(node, leaf, info.key)
        if problem is not None:
            return problem
    return None


def _key_problem(node: Node, leaf: str, now: Sequence[str]) -> Reason | None:
    """Rows that are told apart by a key must have it still."""
    assert node.block is not None
    keys = [scan.key for scan in scans(node.block.body) if relation_of(scan) == leaf]
    for key in keys:
        if key and not (now and set(now) <= set(key)):
            known = f"({', '.join(now)})" if now else "none"
            text = (
                f"the key of {leaf} was ({', '.join(key)}) and is {known} now; put it back, or redefine the views that "
                "read it with CREATE OR REPLACE"
            )
            return Reason("SOURCE_SCHEMA_CHANGED", text)
    return None


def _looked_at(context: Context, group: Group) -> BaseState:
    node = group.node
    _asked(context, node)
    problem = _schema_problem(context, node)
    if problem is not None:
        return BaseState(problem=problem)
    anew = _anew(context, group)
    base = context.catalog.versions.baseline(node.record.id)
    if anew is not None or base is None:
        return BaseState(anew=anew)
    positions, peeks = {}, []
    for leaf in node.leaves:
        source, table = leaf.split(".", 1)
        positions[leaf] = context.sources[source].position(table)
        peeks.append(context.sources[source].peek(table, base.positions[leaf], positions[leaf]))
    rows = None if any(peek.rows is None for peek in peeks) else sum(peek.rows or 0 for peek in peeks)
    transactions = tuple(t for peek in peeks for t in peek.transactions)
    insert_only = all(peek.insert_only for peek in peeks)
    return BaseState(positions, peek=Peek(transactions, insert_only=insert_only, rows=rows))


def _anew(context: Context, group: Group) -> Reason | None:
    """Why a base view, or an auxiliary view of it, has to be filled from the tables, if one has."""
    node = group.node
    base = context.catalog.versions.baseline(node.record.id)
    if base is None:
        return Reason("FIRST_FILL")
    for part in group.parts.values():
        beside = context.catalog.versions.baseline(part.record.id)
        if beside is None or any(beside.positions[leaf] != base.positions[leaf] for leaf in part.leaves):
            return Reason("INPUT_REBASELINED", f"{part.name} does not show what {node.name} does")
    for source in _asked(context, node).values():
        reason = source.anew(node.record, base, source.lost())
        if reason is not None:
            return reason
    for leaf in node.leaves:
        name, table = leaf.split(".", 1)
        if not isinstance(context.sources[name], UncopiedSource):
            now = context.sources[name].position(table)
            gap = context.sources[name].peek(table, base.positions[leaf], now).gap
            if gap is not None:
                return gap
    return None


def _capture(
    context: Context,
    groups: Sequence[Group],
    bases: Bases,
    problems: dict[str, Reason],
    lease: Lease,
    requested: Collection[str],
) -> dict[str, Reason]:
    """Take the logs of all sources in; the nodes that have to be filled next, and why."""
    anew = {group.name: Reason("REQUESTED") for group in groups if group.name in requested}
    sources: dict[str, UncopiedSource] = {}
    for group in groups:
        try:
            asked = _asked(context, group.node)
            problem = _schema_problem(context, group.node)
            reason = None if problem is not None else _anew(context, group)
            sources |= asked
        except SourceError as error:
            problem, reason = problem_of(error), None
        if problem is not None:
            problems[group.name] = problem
        elif reason is not None:
            anew.setdefault(group.name, reason)
    for name, source in sources.items():
        readers = [group for group in groups if group.name not in problems and group.tables(name)]
        to_read = dict.fromkeys(table for group in readers if group.name in anew for table in group.tables(name))
        try:
            bases.captured.setdefault(name, Captured()).add(source.take_in(list(to_read), lease))
        except SourceError as error:
            problems |= {group.name: problem_of(error) for group in readers}
    # What was captured may tell more.
    anew = {**_found_anew(context, groups, problems), **anew}
    going = [group for group in groups if group.name in anew and group.name not in problems]
    return {node.name: anew[group.name] for group in going for node in group.nodes}


def _found_anew(context: Context, groups: Sequence[Group], problems: dict[str, Reason]) -> dict[str, Reason]:
    """The base views that have to be filled, as far as can be told now, and why."""
    found: dict[str, Reason] = {}
    for group in groups:
        try:
            reason = None if group.name in problems else _anew(context, group)
        except SourceError as error:
            problems[group.name] = problem_of(error)
            continue
        if reason is not None:
            found[group.name] = reason
    return found


def _fill(
    groups: Sequence[Group],
    problems: dict[str, Reason],
    run: Callable[[RefreshPlan], RefreshReport],
    filling: RefreshPlan,
) -> None:
    """Fill base views; one that cannot be filled is a problem of its own."""
    if not filling.steps:
        return
    failed = {name: told.problem for name, told in run(filling).hidden.items() if told.problem}
    for group in groups:
        why = next((failed[node.name] for node in group.nodes if node.name in failed), None)
        if why is not None:
            problems[group.name] = Reason("SOURCE_FAILED", why)


def _integrate(
    context: Context,
    groups: Sequence[Group],
    bases: Bases,
    problems: dict[str, Reason],
    lease: Lease,
    watch: Watcher,
    hold: ExitStack | None,
) -> Reason | None:
    """Hold all sources, and have each base view take in what their logs hold up to there.

    A base view that fails is a problem of its own. Why all have to begin anew, if they have: a source lost its
    snapshot, or what was logged since the last look does not let a base view go on.
    """
    going = [group for group in groups if group.name not in problems]
    with ExitStack() as stack:
        snapshots: dict[str, HeldSnapshot] = {}
        places: dict[str, int] = {}
        for name, source in {k: v for group in going for k, v in _asked(context, group.node).items()}.items():
            readers = [group for group in going if group.tables(name)]
            try:
                snapshots[name], places[name] = stack.enter_context(held(source, _read(context, readers, name), lease))
            except SourceError as error:
                problems |= {group.name: problem_of(error) for group in readers}
        anew = _found_anew(context, going, problems)
        if anew:
            return next(iter(anew.values()))
        versions = _versions(context, going, problems)
        layout.drop_integrations(context.root, context.engine.storage_options)
        folder = layout.integration_path(context.root, uuid.uuid4().hex)
        known = (context.catalog, context.engine, context.sources)
        integration = Integration(*known, snapshots, places, versions, folder, context.root)
        for number, group in enumerate(going):
            if group.name in problems:
                continue
            began = time.monotonic()
            watch(Event("started", "ask for", group.name, number, len(going)))
            try:
                done = _integrated(context, integration, group)
            except SourceError as error:
                if error.code == "SNAPSHOT_LOST":
                    return problem_of(error)
                problems[group.name] = problem_of(error)
            except Exception as error:
                told = str(error).strip() or type(error).__name__
                problems[group.name] = Reason("BASE_VIEW_FAILED", told.splitlines()[0][:500])
            seconds = time.monotonic() - began
            if group.name in problems:
                watch(Event("failed", "ask for", group.name, number, len(going), seconds, str(problems[group.name])))
                continue
            told = f"{done.updates} updates, {done.traffic.fetched_rows} rows fetched"
            watch(Event("done", "ask for", group.name, number, len(going), seconds, told))
            bases.integrated[group.name] = done
            for node in group.nodes:
                history = done.history if node is group.node else None
                bases.states[node.name] = BaseState(
                    done.positions, delta=done.deltas[node.name], updates=done.updates, history=history
                )
        if hold is not None:
            bases.snapshots.update(snapshots)
            hold.enter_context(stack.pop_all())
    if not any(done.updates for done in bases.integrated.values()):
        layout.drop_integrations(context.root, context.engine.storage_options)
    return None


def _integrated(context: Context, integration: Integration, group: Group) -> Integrated:
    block = group.node.block
    assert block is not None
    machine = algorithm_of(block, group.node.record.options, lambda leaf: home_of(leaf, context.sources))
    with context.engine.step(group.name, "integrate", small=True):
        return integration.integrate(group.node, group.parts, machine)


def _read(context: Context, readers: Sequence[Group], source: str) -> dict[str, list[Position]]:
    """The tables of a source that base views read, and from which positions on."""
    found: dict[str, list[Position]] = {}
    for group in readers:
        base = context.catalog.versions.baseline(group.node.record.id)
        assert base is not None
        for table in group.tables(source):
            found.setdefault(table, []).append(base.positions[f"{source}.{table}"])
    return found


def _versions(context: Context, going: Sequence[Group], problems: dict[str, Reason]) -> dict[str, Position]:
    """The versions to which tables of versioned stores go, one for all base views."""
    found: dict[str, Position] = {}
    for group in going:
        for leaf in group.node.leaves:
            name, table = leaf.split(".", 1)
            if not isinstance(context.sources[name], UncopiedSource) and leaf not in found:
                try:
                    found[leaf] = context.sources[name].position(table)
                except StrandlineError as error:
                    problems[group.name] = Reason("SOURCE_TABLE_GONE", error.message)
    return found


def _filling(context: Context, anew: Mapping[str, Reason]) -> RefreshPlan:
    """A plan that fills base views and publishes nothing."""
    newest = context.catalog.states.newest()
    plan_id = uuid.uuid4().hex
    nodes = []
    for name, reason in anew.items():
        base = context.catalog.versions.baseline(context.vdag.nodes[name].record.id)
        nodes.append(NodePlan(name, True, "full", reason, base.version if base else None))
    steps = [Step(f"{plan_id[:12]}-{number:03d}", "load", name, False) for number, name in enumerate(anew, 1)]
    return RefreshPlan(plan_id, newest.number if newest else None, tuple(nodes), tuple(steps))
