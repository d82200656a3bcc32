"""The in-memory evaluator: reference semantics of plans over signed bags, with SQL's NULL rules.

It knows a small set of scalar operators. What the rest of the product computes on Spark is tested against it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable
from decimal import Decimal
from typing import Any

from strandline.algebra.bag import Row, SignedBag, SignedRow, canonical, negate, product, project, select
from strandline.algebra.plan import (
    COUNT,
    Exists,
    Filter,
    Generate,
    GroupBy,
    Join,
    Limit,
    MergeSummary,
    Negate,
    Net,
    Operand,
    OuterJoin,
    Partial,
    Plan,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    Window,
    decomposed,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Schema, names

Environment = Callable[[Operand], SignedBag]
"""What each operand stands for; rows in the order of the scan's fields."""


class NegativeCount(ValueError):
    """A delta deletes rows that are not there."""


def evaluate(plan: Plan, environment: Environment) -> SignedBag:
    """The signed bag that *plan* denotes."""
    return SignedBag(_rows(plan, environment))


def _rows(plan: Plan, env: Environment) -> Iterable[SignedRow]:
    match plan:
        case Scan(operand=operand):
            return env(operand).items()
        case Values(values_rows, _):
            return [(tuple(compiled(value, ())(()) for value in row), 1) for row in values_rows]
        case Filter(child, condition):
            test = compiled(condition, child.columns)
            return select(_rows(child, env), lambda row: test(row) is True)
        case Project(child, outputs):
            values = [compiled(output.value, child.columns) for output in outputs]
            return project(_rows(child, env), lambda row: tuple(value(row) for value in values))
        case Join():
            return _join(plan, env)
        case UnionAll(inputs):
            return [signed for child in inputs for signed in _rows(child, env)]
        case Negate(child):
            return negate(_rows(child, env))
        case Net(child):
            return SignedBag(_rows(child, env)).items()
        case GroupBy():
            return _group_by(plan, _rows(plan.input, env))
        case MergeSummary():
            return _merge_summary(plan, _rows(plan.old, env), _rows(plan.summary, env))
        case Exists():
            return _exists(plan, env)
        case OuterJoin():
            return [signed for part in decomposed(plan).inputs for signed in _rows(part, env)]
        case Repeat(child, times):
            read_times = compiled(times, child.columns)
            return [(row, count * max(read_times(row) or 0, 0)) for row, count in _rows(child, env)]
        case Window() | Generate() | Limit():
            raise NotEvaluable(f"{type(plan).__name__} is known to Spark only")
        case SemiJoin(child, values_, keys):
            wanted = SignedBag((row, 1) for row, _ in _rows(keys, env))
            read = [compiled(value, child.columns) for value in values_]
            return select(_rows(child, env), lambda row: tuple(value(row) for value in read) in wanted)


def _join(plan: Join, env: Environment) -> Iterable[SignedRow]:
    rows: Iterable[SignedRow] = [((), 1)]
    columns: Schema = ()
    waiting = list(plan.conditions)
    for child in plan.inputs:
        equated = [pair for c in waiting if (pair := _equated(c, columns, child.columns)) is not None]
        rows = _matched(rows, columns, _rows(child, env), child.columns, equated)
        columns = columns + child.columns
        for condition in [c for c in waiting if _readable(c, columns)]:
            waiting.remove(condition)
            test = compiled(condition, columns)
            rows = [signed for signed in rows if test(signed[0]) is True]
    return rows


def _equated(condition: Scalar, left: Schema, right: Schema) -> tuple[Scalar, Scalar] | None:
    """The sides of a condition that equates a value of *left* with one of *right*, in that order."""
    match condition:
        case Call("=", (one, other)):
            if _readable(one, left) and _readable(other, right):
                return one, other
            if _readable(other, left) and _readable(one, right):
                return other, one
    return None


