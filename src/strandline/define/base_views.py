"""Base views of a definition: cut out, given an algorithm, and the auxiliary views that it keeps.

The algorithm is chosen once, when the base view is first defined, from the level of consistency that is asked for and
from what is known of its sources; only another definition changes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from strandline.algebra.block import Block
from strandline.algebra.plan import At, Bag, Output, Plan, Project, Scan
from strandline.algebra.scalar import Col, columns
from strandline.algebra.schema import Schema, names
from strandline.catalog import Catalog, Json
from strandline.define.hidden import named_after_contents
from strandline.errors import IntegrateError, SqlError
from strandline.ingest.uncopied import UncopiedSource
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.base_views import BASE_PREFIX, Home, algorithm_of, cut, home_of, view_of
from strandline.integrate.choose import SourceFacts, choose
from strandline.integrate.messages import VIEW
from strandline.integrate.view import View
from strandline.propagate.transactions import shows_every_state
from strandline.reasons import Reason
from strandline.sources.protocol import Source
from strandline.sql.compile import Compiled
from strandline.sql.relations import Relations
from strandline.sql.render import scalar_sql
from strandline.sql.shapes import storable
from strandline.sql.statements import Consistency, CreateView

READING_A_VERSION = 0.5
"""Seconds that Spark takes to answer a question about a version of a table, about."""
LATELY = 1_000
"""Of how many logged transactions the rates of sources are taken."""


@dataclass(frozen=True)
class Based:
    """A compiled view over base views, which stand first among its blocks, and what is noted of each of those."""

    compiled: Compiled
    options: Mapping[str, Mapping[str, Json]] = field(default_factory=dict)
    whole: Mapping[str, Block] = field(default_factory=dict)
    """For a query that is run as written: by table that is not copied, the base view that stands for it."""


class BaseViews:
    """Finds the base views of definitions over *sources*."""

    def __init__(self, catalog: Catalog, sources: Mapping[str, Source], relations: Relations) -> None:
        self._catalog = catalog
        self._sources = sources
        self._relations = relations

    def of(
        self, asked: CreateView, compiled: Compiled, algorithm: str, uses: Callable[[], Mapping[str, Schema]]
    ) -> Based:
        """*compiled* with its base views cut out; *algorithm* is the one that is asked for, or ``auto``.

        *uses* tells which columns of its tables a query names that is run as written.
        """
        uncopied = [name for name in compiled.inputs if self._home(name) == "asked"]
        if not uncopied:
            if asked.consistency == "COMPLETE" or algorithm != "auto":
                raise _no_base_view(asked, algorithm)
            return Based(compiled)
        if not compiled.blocks:
            return self._whole(asked, compiled, {name: uses()[name] for name in uncopied})
        blocks = self._cut(compiled.blocks, _suffix(asked.consistency, algorithm))
        found: list[Block] = []
        options: dict[str, Mapping[str, Json]] = {}
        notes: list[Reason] = []
        for block in blocks:
            if not block.node.startswith(BASE_PREFIX):
                found.append(block)
                continue
            noted = self._noted(block, asked, algorithm)
            machine = algorithm_of(block, noted, self.source_of)
            parts = auxiliary(block, machine)
            found += [*parts.values(), block]
            options |= {part.node: {**noted, "of": block.node} for part in parts.values()}
            options[block.node] = {**noted, "auxiliary": {bag: part.node for bag, part in parts.items()}}
            notes.append(Reason("BASE_VIEW", f"{block.node} over {', '.join(block.inputs)} by {noted['why']}"))
            notes += [Reason("EVALUATED_HERE", text) for text in self._left(view_of(block, self.source_of))]
        if asked.consistency == "COMPLETE":
            _check_every_state(asked, [block for block in found if block.node not in options])
        return Based(replace(compiled, blocks=tuple(found), notes=(*compiled.notes, *notes)), options)

    def _whole(self, asked: CreateView, compiled: Compiled, tables: Mapping[str, Schema]) -> Based:
        """A query that is run as written needs its tables whole: a base view each, of the columns that it names."""
        if asked.consistency == "COMPLETE":
            raise _not_every_state(asked)
        found: dict[str, Block] = {}
        options: dict[str, Mapping[str, Json]] = {}
        for table, used in tables.items():
            relation = self._relations.find(table)
            assert relation is not None
            # A query such as SELECT count(*) names no column, but rows without columns cannot be stored.
            read = used or relation.columns[:1]
            scan = Scan(At(table), "t", read)
            shown = tuple(Output(column, Col(f"t.{column.name}")) for column in read)
            found[table], _ = self._cut([Block("", Project(scan, shown))], "")
            options[found[table].node] = self._noted(found[table], asked, "auto")
        return Based(compiled, options, found)

    def source_of(self, relation: str) -> str:
        """Where an update of a relation comes from: a source, or a table that has versions of its own."""
        return home_of(relation, self._sources)

    def _cut(self, blocks: Sequence[Block], suffix: str) -> tuple[Block, ...]:
        """Base views and the rest; hidden blocks that read other things than before are named after what they hold."""
        found = cut(blocks, self._home, self._key, suffix)
        bases = [block for block in found if block.node.startswith(BASE_PREFIX)]
        return (*bases, *named_after_contents([block for block in found if block not in bases], blocks))

    def _noted(self, block: Block, asked: CreateView, algorithm: str) -> dict[str, Json]:
        known = self._catalog.views.get(block.node)
        if known is not None:
            return {name: value for name, value in known.options.items() if name not in ("auxiliary", "of")}
        view = view_of(block, self.source_of)
        if algorithm == "auto":
            level: Consistency = "STRONG" if asked.consistency == "CONVERGENT" else asked.consistency
            # Algorithms with keys spare a question for deletes, but read the stored view, which takes longer.
            choice = choose(level, self._facts(view), keys=False, view=view)
            name, groups, why = choice.algorithm, choice.groups, choice.reason
        else:
            name, groups, why = algorithm, (), f"{algorithm}: as declared"
        noted: dict[str, Json] = {
            "policy": "AUTO",
            "consistency": asked.consistency,
            "algorithm": name,
            "groups": [list(group) for group in groups],
            "why": why,
        }
        self._check(block, noted, asked)
        return noted

    def _check(self, block: Block, noted: Mapping[str, Json], asked: CreateView) -> None:
        """Refuse an algorithm that cannot maintain the view, or not as well as is asked for."""
        try:
            machine = algorithm_of(block, noted, self.source_of)
        except IntegrateError as error:
            raise SqlError(error.code, f"view {asked.name}: {error.message}", origin=asked.origin) from error
        if asked.consistency == "COMPLETE" and machine.promises != "COMPLETE":
            raise SqlError(
                "LEVEL_NOT_REACHED",
                f"view {asked.name} is declared CONSISTENCY COMPLETE, and {machine.name} promises {machine.promises}; "
                "leave `strandline.algorithm` out, or ask for STRONG.",
                origin=asked.origin,
            )

    def _left(self, view: View) -> list[str]:
        """The conditions of a base view that a source which is asked does not evaluate."""
        found: dict[str, None] = {}
        for home in view.sources:
            source = self._sources[home.split(".", 1)[0]]
            if not isinstance(source, UncopiedSource):
                continue
            asked = tuple(
                scan if at == home else replace(scan, operand=Bag("given"))
                for scan, at in zip(view.scans, view.homes, strict=True)
            )
            own = {name for scan in asked if not isinstance(scan.operand, Bag) for name in names(scan.columns)}
            conditions = tuple(condition for condition in view.conditions if columns(condition) & own)
            for condition in source.inner.untranslatable(asked, conditions):
                shown = {name: name for name in columns(condition)}
                found[f"{scalar_sql(condition, shown)}: {home} does not evaluate it as Spark does"] = None
        return list(found)

    def _facts(self, view: View) -> list[SourceFacts]:
        places = {home: view.homes.count(home) for home in view.sources}
        return [self._facts_of(home, relations) for home, relations in places.items()]

    def _facts_of(self, home: str, relations: int) -> SourceFacts:
        source = self._sources[home.split(".", 1)[0]]
        if not isinstance(source, UncopiedSource):
            return SourceFacts(home, 0, READING_A_VERSION / 2, relations)
        began = time.monotonic()
        source.inner.end()
        return SourceFacts(home, self._rate(source.name), (time.monotonic() - began) / 2, relations)

    def _rate(self, source: str) -> float:
        """Transactions a second of a source, by what was logged of it last."""
        leaves = [leaf.name for leaf in self._catalog.leaves.all() if leaf.source == source]
        after = self._catalog.unit_of_work.newest_csn() - LATELY
        logged = [t for leaf in leaves for t in self._catalog.unit_of_work.since(leaf, max(0, after))]
        times = [t.committed_at for t in logged if t.committed_at]
        span = (max(times) - min(times)).total_seconds() if len(times) > 1 else 0
        return len(times) / span if span else 0

    def _home(self, relation: str) -> Home | None:
        source = self._sources.get(relation.split(".", 1)[0]) if "." in relation else None
        if source is None or source.copied:
            return None
        return "asked" if isinstance(source, UncopiedSource) else "versioned"

    def _key(self, relation: str) -> Schema:
        found = self._relations.find(relation)
        assert found is not None
        return tuple(column for column in found.columns if column.name in found.key)


def auxiliary(block: Block, machine: Algorithm[Any]) -> dict[str, Block]:
    """The blocks of the auxiliary views that an algorithm keeps beside a base view, by the names of their bags."""
    kept = {bag: plan for bag, plan in machine.kept().items() if bag != VIEW}
    return {bag.name: Block(f"{block.node} {bag.name}", _stored(plan)) for bag, plan in kept.items()}


def _stored(plan: Plan) -> Plan:
    """*plan* under names that a table can have."""
    found = [column.name.replace(".", "_") for column in plan.columns]
    kept = [n if storable(n) and found.count(n) == 1 else f"c{i}" for i, n in enumerate(found, 1)]
    outputs = [Output(replace(c, name=name), Col(c.name)) for c, name in zip(plan.columns, kept, strict=True)]
    return Project(plan, tuple(outputs))


def _suffix(level: Consistency, algorithm: str) -> str:
    """What tells base views apart that hold the same and are maintained otherwise."""
    found: Sequence[str] = ["complete"] if level == "COMPLETE" else []
    return "".join(f" {word}" for word in (*found, *([algorithm] if algorithm != "auto" else [])))


def _check_every_state(asked: CreateView, blocks: Sequence[Block]) -> None:
    """Refuse a view that cannot be read after each transaction of its sources."""
    own = blocks[-1]
    if len(blocks) > 1 or own.grouped or own.ordered is not None or not shows_every_state(own.body):
        raise _not_every_state(asked)


def _not_every_state(asked: CreateView) -> SqlError:
    return SqlError(
        "LEVEL_NOT_REACHED",
        f"view {asked.name} is declared CONSISTENCY COMPLETE, which is for selections, projections and joins of "
        "tables that are not copied, and it computes more than that; declare a view of the join alone COMPLETE, "
        f"and put {asked.name} on top of it, declared STRONG.",
        origin=asked.origin,
    )


def _no_base_view(asked: CreateView, algorithm: str) -> SqlError:
    what = f"'strandline.algorithm' = '{algorithm}'" if algorithm != "auto" else "CONSISTENCY COMPLETE"
    return SqlError(
        "NOTHING_TO_COMPENSATE",
        f"view {asked.name} is declared with {what}, and reads no table of a source with `copies: false`: over copies "
        "and versioned tables a state is exact, and covers what a refresh finds; leave it out.",
        origin=asked.origin,
    )
