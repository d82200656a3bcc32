"""Constraints that a source declares: keys, foreign keys, columns without NULL, tables that only grow.

They simplify plans and empty terms. Nothing here looks at data: what is assumed must have been found to hold before the
changes at hand and after them. A row whose foreign key has a NULL refers to nothing (SQL's MATCH SIMPLE).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from strandline.algebra.plan import (
    At,
    Exists,
    Filter,
    GroupBy,
    Join,
    OuterJoin,
    Plan,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    UnionAll,
    Window,
    beside_nulls,
    children,
    decomposed,
    map_children,
)
from strandline.algebra.scalar import Call, Col, Scalar, Text, conjunction, conjuncts


@dataclass(frozen=True)
class ForeignKey:
    """The *columns* of a row of *table*, if none is NULL, are the *key* of a row of *references*."""

    table: str
    columns: tuple[str, ...]
    references: str
    key: tuple[str, ...]

    def __str__(self) -> str:
        key = ", ".join(self.key)
        return f"foreign key {self.table}({', '.join(self.columns)}) -> {self.references}({key})"


@dataclass(frozen=True)
class NotNull:
    """A *column* of *table* is never NULL."""

    table: str
    column: str

    def __str__(self) -> str:
        return f"not null {self.table}({self.column})"


@dataclass(frozen=True)
class AppendOnly:
    """Rows of *table* are neither deleted nor changed."""

    table: str

    def __str__(self) -> str:
        return f"append-only {self.table}"


Constraint = ForeignKey | NotNull | AppendOnly


@dataclass(frozen=True)
class Parts:
    """Which parts the change of a table may have: keys that are *new*, that are *gone*, and rows that *changed*."""

    new: bool = True
    gone: bool = True
    changed: bool = True


@dataclass(frozen=True)
class Assumed:
    """Constraints that hold before and after the changes at hand, and what is known of these changes.

    *parts* are by table.
    """

    constraints: tuple[Constraint, ...] = ()
    parts: Mapping[str, Parts] = field(default_factory=dict)

    @property
    def foreign_keys(self) -> tuple[ForeignKey, ...]:
        return tuple(c for c in self.constraints if isinstance(c, ForeignKey))

    def not_null(self, table: str, column: str) -> bool:
        return NotNull(table, column) in self.constraints

    def parts_of(self, table: str) -> Parts:
        if AppendOnly(table) in self.constraints:
            return Parts(gone=False, changed=False)
        return self.parts.get(table, Parts())


NOTHING = Assumed()


@dataclass(frozen=True)
class Use:
    """A constraint that a plan makes use of, and what for."""

    constraint: Constraint
    effect: str

    def __str__(self) -> str:
        return f"{self.constraint}: {self.effect}"


@dataclass(frozen=True)
class Origin:
    """Where a column of a plan comes from: a field of a scan; *total* if it has no NULLs that the plan added."""

    scan: Scan
    table: str
    field: str
    total: bool = True


def origins(plan: Plan) -> dict[str, Origin]:
    """The columns of *plan* whose values, NULL apart, are those of a field of a scan in the same state.

    Columns of one row that come from one scan come from one row of it.
    """
    match plan:
        case Scan(operand=At(relation), fields=fields):
            pairs = zip(plan.columns, fields, strict=True)
            return {column.name: Origin(plan, relation, found.name) for column, found in pairs}
        case Filter(input=child) | SemiJoin(input=child) | Repeat(input=child) | Window(input=child):
            return origins(child)
        case Exists(left=child):
            return origins(child)
        case Project(child, outputs):
            return _passed(origins(child), ((o.name, o.value) for o in outputs))
        case GroupBy(input=child, keys=keys):
            return _passed(origins(child), ((key.name, key.value) for key in keys))
        case Join(inputs=inputs):
            return {name: origin for child in inputs for name, origin in origins(child).items()}
        case OuterJoin(left=left, right=right, full=full):
            ours = {n: o if not full else _partial(o) for n, o in origins(left).items()}
            return ours | {name: _partial(origin) for name, origin in origins(right).items()}
        case _:
            return {}


def _passed(below: Mapping[str, Origin], outputs: Iterable[tuple[str, Scalar]]) -> dict[str, Origin]:
    found = ((name, column_of(value)) for name, value in outputs)
    return {name: below[column] for name, column in found if column is not None and column in below}


def _partial(origin: Origin) -> Origin:
    return Origin(origin.scan, origin.table, origin.field, total=False)


def column_of(value: Scalar) -> str | None:
    """The column that *value* is, if it is nothing but a column."""
    match value:
        case Col(name):
            return name
        case Text(fragments=(Col(name),)):
            return name
        case _:
            return None


def matched_columns(foreign_key: ForeignKey, left: Plan, right: Plan, equal: Collection[tuple[str, str]]) -> Columns:
    """The columns of *left* and *right* by which *equal* pairs of columns match them along *foreign_key*.

    Empty if they do not: the left ones must come from one scan of the table, the right ones from one of the table that
    is referred to.
    """
    ours, theirs = origins(left), origins(right)
    found: list[tuple[str, str]] = []
    scans: set[tuple[int, int]] = set()
    for column, key in zip(foreign_key.columns, foreign_key.key, strict=True):
        pair = next(
            (
                (one, other)
                for one, other in equal
                if one in ours
                and other in theirs
                and (ours[one].table, ours[one].field) == (foreign_key.table, column)
                and (theirs[other].table, theirs[other].field) == (foreign_key.references, key)
            ),
            None,
        )
        if pair is None:
            return ()
        found.append(pair)
        scans.add((id(ours[pair[0]].scan), id(theirs[pair[1]].scan)))
    return tuple(found) if len(scans) == 1 else ()


Columns = tuple[tuple[str, str], ...]


def simplified(plan: Plan, assumed: Assumed) -> tuple[Plan, tuple[Use, ...]]:
    """*plan* without outer, semi and anti joins that foreign keys decide, and what that rests on.

    Joins of joins become one, so that keys meet.
    """
    if not assumed.foreign_keys:
        return plan, ()
    uses: list[Use] = []

    def visit(node: Plan) -> Plan:
        below = map_children(node, visit)
        match below:
            case OuterJoin(full=False):
                return _flat(_without_outer_join(below, assumed, uses))
            case Exists():
                return _without_exists(below, assumed, uses)
            case _:
                return _flat(below)

    return visit(plan), tuple(uses)


def _flat(plan: Plan) -> Plan:
    """Conditions above a join in it, and joins in a join as one; the columns stay in their order."""
    match plan:
        case Filter(Join(inputs, conditions), condition):
            return Join(inputs, (*conditions, *conjuncts(condition)))
        case Join(inputs, conditions):
            flat: list[Plan] = []
            for child in inputs:
                if isinstance(child, Join):
                    flat.extend(child.inputs)
                    conditions = (*conditions, *child.conditions)
                else:
                    flat.append(child)
            return Join(tuple(flat), conditions)
        case _:
            return plan


def _without_outer_join(node: OuterJoin, assumed: Assumed, uses: list[Use]) -> Plan:
    """``L ⟕ O = (L ⋈ O) + σ[a foreign key column is NULL](L) × NULL``."""
    found = _decided(node, assumed)
    if found is None:
        return node
    foreign_key, columns, total = found
    joined = Join((node.left, node.right), tuple(Call("=", pair) for pair in node.keys))
    uses.append(Use(foreign_key, "every row that refers to another meets it, so the outer join is an inner one"))
    if total:
        uses.extend(_not_null_uses(foreign_key, "no row is left beside NULLs"))
        return joined
    return UnionAll((joined, beside_nulls(Filter(node.left, _any_null(columns)), node.columns)))


def _without_exists(node: Exists, assumed: Assumed, uses: list[Use]) -> Plan:
    """``L ⋉ O = σ[no foreign key column is NULL](L)``, ``L ▷ O = σ[one is NULL](L)``."""
    found = _decided(node, assumed)
    if found is None:
        return node
    foreign_key, columns, total = found
    uses.append(Use(foreign_key, "every row that refers to another meets it, so whether one exists is known"))
    if node.negated:
        return Filter(node.left, _any_null(columns))
    if total:
        uses.extend(_not_null_uses(foreign_key, "every row refers to another"))
        return node.left
    there = conjunction(tuple(Call("is not null", (Col(column),)) for column in columns))
    assert there is not None
    return Filter(node.left, there)


def _decided(node: OuterJoin | Exists, assumed: Assumed) -> tuple[ForeignKey, tuple[str, ...], bool] | None:
    """The foreign key by which each row of the left side has its match, its columns, and whether none can be NULL."""
    if node.conditions or not _whole(node.right):
        return None
    equal = [(column_of(ours), column_of(theirs)) for ours, theirs in node.keys]
    pairs = [(ours, theirs) for ours, theirs in equal if ours is not None and theirs is not None]
    for foreign_key in assumed.foreign_keys:
        columns = matched_columns(foreign_key, node.left, node.right, pairs)
        if columns and len(columns) == len(equal):
            left = origins(node.left)
            ours = tuple(column for column, _ in columns)
            known = all(left[c].total and assumed.not_null(left[c].table, left[c].field) for c in ours)
            return foreign_key, ours, known
    return None


def _whole(plan: Plan) -> bool:
    """Whether all rows of a scanned table are there."""
    return isinstance(plan, Scan) or (isinstance(plan, Project) and _whole(plan.input))


def _not_null_uses(foreign_key: ForeignKey, effect: str) -> list[Use]:
    return [Use(NotNull(foreign_key.table, column), effect) for column in foreign_key.columns]


def _any_null(columns: tuple[str, ...]) -> Scalar:
    tests = tuple(Call("is null", (Col(column),)) for column in columns)
    return tests[0] if len(tests) == 1 else Call("or", tests)


def joins(plan: Plan) -> Iterator[Join]:
    """The inner joins of a plan, also those that are a part of an outer join."""
    if isinstance(plan, OuterJoin):
        yield from joins(decomposed(plan))
        return
    if isinstance(plan, Join):
        yield plan
    for child in children(plan):
        yield from joins(child)