def _matched(
    left: Iterable[SignedRow],
    left_columns: Schema,
    right: Iterable[SignedRow],
    right_columns: Schema,
    equated: list[tuple[Scalar, Scalar]],
) -> list[SignedRow]:
    """The pairs of rows whose *equated* values may be equal, found by hashing; all pairs if there are none."""
    if not equated:
        return product(left, right)
    ours = [compiled(one, left_columns) for one, _ in equated]
    theirs = [compiled(other, right_columns) for _, other in equated]
    by_value: dict[Row, list[SignedRow]] = {}
    for signed in right:
        by_value.setdefault(tuple(canonical(value(signed[0])) for value in theirs), []).append(signed)
    found = []
    for row, count in left:
        wanted = tuple(canonical(value(row)) for value in ours)
        found += [(row + other, count * times) for other, times in by_value.get(wanted, ())]
    return found


def _exists(plan: Exists, env: Environment) -> list[SignedRow]:
    """What is on the right counts if its multiplicity is not zero: a state has no negative ones."""
    right = [row for row, count in SignedBag(_rows(plan.right, env)).items() if count]
    ours = [compiled(value, plan.left.columns) for value, _ in plan.keys]
    theirs = [compiled(value, plan.right.columns) for _, value in plan.keys]
    tests = [compiled(condition, plan.left.columns + plan.right.columns) for condition in plan.conditions]
    by_key: dict[Row, list[Row]] = {}
    for row in right:
        found = tuple(canonical(value(row)) for value in theirs)
        if None not in found:
            by_key.setdefault(found, []).append(row)
    kept = []
    for row, count in _rows(plan.left, env):
        wanted = tuple(canonical(value(row)) for value in ours)
        matches = any(all(test(row + other) is True for test in tests) for other in by_key.get(wanted, ()))
        if matches != plan.negated:
            kept.append((row, count))
    return kept


def _readable(condition: Scalar, columns: Schema) -> bool:
    from strandline.algebra.scalar import columns as read

    return read(condition) <= set(names(columns))


def _group_by(plan: GroupBy, rows: Iterable[SignedRow]) -> list[SignedRow]:
    columns = plan.input.columns
    keys = [compiled(key.value, columns) for key in plan.keys]
    groups: dict[Row, list[SignedRow]] = {}
    if not plan.keys:
        groups[()] = []
    for row, count in rows:
        groups.setdefault(tuple(canonical(key(row)) for key in keys), []).append((row, count))
    result: list[SignedRow] = []
    for group, members in groups.items():
        partials = tuple(_partial(partial, columns, members) for partial in plan.partials)
        size = sum(count for _, count in members)
        if size > 0 or plan.keep_empty or not plan.keys:
            result.append((group + partials, 1))
    return result


def _partial(partial: Partial, columns: Schema, members: list[SignedRow]) -> Any:
    if partial.where is not None:
        test = compiled(partial.where, columns)
        members = [signed for signed in members if test(signed[0]) is True]
    if partial.argument is None:
        return sum(count for _, count in members)
    read = compiled(partial.argument, columns)
    values = [(value, count) for row, count in members if (value := read(row)) is not None]
    if partial.kind == "count":
        return sum(count for _, count in values)
    if partial.kind == "sum":
        return sum(value * count for value, count in values)
    if partial.kind == "opaque":
        raise NotEvaluable(f"aggregate {partial.name} is known to Spark only")
    net = SignedBag(((value,), count) for value, count in values)
    present = [row[0] for row, count in net.items() if count > 0]
    if not present:
        return None
    return _extreme(partial, present)


