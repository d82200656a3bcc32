"""Strategies carried out on Delta tables by Spark, with time and correctness of each run.

A Comp reads what is installed at that point; a step over pinned versions reads those. Each term is one query and one
stored part of its view's delta: of an aggregate view a summary delta, of any other signed rows. The terms of a Comp can
also be one query. An Inst adds the parts up and installs the sum, as a refresh does.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from bench import processors
from bench.vdag.case import Case, fingerprint
from bench.vdag.workers import Workers
from strandline.algebra.differentiate import group_by
from strandline.algebra.plan import At, Bag, Change, GroupBy, Net, Output, Partial, Plan, Scan, UnionAll
from strandline.algebra.scalar import Col
from strandline.algebra.schema import Schema, names
from strandline.engine import tables
from strandline.engine.session import Engine
from strandline.propagate.strategies.expressions import Comp, Inst
from strandline.propagate.strategies.multi_version import PinnedComp
from strandline.propagate.strategies.terms import comp_terms, pinned_term
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import render
from strandline.store.deltas import Delta, write_delta, write_summary
from strandline.store.install import install
from strandline.store.node import Node

Step = Comp | PinnedComp | Inst
Stages = Sequence[Collection[Step]]
"""Sets of steps, one after another; the steps of a set may run side by side."""


def one_by_one(strategy: Sequence[Step]) -> Stages:
    """A strategy as a sequence."""
    return [(step,) for step in strategy]


def terms_of(step: Step) -> int:
    """How many terms a step has, each relation being read once by its view."""
    match step:
        case Comp(over=over):
            return (1 << len(over)) - 1
        case PinnedComp():
            return 1
        case Inst():
            return 0


@dataclass(frozen=True)
class Run:
    """What one run took, in seconds, and what came out wrong.

    Seconds of Comps and of Insts are added up; with several threads that may be more than passed. *cpu* are the seconds
    of processors that our processes used, *comps_cpu* those in stages without an Inst: other load changes them little.
    """

    seconds: float
    computing: float
    installing: float
    cpu: float
    comps_cpu: float
    terms: int
    wrong: tuple[str, ...]


class Tables:
    """Tables of one run: what is installed by now, and the parts of deltas that are there."""

    def __init__(self, case: Case, folder: Path, *, one_query: bool, small: bool) -> None:
        self._case = case
        self._folder = folder
        self._one_query = one_query
        self._small = small
        self._nodes = case.copied_to(folder / "tables")
        self._versions = dict(case.versions)
        self._parts: dict[str, list[Delta]] = {name: [] for name in self._nodes}
        self._numbers = count(1)
        self.terms: list[int] = []
        """How many terms the Comps had."""

    def carry_out(self, step: Step, engine: Engine) -> float:
        """The seconds that *step* took."""
        began = time.perf_counter()
        with engine.step(step.view, "strategy", small=self._small):
            if isinstance(step, Inst):
                self._install(engine, step.view)
            else:
                self._compute(engine, step)
        return time.perf_counter() - began

    def _compute(self, engine: Engine, step: Comp | PinnedComp) -> None:
        node = self._nodes[step.view]
        assert node.block is not None
        body = node.block.body
        terms = comp_terms(body, step) if isinstance(step, Comp) else (pinned_term(body, step),)
        self.terms.append(len(terms))
        for term in (UnionAll(terms),) if self._one_query else terms:
            path = str(self._folder / "deltas" / node.name / f"term={next(self._numbers)}")
            self._parts[node.name].append(self._stored(engine, node, term, path))

    def _stored(self, engine: Engine, node: Node, term: Plan, path: str) -> Delta:
        assert node.block is not None
        contents = node.block.contents
        if isinstance(contents, GroupBy):
            return write_summary(engine, render(group_by.summary(contents, term), self._scan), node.stored, path)
        return write_delta(engine, render(Net(term), self._scan, signed=True), node.stored, path)

    def _scan(self, scan: Scan) -> str:
        match scan.operand:
            case At(relation, state):
                node = self._nodes[relation]
                version = (self._case.versions if state == "pre" else self._versions)[relation]
                return f"SELECT {quoted_list(names(scan.fields))} FROM ({node.select(version)})"
            case Change(relation):
                return self._changes(relation, scan.fields)
        raise AssertionError(f"a term reads {scan.operand}")

    def _changes(self, relation: str, fields: Schema) -> str:
        """The rows of a delta; of a view, which is no aggregate, those of all its parts."""
        if relation in self._case.deltas:
            return tables.stored_delta(self._case.deltas[relation].path, fields)
        block = self._nodes[relation].block
        assert block is not None and not block.grouped and not block.outputs, f"{relation} is read by no view here"
        if not any(part.rows for part in self._parts[relation]):
            return tables.no_changes(fields)
        return tables.stored_delta(str(self._folder / "deltas" / relation), fields)

    def _install(self, engine: Engine, view: str) -> None:
        node = self._nodes[view]
        installed = install(engine, node, self._delta(engine, node), self._versions[view], "inst")
        self._versions[view] = installed.version

    def _delta(self, engine: Engine, node: Node) -> Delta:
        """The whole delta of a relation."""
        if node.name in self._case.deltas:
            return self._case.deltas[node.name]
        parts = [part for part in self._parts[node.name] if part.rows]
        if len(parts) < 2:
            return parts[0] if parts else Delta("", 0, 0)
        path, whole = str(self._folder / "deltas" / node.name), str(self._folder / "deltas" / f"{node.name} whole")
        assert node.block is not None
        contents = node.block.contents
        if isinstance(contents, GroupBy):
            rows = f"SELECT {quoted_list(names(node.stored))} FROM parquet.{quoted(path)}"
            return write_summary(engine, render(_added_up(contents), lambda _: rows), node.stored, whole)
        rows = tables.stored_delta(path, node.stored)
        return write_delta(
            engine, render(Net(Scan(Change(node.name), "", node.stored)), lambda _: rows), node.stored, whole
        )

    def look(self, engine: Engine) -> None:
        """Have Spark find out which files there are, as it knows of tables that it uses every day."""
        with engine.step("all", "look", small=self._small):
            for name, node in self._nodes.items():
                engine.rows(f"SELECT 1 FROM {tables.table(node.path, self._versions[name])} LIMIT 1")

    def wrong(self, engine: Engine) -> tuple[str, ...]:
        """What is not as it should be, as bags."""
        with engine.step("all", "check", small=self._small):
            return tuple(name for name, node in self._nodes.items() if not self._is_right(engine, name, node))

    def _is_right(self, engine: Engine, name: str, node: Node) -> bool:
        shown, right = node.select(self._versions[name]), self._case.right[name]
        if node.block is None:
            return fingerprint(engine, node, shown) == right
        rows = f"SELECT {quoted_list(names(node.visible))} FROM parquet.{quoted(right)}"
        return engine.rows(f"SELECT count(*) FROM ({tables.compared(rows, shown, node.visible, 0)})") == [(0,)]


def _added_up(group: GroupBy) -> GroupBy:
    """Parts of a summary delta as one."""
    keys = tuple(Output(key.column, Col(key.name)) for key in group.keys)
    partials = tuple(Partial(partial.column, "sum", Col(partial.name)) for partial in group.partials)
    return GroupBy(Scan(Bag("parts"), "", group.columns), keys, partials, keep_empty=True)


def carried_out(
    workers: Workers, case: Case, folder: Path, stages: Stages, *, one_query: bool = False, small: bool
) -> Run:
    """*stages* over tables below *folder* that nobody else has; they are removed in the end."""
    own = Tables(case, folder, one_query=one_query, small=small)
    took: dict[type[Step], float] = dict.fromkeys((Comp, PinnedComp, Inst), 0.0)
    comps_cpu = 0.0
    try:
        own.look(workers.engine)
        began, used = time.perf_counter(), processors.used()
        for stage in stages:
            steps = sorted(stage, key=lambda step: (-terms_of(step), str(step)))
            before = processors.used()
            for step, each in zip(steps, workers.each(steps, own.carry_out), strict=True):
                took[type(step)] += each
            if not any(isinstance(step, Inst) for step in steps):
                comps_cpu += processors.used() - before
        seconds, used = time.perf_counter() - began, processors.used() - used
        computing, installing = took[Comp] + took[PinnedComp], took[Inst]
        return Run(seconds, computing, installing, used, comps_cpu, sum(own.terms), own.wrong(workers.engine))
    finally:
        shutil.rmtree(folder)
