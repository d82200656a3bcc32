"""The views that are maintained here: a projection of a selection of a join of relations at sources."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from strandline.algebra.plan import At, Filter, Join, Operand, Output, Plan, Project, Scan
from strandline.algebra.scalar import Call, Col, Scalar, columns, conjuncts, rename
from strandline.algebra.schema import Schema, names
from strandline.errors import IntegrateError


@dataclass(frozen=True)
class ForeignKey:
    """Each row of *relation* refers by *columns* to a row of *refers_to*, by that one's *key*."""

    relation: str
    columns: tuple[str, ...]
    refers_to: str
    key: tuple[str, ...]


@dataclass(frozen=True)
class View:
    """``pi_outputs(sigma_conditions(scan x ... x scan))``; *homes* has the source of each scan.

    A *place* is the number of a scan. A relation that occurs twice has two places, and an update of it is an update
    of both (Zhuge et al., section 4). All scans of a relation have the same fields.
    """

    scans: tuple[Scan, ...]
    conditions: tuple[Scalar, ...]
    outputs: tuple[Output, ...]
    homes: tuple[str, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()

    @classmethod
    def of(cls, plan: Plan, homes: Mapping[str, str], foreign_keys: tuple[ForeignKey, ...] = ()) -> View:
        """A select-project-join plan as a view; *homes* names the source of each relation."""
        scans, conditions, outputs = taken_apart(plan)
        homes_of = tuple(homes[relation_of(scan)] for scan in scans)
        return cls(scans, conditions, outputs, homes_of, foreign_keys)

    @cached_property
    def plan(self) -> Plan:
        """The view over its relations."""
        return self.with_operands({})

    @cached_property
    def relations(self) -> tuple[str, ...]:
        """The relation at each place."""
        return tuple(relation_of(scan) for scan in self.scans)

    @property
    def sources(self) -> tuple[str, ...]:
        """The sources, each once, in order of first use."""
        return tuple(dict.fromkeys(self.homes))

    @property
    def columns(self) -> Schema:
        return tuple(output.column for output in self.outputs)

    def places(self, relations: Collection[str]) -> tuple[int, ...]:
        """The places at which one of *relations* stands."""
        return tuple(place for place, relation in enumerate(self.relations) if relation in relations)

    def scan(self, place: int, operand: Operand) -> Scan:
        """The scan at *place*, reading *operand*."""
        return replace(self.scans[place], operand=operand)

    def with_operands(self, operands: Mapping[int, Operand]) -> Plan:
        """The view with some places reading something else than their relation."""
        scans = tuple(self.scan(place, operands.get(place, scan.operand)) for place, scan in enumerate(self.scans))
        return Project(Join(scans, self.conditions), self.outputs)

    def conditions_within(self, places: Collection[int]) -> tuple[Scalar, ...]:
        """The conditions that read columns of *places* only."""
        there = {name for place in places for name in names(self.scans[place].columns)}
        return tuple(condition for condition in self.conditions if columns(condition) <= there)

    def key_outputs(self, place: int) -> tuple[tuple[str, str], ...] | None:
        """The key of the relation at *place* in the view: pairs of an output and the column it shows.

        None if the relation has no declared key, or the view does not show all of it.
        """
        scan, shown = self.scans[place], self._shown
        key = [column_of(scan, name) for name in scan.key]
        if not key or not all(name in shown for name in key):
            return None
        return tuple((shown[name], name) for name in key)

    @cached_property
    def _shown(self) -> Mapping[str, str]:
        """The output that shows each column: its own, or that of a column which it must equal."""
        shown = {output.value.name: output.name for output in self.outputs if isinstance(output.value, Col)}
        pairs = [pair for condition in self.conditions if (pair := _equated(condition)) is not None]
        found = True
        while found:
            news = {one: shown[other] for pair in pairs for one, other in (pair, pair[::-1]) if other in shown}
            found = not news.keys() <= shown.keys()
            shown = {**news, **shown}
        return shown

    @property
    def shows_all_keys(self) -> bool:
        """Whether the view shows a key of each relation; its rows are then a set."""
        return all(self.key_outputs(place) is not None for place in range(len(self.scans)))

    def part(self, places: tuple[int, ...], also: Collection[str] = ()) -> View:
        """The view of some places alone: what the whole view, its other conditions, or *also* name of their columns.

        These are the auxiliary views of Wang et al., section 4.3. The columns by which they join are among what the
        other conditions name, because joins are written out as conditions.
        """
        within = self.conditions_within(places)
        others = [condition for condition in self.conditions if condition not in within]
        wanted = {name for output in self.outputs for name in columns(output.value)}
        wanted |= {name for condition in others for name in columns(condition)} | set(also)
        scans = tuple(self.scans[place] for place in places)
        outputs = tuple(Output(column, Col(column.name)) for scan in scans for column in scan.columns)
        kept = tuple(output for output in outputs if output.name in wanted) or outputs[:1]
        return View(scans, within, kept, tuple(self.homes[place] for place in places), self.foreign_keys)

    def connected(self, places: Collection[int], place: int) -> bool:
        """Whether a condition ties *place* to one of *places*."""
        own = set(names(self.scans[place].columns))
        others = {name for other in places for name in names(self.scans[other].columns)}
        return any(columns(c) & own and columns(c) & others for c in self.conditions)

    def relevance(self, relation: str, operand: Operand) -> Plan | None:
        """The rows of *operand* that may matter at some place of *relation*; None if all may.

        A row that fails the view's selection on its own relation is irrelevant at that place, whatever else is there.
        """
        tests = []
        for place in self.places({relation}):
            own = self.conditions_within({place})
            if not own:
                return None
            by = {column_of(self.scans[place], f.name): f.name for f in self.scans[place].fields}
            tests.append(_all([rename(condition, by) for condition in own]))
        scan = self.scans[self.places({relation})[0]]
        return Filter(replace(scan, operand=operand, alias=""), _any(tests))


def taken_apart(plan: Plan) -> tuple[tuple[Scan, ...], tuple[Scalar, ...], tuple[Output, ...]]:
    """The scans, conditions and outputs of a select-project-join plan; any other is refused."""
    outputs = tuple(Output(column, Col(column.name)) for column in plan.columns)
    if isinstance(plan, Project):
        outputs, plan = plan.outputs, plan.input
    scans, conditions = _joined(plan)
    return scans, conditions, outputs


def relation_of(scan: Scan) -> str:
    """The relation that a scan of a view reads."""
    assert isinstance(scan.operand, At)
    return scan.operand.relation


def column_of(scan: Scan, field: str) -> str:
    """The name of a field among the columns of a scan."""
    return f"{scan.alias}.{field}" if scan.alias else field


def _equated(condition: Scalar) -> tuple[str, str] | None:
    match condition:
        case Call("=", (Col(one), Col(other))):
            return one, other
    return None


def _all(tests: list[Scalar]) -> Scalar:
    return tests[0] if len(tests) == 1 else Call("and", tuple(tests))


def _any(tests: list[Scalar]) -> Scalar:
    return tests[0] if len(tests) == 1 else Call("or", tuple(tests))


def _joined(plan: Plan) -> tuple[tuple[Scan, ...], tuple[Scalar, ...]]:
    match plan:
        case Scan():
            return (plan,), ()
        case Filter(child, condition):
            scans, conditions = _joined(child)
            return scans, (*conditions, *conjuncts(condition))
        case Join(inputs, own):
            below = [_joined(child) for child in inputs]
            conditions = tuple(c for _, found in below for c in found)
            return tuple(s for found, _ in below for s in found), (
                *conditions,
                *(each for condition in own for each in conjuncts(condition)),
            )
        case _:
            raise IntegrateError(
                "NOT_SELECT_PROJECT_JOIN",
                f"a base view over sources that are not copied has a {type(plan).__name__} in it; it can have one "
                "projection over selections and joins of relations; put the rest into a view above it.",
            )