def _merge_summary(plan: MergeSummary, old_rows: Iterable[SignedRow], summary: Iterable[SignedRow]) -> list[SignedRow]:
    width = len(plan.keys)
    old = {row[:width]: row for row, _ in old_rows}
    count_at = width + [partial.name for partial in plan.partials].index(COUNT)
    result: list[SignedRow] = []
    for change, _ in summary:
        key = change[:width]
        rows = [row for row in (old.get(key), change) if row is not None]
        merged = key + tuple(
            _merged(partial, [row[width + place] for row in rows]) for place, partial in enumerate(plan.partials)
        )
        if merged[count_at] < 0:
            raise NegativeCount(f"group {key} would have {merged[count_at]} rows")
        if key in old:
            result.append((old[key], -1))
        if merged[count_at] > 0 or not plan.keys:
            result.append((merged, 1))
    return list(SignedBag(result).items())


def _merged(partial: Partial, values: list[Any]) -> Any:
    if partial.invertible:
        return sum(values)
    present = [value for value in values if value is not None]
    if not present:
        return None
    return _extreme(partial, present)


def _extreme(partial: Partial, values: list[Any]) -> Any:
    return min(values, key=_rank) if partial.kind == "min" else max(values, key=_rank)


def _rank(value: Any) -> tuple[bool, Any]:
    """Spark's order of non-NULL values: NaN equals NaN and is above all numbers."""
    return (True, 0) if value != value else (False, value)


class NotEvaluable(ValueError):
    """The expression lies outside the evaluator's subset."""


def compiled(scalar: Scalar, columns: Schema) -> Callable[[Row], Any]:
    """*scalar* as a function of a row with *columns*."""
    match scalar:
        case Col(name):
            place = names(columns).index(name)
            return lambda row: row[place]
        case Lit(value):
            return lambda row: value
        case Text(meaning=None):
            raise NotEvaluable(f"{scalar.fragments} is known to Spark only")
        case Text(meaning=meaning):
            assert meaning is not None
            return compiled(meaning, columns)
        case Call(op, args):
            functions = [compiled(arg, columns) for arg in args]
            return _call(op, functions)


_STRICT: dict[str, Callable[[Any, Any], Any]] = {
    "=": lambda a, b: _rank(a) == _rank(b),
    "<>": lambda a, b: _rank(a) != _rank(b),
    "<": lambda a, b: _rank(a) < _rank(b),
    "<=": lambda a, b: _rank(a) <= _rank(b),
    ">": lambda a, b: _rank(a) > _rank(b),
    ">=": lambda a, b: _rank(a) >= _rank(b),
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": lambda a, b: Decimal(a) / Decimal(b) if isinstance(a, Decimal) else a / b,
    "%": lambda a, b: math.fmod(a, b) if isinstance(a, float) or isinstance(b, float) else _remainder(a, b),
}


def _remainder(a: Any, b: Any) -> Any:
    """The remainder with the sign of *a*, without a detour over floats."""
    size = abs(a) % abs(b)
    return size if a >= 0 else -size


def _call(op: str, args: list[Callable[[Row], Any]]) -> Callable[[Row], Any]:
    if op in _STRICT:
        function = _STRICT[op]

        def strict(row: Row) -> Any:
            left, right = args[0](row), args[1](row)
            return None if left is None or right is None else function(left, right)

        return strict
    if op in ("and", "or"):
        deciding = op == "or"

        def three_valued(row: Row) -> bool | None:
            values = [arg(row) for arg in args]
            if deciding in values:
                return deciding
            return None if None in values else not deciding

        return three_valued
    match op:
        case "<=>":
            return lambda row: _rank(args[0](row)) == _rank(args[1](row))
        case "not":
            return lambda row: None if (value := args[0](row)) is None else not value
        case "is null":
            return lambda row: args[0](row) is None
        case "is not null":
            return lambda row: args[0](row) is not None
        case "coalesce":
            return lambda row: next((v for arg in args if (v := arg(row)) is not None), None)
        case "case":
            return lambda row: _case(args, row)
        case _:
            raise NotEvaluable(f"operator {op} is known to Spark only")


def _case(args: list[Callable[[Row], Any]], row: Row) -> Any:
    for place in range(0, len(args) - 1, 2):
        if args[place](row) is True:
            return args[place + 1](row)
    return args[-1](row) if len(args) % 2 else None
