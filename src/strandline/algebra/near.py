"""Only what lies near a delta is read: ranges of its values become conditions on what it is matched with.

A delta is small and known before it is joined. Where one of its columns has to equal a column of a table, rows of the
table outside the ranges of the delta's values cannot match; said as conditions on constants, that lets a store skip
files. The result is the same with and without.

Keys that lie scattered lie in ranges that say little. So where values come from is passed on too: a column that has to
equal one of a delta is *among* its values, and whoever reads the table may seek just these. Then the rows that are
sought are few as well, and what other tables have to equal of them is among their values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from strandline.algebra.constraints import column_of
from strandline.algebra.equality import alike_types, equal_is_same
from strandline.algebra.plan import (
    At,
    Backing,
    Exists,
    Filter,
    Generate,
    GroupBy,
    Join,
    MergeSummary,
    Negate,
    Net,
    OuterJoin,
    Output,
    Plan,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    UnionAll,
    Window,
    children,
    map_children,
    with_inputs,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text, Value
from strandline.algebra.schema import names

MOST_RANGES = 32
"""More ranges than these say little, and are no condition any more."""


Pairs = tuple[tuple[Value, Value], ...]
"""The ends of ranges; a date is the text of one."""


@dataclass(frozen=True)
class Origin:
    """The values of a field of a scan: of a stored delta or bag, or of the rows that are sought in a table."""

    scan: Scan
    field: str


@dataclass(frozen=True)
class Ranges:
    """Values of a *type* lie in one of *pairs* of constants, ends included, or are NULL if *nulls*.

    They are *among* those of some origins, if there are any. Without pairs nothing is known of where they lie.
    """

    type: str
    pairs: tuple[tuple[Scalar, Scalar], ...]
    nulls: bool = False
    among: tuple[Origin, ...] = ()

    @property
    def values(self) -> Pairs:
        """The ends themselves."""
        return tuple((_value(low), _value(high)) for low, high in self.pairs)

    def condition(self, column: str) -> Scalar:
        """That the value of a column lies in one of the ranges, and is not NULL."""
        tests = tuple(
            Call("=", (Col(column), low))
            if low == high
            else Call("and", (Call(">=", (Col(column), low)), Call("<=", (Col(column), high))))
            for low, high in self.pairs
        )
        return tests[0] if len(tests) == 1 else Call("or", tests)


def _value(constant: Scalar) -> Value:
    found = constant.meaning if isinstance(constant, Text) else constant
    return found.value if isinstance(found, Lit) else None


Limits = Mapping[str, Ranges]
"""By column."""


@dataclass(frozen=True)
class Near(Scan):
    """A table below conditions that were added, and that change no result: columns lie within *limits*."""

    limits: tuple[tuple[str, Ranges], ...] = ()

    @property
    def sought(self) -> dict[str, tuple[Origin, ...]]:
        """The columns whose values are among known ones, and where these come from."""
        return {column: ranges.among for column, ranges in self.limits if ranges.among}


RangesOf = Callable[[Scan, str], Ranges | None]
"""The ranges of a field of a scanned delta or bag, if they are known."""


def near(plan: Plan, ranges_of: RangesOf) -> Plan:
    """*plan*, reading of tables only what its deltas can meet; a part that stands in several places still does."""
    lying = _Lying(ranges_of)
    known: dict[int, tuple[Plan, Plan]] = {}

    def visit(part: Plan) -> Plan:
        if id(part) not in known:
            known[id(part)] = part, _near(map_children(part, visit), lying)
        return known[id(part)][1]

    return visit(plan)


def limits_of(plan: Plan, ranges_of: RangesOf) -> Limits:
    """The columns of *plan* whose values are known to lie in ranges."""
    return _Lying(ranges_of).limits(plan)


def _near(found: Plan, lying: _Lying) -> Plan:
    """A plan whose inputs are near each other already."""
    match found:
        case Join():
            return _near_each_other(found, lying)
        case SemiJoin(child, values, keys):
            pairs = zip(values, lying.ranges(keys, names(keys.columns)), strict=True)
            return with_inputs(found, input=_restricted(child, _matched(pairs)))
        case Exists(left, right, keys) | OuterJoin(left, right, keys, full=False):
            ours = lying.limits(left)
            limits = {b: ours[a] for a, b in _columns(keys) if a in ours}
            return with_inputs(found, right=_restricted(right, limits))
        case MergeSummary(old, summary, keys):
            pairs = zip(map(Col, keys), lying.ranges(summary, keys), strict=True)
            return with_inputs(found, old=_restricted(old, _matched(pairs)))
        case _:
            return found


def _near_each_other(join: Join, lying: _Lying) -> Join:
    """A join whose inputs are restricted by each other; what is sought in one may tell what to seek in the next."""
    for _ in join.inputs:
        limits = _with_nulls(_spread(lying.of_all(join.inputs), join))
        restricted = with_inputs(join, inputs=tuple(_restricted(child, limits) for child in join.inputs))
        if restricted is join:
            break
        join = restricted
    return join


def tables_read(plan: Plan) -> Iterable[tuple[Scan, Limits]]:
    """The tables that a plan reads, each as often as it does, with what it asks of each; a plan of :func:`near`."""
    if isinstance(plan, Scan) and isinstance(plan.operand, At | Backing):
        yield plan, dict(plan.limits) if isinstance(plan, Near) else {}
    for child in children(plan):
        yield from tables_read(child)


def _matched(pairs: Iterable[tuple[Scalar, Ranges | None]]) -> Limits:
    """Limits of values that are matched NULL with NULL."""
    found = ((column_of(value), ranges) for value, ranges in pairs)
    return _with_nulls({column: ranges for column, ranges in found if column is not None and ranges is not None})


def _with_nulls(limits: Limits) -> Limits:
    """Limits of rows that are needed if they have a NULL too: then no range holds all, but it is among the values."""
    return {
        column: replace(ranges, pairs=()) if ranges.nulls else ranges
        for column, ranges in limits.items()
        if ranges.among or not ranges.nulls
    }


class _Lying:
    """In which ranges the columns of plans lie; what is known of one is found out once."""

    def __init__(self, ranges_of: RangesOf) -> None:
        self._ranges_of = ranges_of
        self._found: dict[int, tuple[Plan, Limits]] = {}
        """By the identity of plans, which are held here, so that no other one takes it."""

    def limits(self, plan: Plan) -> Limits:
        """The columns of *plan* whose values are known to lie in ranges."""
        if id(plan) not in self._found:
            self._found[id(plan)] = (plan, self._limits(plan))
        return self._found[id(plan)][1]

    def ranges(self, plan: Plan, columns: Sequence[str]) -> list[Ranges | None]:
        """The same of some columns, in their order."""
        found = self.limits(plan)
        return [found.get(column) for column in columns]

    def of_all(self, inputs: Iterable[Plan]) -> dict[str, Ranges]:
        """The same of inputs that have no column in common."""
        return {name: ranges for child in inputs for name, ranges in self.limits(child).items()}

    def _limits(self, plan: Plan) -> Limits:
        match plan:
            case Near():
                return {**_found_values(plan), **{c: replace(r, nulls=r.nulls and not r.pairs) for c, r in plan.limits}}
            case Scan(operand=At() | Backing()):
                return {}
            case Scan():
                pairs = zip(plan.columns, plan.fields, strict=True)
                found = {column.name: self._ranges_of(plan, field.name) for column, field in pairs}
                return {name: ranges for name, ranges in found.items() if ranges is not None}
            case Project(child, outputs):
                return _passed(self.limits(child), outputs)
            case GroupBy(child, keys):
                return _passed(self.limits(child), keys)
            case Join(inputs):
                return _spread(self.of_all(inputs), plan)
            case UnionAll(inputs):
                return _united(plan, [self.limits(child) for child in inputs])
            case SemiJoin(child, values, keys):
                known = zip(values, self.ranges(keys, names(keys.columns)), strict=True)
                met = {column_of(value): ranges for value, ranges in known if ranges is not None}
                own = {
                    c.name: met[c.name]
                    for c in child.columns
                    if c.name in met and alike_types(met[c.name].type, c.type)
                }
                return {**own, **self.limits(child)}
            case MergeSummary(_, summary, keys):
                of_groups = self.limits(summary)
                return {key: of_groups[key] for key in keys if key in of_groups}
            case Filter(input=child) | Repeat(input=child) | Generate(input=child):
                return self.limits(child)
            case Negate(input=child) | Net(input=child) | Exists(left=child) | Window(input=child):
                return self.limits(child)
            case OuterJoin(left=child, full=False):
                return self.limits(child)
            case _:
                return {}


def _found_values(scan: Near) -> Limits:
    """The columns of a table in which few rows are sought: their values are those of these rows.

    But for those of types in which values that are not the same may be equal: other rows than these meet them.
    """
    if not scan.sought:
        return {}
    pairs = [(c, f) for c, f in zip(scan.columns, scan.fields, strict=True) if equal_is_same(c.type)]
    return {column.name: Ranges(column.type, (), nulls=True, among=(Origin(scan, f.name),)) for column, f in pairs}


def _passed(below: Limits, outputs: Iterable[Output]) -> Limits:
    found = ((output.name, column_of(output.value)) for output in outputs)
    return {name: below[column] for name, column in found if column is not None and column in below}


def _united(plan: UnionAll, parts: Sequence[Limits]) -> Limits:
    """What all inputs are known to lie in, by place."""
    found: dict[str, Ranges] = {}
    for place, column in enumerate(plan.columns):
        each = [known.get(child.columns[place].name) for child, known in zip(plan.inputs, parts, strict=True)]
        ranges = [one for one in each if one is not None]
        alike = all(alike_types(one.type, column.type) for one in ranges)
        if len(ranges) == len(each) and alike:
            united = _either(column.type, ranges)
            if united.pairs or united.among:
                found[column.name] = united
    return found


def _either(kind: str, parts: Sequence[Ranges]) -> Ranges:
    """Values that lie in the ranges of one of *parts*."""
    pairs = tuple(dict.fromkeys(pair for one in parts for pair in one.pairs))
    told = all(one.pairs for one in parts) and len(pairs) <= MOST_RANGES
    among = tuple(dict.fromkeys(origin for one in parts for origin in one.among))
    nulls = any(one.nulls for one in parts)
    return Ranges(kind, pairs if told else (), nulls, among if all(one.among for one in parts) else ())


def _spread(known: Limits, join: Join) -> Limits:
    """The same of columns that have to equal one of known ranges: no NULL is among them."""
    types = {column.name: column.type for column in join.columns}
    found = dict(known)
    equal = list(_columns(c.args for c in join.conditions if isinstance(c, Call) and c.op == "="))
    for _ in equal:
        for one, other in (*equal, *((b, a) for a, b in equal)):
            if one in found and other not in found and alike_types(found[one].type, types[other]):
                found[other] = replace(found[one], nulls=False)
    return found


def _columns(pairs: Iterable[Sequence[Scalar]]) -> Iterable[tuple[str, str]]:
    """Pairs that are nothing but columns."""
    for one, other in pairs:
        a, b = column_of(one), column_of(other)
        if a is not None and b is not None:
            yield a, b


def _restricted(plan: Plan, limits: Limits) -> Plan:
    """The rows of *plan* that lie within *limits*, as far as its tables can be asked for them; perhaps more."""
    own = {column.name: column.type for column in plan.columns}
    limits = {name: ranges for name, ranges in limits.items() if name in own and alike_types(ranges.type, own[name])}
    if not limits:
        return plan
    match plan:
        case Scan(operand=At() | Backing()):
            return _table_within(plan, limits)
        case Project(child, outputs):
            return with_inputs(plan, input=_restricted(child, _reversed(limits, outputs)))
        case GroupBy(child, keys) if keys:
            return with_inputs(plan, input=_restricted(child, _reversed(limits, keys)))
        case Join(inputs):
            spread = _spread(limits, plan)
            return with_inputs(plan, inputs=tuple(_restricted(child, spread) for child in inputs))
        case UnionAll(inputs):
            placed = (_restricted(child, _by_place(plan, child, limits)) for child in inputs)
            return with_inputs(plan, inputs=tuple(placed))
        case Filter(input=child) | SemiJoin(input=child) | Repeat(input=child) | Generate(input=child):
            return with_inputs(plan, input=_restricted(child, limits))
        case Negate(input=child) | Net(input=child):
            return with_inputs(plan, input=_restricted(child, limits))
        case Exists(left, right, keys) | OuterJoin(left, right, keys, full=False):
            # What the right side has of rows that lie outside does not matter, nor do rows that miss it.
            theirs = {b: limits[a] for a, b in _columns(keys) if a in limits}
            return with_inputs(plan, left=_restricted(left, limits), right=_restricted(right, theirs))
        case Window(child, partition):
            whole = {column_of(value) for value in partition}
            return with_inputs(plan, input=_restricted(child, {c: r for c, r in limits.items() if c in whole}))
        case _:
            return plan


def _table_within(scan: Scan, limits: Limits) -> Plan:
    types = {column.name: column.type for column in scan.columns}
    known = scan.limits if isinstance(scan, Near) else ()
    # What is sought in a table already is not sought by values of rows that were found so.
    sought = isinstance(scan, Near) and bool(scan.sought)
    told = {c: replace(r, among=()) if sought else r for c, r in limits.items() if alike_types(r.type, types[c])}
    lying = {(c, r.pairs) for c, r in known}
    added = [(c, r) for c, r in told.items() if (r.pairs and (c, r.pairs) not in lying) or r.among]
    plan: Plan = Near(scan.operand, scan.alias, scan.fields, scan.key, (*known, *added)) if added else scan
    for column, ranges in added:
        if ranges.pairs:
            plan = Filter(plan, ranges.condition(column))
    return plan


def _reversed(limits: Limits, outputs: Iterable[Output]) -> Limits:
    found = ((column_of(output.value), limits.get(output.name)) for output in outputs)
    return {column: ranges for column, ranges in found if column is not None and ranges is not None}


def _by_place(union: UnionAll, child: Plan, limits: Limits) -> Limits:
    pairs = zip(union.columns, child.columns, strict=True)
    return {theirs.name: limits[ours.name] for ours, theirs in pairs if ours.name in limits}
