"""Algebra to Spark SQL.

A signed relation is rendered with *unit rows*: a column ``__sign`` that is 1 or -1, a row with multiplicity n being n
rows. So a sum over decimals needs no multiplication, which would change its type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

from strandline.algebra.few import Few
from strandline.algebra.plan import (
    COUNT,
    Change,
    Exists,
    Filter,
    Generate,
    GroupBy,
    Join,
    Limit,
    MergeSummary,
    Negate,
    Net,
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
    key,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Schema, names
from strandline.sql.names import literal, quoted, quoted_list

SIGN = "__sign"
"""Name of the sign column of unit rows."""

Binding = Callable[[Scan], str]
"""The SELECT that yields the fields of a scan, and ``__sign`` where its operand is a change."""


def render(plan: Plan, bind: Binding, *, signed: bool = False) -> str:
    """*plan* as one SELECT; with *signed* it has a ``__sign`` column in any case."""
    rendered = _Renderer(bind).render(plan)
    if signed and not rendered.signed:
        return f"SELECT *, 1 AS {SIGN} FROM ({rendered.sql})"
    return rendered.sql


@dataclass(frozen=True)
class _Rendered:
    sql: str
    signed: bool


@dataclass(frozen=True)
class _Source:
    """An item of a FROM clause: its text, where its columns are, and its sign."""

    sql: str
    alias: str
    columns: Mapping[str, str]
    sign: str | None


class _Renderer:
    def __init__(self, bind: Binding) -> None:
        self._bind = bind
        self._aliases = 0

    def render(self, plan: Plan) -> _Rendered:
        match plan:
            case Scan() | Filter() | Project() | Join():
                return self._select(plan)
            case UnionAll(inputs):
                return self._union_all(inputs, plan.columns)
            case Negate(child):
                below = self.render(child)
                sign = f"-{SIGN}" if below.signed else "-1"
                return _Rendered(f"SELECT {_list(child.columns)}, {sign} AS {SIGN} FROM ({below.sql})", True)
            case Net():
                return self._net(plan)
            case GroupBy():
                return self._group_by(plan)
            case MergeSummary():
                return self._merge_summary(plan)
            case SemiJoin():
                return self._semi_join(plan)
            case Exists():
                return self._exists(plan)
            case OuterJoin():
                return self._outer_join(plan)
            case Window():
                return self._window(plan)
            case Repeat():
                return self._repeat(plan)
            case Generate():
                return self._generate(plan)
            case Limit():
                return self._limit(plan)
            case Values():
                return self._values(plan)

    def _select(self, plan: Plan) -> _Rendered:
        """A stack of project, filters, one join and scans as one SELECT."""
        outputs = None
        conditions: list[Scalar] = []
        node = plan
        if isinstance(node, Project):
            outputs, node = node.outputs, node.input
        while isinstance(node, Filter):
            conditions.append(node.condition)
            node = node.input
        hint = ""
        if isinstance(node, Join):
            sources = [self._filtered_source(child, conditions) for child in node.inputs]
            few = [s.alias for child, s in zip(node.inputs, sources, strict=True) if isinstance(child, Few)]
            hint = f"/*+ BROADCAST({quoted_list(few)}) */ " if few else ""
            # Spark joins in the order of the text, so what is small comes first: a delta.
            sources.sort(key=lambda source: source.sign is None)
            conditions.extend(node.conditions)
        elif isinstance(node, SemiJoin):
            later = [condition for condition in conditions if _costly(condition)]
            conditions = [condition for condition in conditions if condition not in later]
            alias = self._alias("t")
            sources = [self._derived(node, alias, self._semi_join(node, later))]
        else:
            sources = [self._source(node)]
        places = {name: place for source in sources for name, place in source.columns.items()}
        if outputs is None:
            items = [f"{places[name]} AS {quoted(name)}" for name in names(plan.columns)]
        else:
            items = [f"{scalar_sql(o.value, places)} AS {quoted(o.name)}" for o in outputs]
        signs = [source.sign for source in sources if source.sign is not None]
        if signs:
            items.append(f"{' * '.join(signs)} AS {SIGN}")
        where = " AND ".join(f"({scalar_sql(condition, places)})" for condition in conditions)
        text = f"SELECT {hint}{', '.join(items)}\nFROM {', '.join(source.sql for source in sources)}"
        return _Rendered(text + (f"\nWHERE {where}" if where else ""), bool(signs))

    def _filtered_source(self, plan: Plan, conditions: list[Scalar]) -> _Source:
        """An input of a join; its own filters move to the WHERE clause of the join."""
        while isinstance(plan, Filter):
            conditions.append(plan.condition)
            plan = plan.input
        return self._source(plan)

    def _source(self, plan: Plan) -> _Source:
        if isinstance(plan, Scan):
            alias = self._alias(plan.alias or "t")
            signed = isinstance(plan.operand, Change)
            sql = self._bind(plan)
            fields = names(plan.fields)
        else:
            alias = self._alias("t")
            return self._derived(plan, alias, self.render(plan))
        columns = {
            name: f"{quoted(alias)}.{quoted(field)}" for name, field in zip(names(plan.columns), fields, strict=True)
        }
        return _Source(f"({sql}) AS {quoted(alias)}", alias, columns, f"{quoted(alias)}.{SIGN}" if signed else None)

    def _derived(self, plan: Plan, alias: str, rendered: _Rendered) -> _Source:
        """What *plan* was rendered as, as an item of a FROM clause."""
        columns = {name: f"{quoted(alias)}.{quoted(name)}" for name in names(plan.columns)}
        sign = f"{quoted(alias)}.{SIGN}" if rendered.signed else None
        return _Source(f"({rendered.sql}) AS {quoted(alias)}", alias, columns, sign)

    def _alias(self, name: str) -> str:
        self._aliases += 1
        return f"{name}_{self._aliases}"

    def _union_all(self, inputs: tuple[Plan, ...], columns: Schema) -> _Rendered:
        parts = [self.render(child) for child in inputs]
        signed = any(part.signed for part in parts)
        texts = []
        for child, part in zip(inputs, parts, strict=True):
            items = [
                f"{quoted(old)} AS {quoted(new)}" if old != new else quoted(new)
                for old, new in zip(names(child.columns), names(columns), strict=True)
            ]
            if signed:
                items.append(SIGN if part.signed else f"1 AS {SIGN}")
            texts.append(f"SELECT {', '.join(items)} FROM ({part.sql})")
        return _Rendered("\nUNION ALL\n".join(texts), signed)

    def _net(self, plan: Net) -> _Rendered:
        below = self.render(plan.input)
        if not below.signed:
            return below
        columns = _list(plan.columns)
        # The sum has a name of its own: not every engine keeps an alias in HAVING apart from a column of that name.
        summed = (
            f"SELECT {columns}, sum({SIGN}) AS __net FROM ({below.sql})\nGROUP BY {columns} HAVING sum({SIGN}) <> 0"
        )
        if _at_most_once(plan.input):
            return _Rendered(f"SELECT {columns}, CAST(__net AS INT) AS {SIGN} FROM ({summed})", True)
        return _Rendered(
            f"SELECT {columns}, CASE WHEN __net > 0 THEN 1 ELSE -1 END AS {SIGN}\n"
            f"FROM ({summed})\nLATERAL VIEW explode(sequence(1, abs(__net))) AS __copy",
            True,
        )

    def _group_by(self, plan: GroupBy) -> _Rendered:
        source = self._source(plan.input)
        keys = [scalar_sql(output.value, source.columns) for output in plan.keys]
        items = [f"{text} AS {quoted(output.name)}" for text, output in zip(keys, plan.keys, strict=True)]
        for partial in plan.partials:
            value = _signed_partial(partial, source) if source.sign else _partial(partial, source)
            items.append(f"CAST({value} AS {partial.column.type}) AS {quoted(partial.name)}")
        text = f"SELECT {', '.join(items)}\nFROM {source.sql}"
        return _Rendered(text + (f"\nGROUP BY {', '.join(keys)}" if keys else ""), False)

    def _merge_summary(self, plan: MergeSummary) -> _Rendered:
        """One pass: each group of the summary beside its old row, read once as old and once as new."""
        summary, old = self.render(plan.summary), self._source(plan.old)
        on = " AND ".join(f"s.{quoted(k)} <=> {old.columns[k]}" for k in plan.keys) or "true"
        items = [f"s.{quoted(k)} AS {quoted(k)}" for k in plan.keys]
        for partial in plan.partials:
            before = old.columns[partial.name]
            items.append(f"{before} AS {quoted('old ' + partial.name)}")
            after = merged_partial(partial, before, f"s.{quoted(partial.name)}")
            items.append(f"{after} AS {quoted('new ' + partial.name)}")
        joined = f"SELECT {', '.join(items)}\nFROM ({summary.sql}) AS s LEFT JOIN {old.sql} ON {on}"
        new_count, old_count = quoted("new " + COUNT), quoted("old " + COUNT)
        chosen = [quoted(k) for k in plan.keys]
        for partial in plan.partials:
            name = partial.name
            chosen.append(
                f"CASE WHEN {SIGN} > 0 THEN {quoted('new ' + name)} ELSE {quoted('old ' + name)} END AS {quoted(name)}"
            )
        changed = " OR ".join(f"NOT ({quoted('new ' + p.name)} <=> {quoted('old ' + p.name)})" for p in plan.partials)
        group = " || ', ' || ".join(f"coalesce(CAST({quoted(k)} AS STRING), 'NULL')" for k in plan.keys) or "'all'"
        # The text depends on a column: an engine may compute a constant error before it knows whether it is needed.
        message = f"'{NEGATIVE_COUNT} a group would have ' || CAST({new_count} AS STRING) || ' rows: ' || {group}"
        kept = f"{new_count} > 0" if plan.keys else "true"
        return _Rendered(
            f"SELECT {', '.join([*chosen, SIGN])}\n"
            f"FROM ({joined}) CROSS JOIN (SELECT -1 AS {SIGN} UNION ALL SELECT 1 AS {SIGN})\n"
            f"WHERE CASE WHEN {new_count} < 0 THEN CAST(raise_error({message}) AS BOOLEAN)\n"
            f"  WHEN {SIGN} > 0 THEN {kept} ELSE {old_count} IS NOT NULL END\n"
            f"  AND ({changed})",
            True,
        )

    def _semi_join(self, plan: SemiJoin, later: Sequence[Scalar] = ()) -> _Rendered:
        """The rows whose values are among the keys, and of these those that meet conditions which are asked *later*.

        An engine asks a condition on one side before it joins. One that speaks of both sides it asks of pairs that
        match; what makes it one is never true of them, and cannot be taken apart.
        """
        inner, later = plan.input, list(later)
        while isinstance(inner, Filter) and _costly(inner.condition):
            later.append(inner.condition)
            inner = inner.input
        source, keys = self._source(inner), self._source(plan.keys)
        pairs = [
            (scalar_sql(value, source.columns), keys.columns[column])
            for value, column in zip(plan.values, names(plan.keys.columns), strict=True)
        ]
        never = f"({pairs[0][0]} IS NULL) <> ({pairs[0][1]} IS NULL)"
        tests = [f"{ours} <=> {theirs}" for ours, theirs in pairs]
        tests += [f"(({scalar_sql(condition, source.columns)}) OR {never})" for condition in later]
        on = " AND ".join(tests)
        items = [f"{source.columns[name]} AS {quoted(name)}" for name in names(plan.columns)]
        if source.sign:
            items.append(f"{source.sign} AS {SIGN}")
        return _Rendered(
            f"SELECT {', '.join(items)}\nFROM {source.sql} LEFT SEMI JOIN {keys.sql} ON {on}", source.sign is not None
        )

    def _exists(self, plan: Exists) -> _Rendered:
        left, right = self._source(plan.left), self._source(plan.right)
        if right.sign:
            raise ValueError("a semi join asks what is there, and a delta is not")
        kind = "ANTI" if plan.negated else "SEMI"
        joined = f"{left.sql} LEFT {kind} JOIN {right.sql} ON {_matching(plan, left, right)}"
        return _Rendered(f"SELECT {', '.join(self._items(left, plan.columns))}\nFROM {joined}", left.sign is not None)

    def _outer_join(self, plan: OuterJoin) -> _Rendered:
        left, right = self._source(plan.left), self._source(plan.right)
        if left.sign or right.sign:
            return self.render(decomposed(plan))
        kind = "FULL" if plan.full else "LEFT"
        places = {**left.columns, **right.columns}
        items = [f"{places[name]} AS {quoted(name)}" for name in names(plan.columns)]
        return _Rendered(
            f"SELECT {', '.join(items)}\nFROM {left.sql} {kind} JOIN {right.sql} ON {_matching(plan, left, right)}",
            False,
        )

    def _window(self, plan: Window) -> _Rendered:
        source = self._source(plan.input)
        if source.sign:
            raise ValueError("a window function reads whole partitions, and a delta is not one")
        items = self._items(source, plan.input.columns)
        items += [f"{scalar_sql(o.value, source.columns)} AS {quoted(o.name)}" for o in plan.outputs]
        return _Rendered(f"SELECT {', '.join(items)}\nFROM {source.sql}", False)

    def _repeat(self, plan: Repeat) -> _Rendered:
        source = self._source(plan.input)
        items = self._items(source, plan.columns)
        times = scalar_sql(plan.times, source.columns)
        return _Rendered(
            f"SELECT {', '.join(items)}\nFROM {source.sql}\n"
            f"LATERAL VIEW explode(CASE WHEN {times} > 0 THEN sequence(1, {times}) END) AS __copy",
            source.sign is not None,
        )

    def _generate(self, plan: Generate) -> _Rendered:
        source = self._source(plan.input)
        alias = self._alias("g")
        made = quoted_list(f"g{number}" for number in range(len(plan.made)))
        items = self._items(source, plan.input.columns)
        sign = items.pop() if source.sign else None
        items += [f"{quoted(alias)}.g{number} AS {quoted(c.name)}" for number, c in enumerate(plan.made)]
        outer = "OUTER " if plan.outer else ""
        return _Rendered(
            f"SELECT {', '.join([*items, *([sign] if sign else [])])}\nFROM {source.sql}\n"
            f"LATERAL VIEW {outer}{scalar_sql(plan.generator, source.columns)} {quoted(alias)} AS {made}",
            source.sign is not None,
        )

    def _limit(self, plan: Limit) -> _Rendered:
        source = self._source(plan.input)
        if source.sign:
            raise ValueError("the first rows are chosen of all rows, and a delta is not all")
        text = f"SELECT {', '.join(self._items(source, plan.columns))}\nFROM {source.sql}"
        if plan.order:
            # By what is shown: over a union Spark's optimizer fails for an order by what is not.
            shown = {name: quoted(name) for name in names(plan.columns)}
            text += f"\nORDER BY {', '.join(scalar_sql(value, shown) for value in plan.order)}"
        text += "" if plan.count is None else f"\nLIMIT {plan.count}"
        return _Rendered(text + (f"\nOFFSET {plan.offset}" if plan.offset else ""), False)

    def _values(self, plan: Values) -> _Rendered:
        rows = [
            ", ".join(f"CAST({_operand(v, {})} AS {c.type})" for v, c in zip(row, plan.columns, strict=True))
            for row in plan.rows
        ]
        listed = ", ".join(f"({row})" for row in rows)
        return _Rendered(f"SELECT * FROM VALUES {listed} AS {self._alias('v')}({_list(plan.columns)})", False)

    def _items(self, source: _Source, columns: Schema) -> list[str]:
        items = [f"{source.columns[name]} AS {quoted(name)}" for name in names(columns)]
        return [*items, f"{source.sign} AS {SIGN}"] if source.sign else items


def _matching(plan: Exists | OuterJoin, left: _Source, right: _Source) -> str:
    both = {**left.columns, **right.columns}
    tests = [
        f"({scalar_sql(ours, left.columns)}) = ({scalar_sql(theirs, right.columns)})" for ours, theirs in plan.keys
    ]
    tests += [f"({scalar_sql(condition, both)})" for condition in plan.conditions]
    return " AND ".join(tests) or "true"


NEGATIVE_COUNT = "[NEGATIVE_COUNT]"


def _costly(condition: Scalar) -> bool:
    """Whether a condition may be more work than looking a key up: it calls functions, or looks into texts."""
    return isinstance(condition, Text) and condition.meaning is None


def _at_most_once(plan: Plan) -> bool:
    """Whether no row can come out of netting *plan* with a multiplicity other than 1 or -1."""
    match plan:
        case UnionAll(inputs=inputs):
            return all(_at_most_once(child) for child in inputs) and all(
                isinstance(child, GroupBy | Negate) for child in inputs
            )
        case Negate(input=child):
            return _at_most_once(child)
        case GroupBy():
            return True
        case SemiJoin(input=child):
            return _at_most_once(child)
        case Scan():
            return key(plan) is not None
        case _:
            return False


def _list(columns: Schema) -> str:
    return quoted_list(names(columns))


def _partial(partial: Partial, source: _Source) -> str:
    """A partial aggregate over an ordinary bag."""
    argument = None if partial.argument is None else scalar_sql(partial.argument, source.columns)
    if partial.kind == "opaque":
        assert argument is not None
        return argument
    if partial.where is not None:
        condition = scalar_sql(partial.where, source.columns)
        argument = f"CASE WHEN {condition} THEN {'1' if argument is None else argument} END"
    match partial.kind:
        case "count":
            return "count(*)" if argument is None else f"count({argument})"
        case "sum":
            return f"coalesce(sum({argument}), 0)"
        case "min" | "max":
            return f"{partial.kind}({argument})"


def _signed_partial(partial: Partial, source: _Source) -> str:
    """A partial aggregate over unit rows: what was inserted less what was deleted."""
    argument = None if partial.argument is None else scalar_sql(partial.argument, source.columns)
    chosen = "" if partial.where is None else f" AND ({scalar_sql(partial.where, source.columns)})"
    if partial.kind == "count":
        counted = "" if argument is None else f" AND ({argument}) IS NOT NULL"
        test = f"({source.sign} IS NOT NULL{chosen}{counted})"
        return f"coalesce(sum(CASE WHEN {test} THEN {source.sign} END), 0)"
    if partial.kind == "sum":
        inserted, deleted = (
            f"coalesce(sum(CASE WHEN {source.sign} {side} 0{chosen} THEN {argument} END), 0)" for side in (">", "<")
        )
        return f"{inserted} - {deleted}"
    if partial.kind in ("min", "max"):
        return f"{partial.kind}(CASE WHEN {source.sign} > 0{chosen} THEN {argument} END)"
    raise ValueError(f"aggregate {partial.name} cannot be computed from a delta")


def merged_partial(partial: Partial, before: str, change: str) -> str:
    """A stored partial aggregate after a change of it, which a summary delta says."""
    if partial.invertible:
        return f"CAST(coalesce({before}, 0) + {change} AS {partial.column.type})"
    chosen = "least" if partial.kind == "min" else "greatest"
    return f"{chosen}({before}, {change})"


def scalar_sql(scalar: Scalar, columns: Mapping[str, str]) -> str:
    """*scalar* as text, its columns being at *columns*."""
    match scalar:
        case Col(name):
            return columns[name]
        case Lit(value):
            return _constant(value)
        case Text(fragments):
            parts = []
            for fragment in fragments:
                if isinstance(fragment, str):
                    parts.append(fragment)
                else:
                    text = scalar_sql(fragment, columns)
                    parts.append(text if isinstance(fragment, Col | Lit) else f"({text})")
            return "".join(parts)
        case Call(op, args):
            return _call(op, [_operand(arg, columns) for arg in args])


def _operand(scalar: Scalar, columns: Mapping[str, str]) -> str:
    text = scalar_sql(scalar, columns)
    return text if isinstance(scalar, Col | Lit) else f"({text})"


def _constant(value: object) -> str:
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case Decimal():
            return f"{value}BD"
        case float():
            return f"double('{value}')"
        case str():
            return literal(value)
        case _:
            return str(value)


def _call(op: str, args: list[str]) -> str:
    match op:
        case "not":
            return f"NOT {args[0]}"
        case "is null" | "is not null":
            return f"{args[0]} {op.upper()}"
        case "coalesce":
            return f"coalesce({', '.join(args)})"
        case "case":
            pairs = "".join(f" WHEN {args[i]} THEN {args[i + 1]}" for i in range(0, len(args) - 1, 2))
            return f"CASE{pairs}{f' ELSE {args[-1]}' if len(args) % 2 else ''} END"
        case _:
            return f" {op.upper()} ".join(args)
