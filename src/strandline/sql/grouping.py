"""The SELECT list with GROUP BY and HAVING: group keys, stored partial aggregates, and expressions over them."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import replace

from sqlglot import exp

from strandline.algebra.plan import Output, Plan
from strandline.algebra.scalar import Col, Scalar
from strandline.algebra.schema import Column, Schema
from strandline.sql.aggregates import Measure, Partials
from strandline.sql.coverage import Uncovered, check_comparable, check_expression, only
from strandline.sql.coverage import parts as own_parts
from strandline.sql.functions import DECOMPOSED, RECOMPUTED, function_name, is_aggregate
from strandline.sql.names import places, quoted
from strandline.sql.render import scalar_sql
from strandline.sql.scopes import Replacement, Scope, expression
from strandline.sql.shapes import Shape, storable
from strandline.sql.spans import span, tokenize
from strandline.sql.statements import Query

Types = Callable[[str, Schema], Schema]
"""The columns of a SELECT list over an input with the given columns, as Spark types them."""

_ORDER_DEPENDENT = frozenset(["first", "first_value", "last", "last_value", "any_value", "collect_list", "array_agg"])


class Grouping:
    """The SELECT list of one query, with its GROUP BY and HAVING."""

    def __init__(self, query: Query, types: Types, tree: exp.Select, scope: Scope, body: Plan) -> None:
        self.query = query
        self.types = types
        self.tree = tree
        self.scope = scope
        self.body = body
        group = tree.args.get("group")
        if group is not None:
            only(group, "expressions", code="GROUPING_SETS")
            if any(isinstance(node, exp.Rollup | exp.Cube | exp.GroupingSets) for node in group.expressions):
                raise Uncovered("GROUPING_SETS")
        self.group_nodes: list[exp.Expr] = list(group.expressions) if group is not None else []
        self.items: list[tuple[str, exp.Expr | Col]] = list(self._select_list())
        having = tree.args.get("having")
        self.having: exp.Expr | None = None if having is None else having.this
        parts = [node for _, node in self.items if isinstance(node, exp.Expr)]
        aggregated = [*parts, *([self.having] if self.having is not None else [])]
        for node in [*aggregated, *self.group_nodes]:
            check_expression(query, node, scope.values)
        self.needed = group is not None or any(
            is_aggregate(self.query, n) for node in aggregated for n in own_parts(node, scope.values)
        )
        self.aliases: dict[str, Scalar] = {}

    def _select_list(self) -> list[tuple[str, exp.Expr | Col]]:
        found: list[tuple[str, exp.Expr | Col]] = []
        for node in self.tree.expressions:
            star = node if isinstance(node, exp.Star) else node.this if isinstance(node, exp.Column) else None
            if isinstance(star, exp.Star):
                if any(star.args.get(arg) for arg in ("except_", "except", "replace", "rename")):
                    raise Uncovered("CLAUSE", "* EXCEPT and * REPLACE are not maintained incrementally")
                qualifier = node.table if isinstance(node, exp.Column) else ""
                found.extend(self._star(qualifier))
            elif isinstance(node, exp.Alias):
                found.append((node.alias, node.this))
            elif isinstance(node, exp.Aliases):
                raise Uncovered("GENERATOR")
            else:
                found.append((node.output_name or f"col{len(found)}", node))
        return found

    def _star(self, qualifier: str) -> list[tuple[str, exp.Expr | Col]]:
        items = [i for i in self.scope.items if not qualifier or i.answers_to(qualifier)]
        if not qualifier and any(item.hidden for item in items):
            raise Uncovered(
                "NATURAL_JOIN", "SELECT * over JOIN USING is not maintained incrementally; name the columns"
            )
        return [(c.name, item.column(c.name)) for item in items for c in item.columns]

    def plain_outputs(self) -> list[tuple[str, Scalar]]:
        """The SELECT list of a query without aggregates."""
        outputs: list[tuple[str, Scalar]] = []
        for name, node in self.items:
            scalar = node if isinstance(node, Col) else expression(self.query, node, self._column_or_alias)
            self.aliases.setdefault(name.lower(), scalar)
            outputs.append((name, scalar))
        return outputs

    def _column_or_alias(self, part: exp.Expr) -> Replacement | None:
        """A column, or else an alias that stands further left in the SELECT list."""
        if id(part) in self.scope.values:
            return span(part), self.scope.values[id(part)]
        if not isinstance(part, exp.Column):
            return None
        found = self.scope.resolve(part)
        if found is not None:
            return found[1], found[0]
        if len(part.parts) == 1 and part.name.lower() in self.aliases:
            return span(part), self.aliases[part.name.lower()]
        raise self.scope.unknown(part)

    def shape(self) -> Shape:
        """The grouped query: keys, stored partial aggregates, and the SELECT list over them."""
        keys = self._keys()
        measures: dict[str, tuple[exp.Expr, Measure]] = {}
        for node in [n for _, n in self.items if isinstance(n, exp.Expr)] + ([self.having] if self.having else []):
            for call in _aggregate_calls(self.query, node, self.scope.values):
                measures.setdefault(self._signature(call), (call, self._measure(call)))
        keys, typed = self._typed(keys, [measure for _, measure in measures.values()])
        partials = Partials()
        results = {signature: partials.result_of(measure) for signature, measure in zip(measures, typed, strict=True)}
        by_signature = {self._key_signatures[place]: Col(key.name) for place, key in enumerate(keys)}
        by_scalar = {key.value: Col(key.name) for key in keys}

        def known(part: exp.Expr) -> Replacement | None:
            if id(part) in self.scope.values:
                return span(part), self.scope.values[id(part)]
            if is_aggregate(self.query, part):
                return span(part), results[self._signature(part)]
            if not isinstance(part, exp.Literal) and "span" in part.meta:
                key = by_signature.get(self._signature(part))
                if key is not None:
                    return span(part), key
            if isinstance(part, exp.Column):
                found = self.scope.resolve(part)
                if found is not None and found[0] in by_scalar:
                    return found[1], by_scalar[found[0]]
                if len(part.parts) == 1 and part.name.lower() in self.aliases:
                    return span(part), self.aliases[part.name.lower()]
                if found is None:
                    raise self.scope.unknown(part)
                raise Uncovered("CLAUSE", f"{part.name} is neither grouped by nor aggregated")
            return None

        outputs: list[tuple[str, Scalar]] = []
        for name, item in self.items:
            if isinstance(item, Col):
                if item not in by_scalar:
                    raise Uncovered("CLAUSE", f"{name} is neither grouped by nor aggregated")
                scalar: Scalar = by_scalar[item]
            else:
                scalar = expression(self.query, item, known)
            self.aliases.setdefault(name.lower(), scalar)
            outputs.append((name, scalar))
        having = None if self.having is None else expression(self.query, self.having, known)
        return Shape(self.body, tuple(keys), partials, having, tuple(outputs))

    def _keys(self) -> list[Output]:
        """The group keys, named like the output that shows them, else ``__key_n``; types follow."""
        self._key_signatures: list[str] = []
        keys: list[Output] = []
        for node in self.group_nodes:
            chosen = self._grouped_by(node)
            if isinstance(chosen, Col):
                value: Scalar = chosen
                signature = chosen.name
            else:
                if any(is_aggregate(self.query, n) for n in chosen.walk()):
                    raise Uncovered("CLAUSE", "GROUP BY an aggregate")
                value = expression(self.query, chosen, self.scope.column)
                signature = self._signature(chosen)
            if any(key.value == value for key in keys):
                continue
            self._key_signatures.append(signature)
            keys.append(Output(Column(self._key_name(value, signature, keys), ""), value))
        return keys

    def _grouped_by(self, node: exp.Expr) -> exp.Expr | Col:
        """GROUP BY takes an ordinal, a column, an alias of the SELECT list, or an expression."""
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            return self.items[int(node.this) - 1][1]
        if isinstance(node, exp.Column) and len(node.parts) == 1 and self.scope.resolve(node) is None:
            for name, item in self.items:
                if name.lower() == node.name.lower():
                    return item
        return node

    def _key_name(self, value: Scalar, signature: str, keys: list[Output]) -> str:
        taken = {key.name.lower() for key in keys}
        for name, node in self.items:
            shown = node == value if isinstance(node, Col) else self._signature(node) == signature
            if shown and name.lower() not in taken and storable(name):
                return name
        return f"__key_{len(keys) + 1}"

    def _signature(self, node: exp.Expr) -> str:
        """A text that is equal for equal expressions, however their columns, spaces and letters are written.

        It is made of the user's tokens: printed from the tree, different functions may come out the same.
        """
        start, end = span(node)
        columns: dict[int, tuple[int, str]] = {}
        for column in node.find_all(exp.Column):
            found = None if isinstance(column.this, exp.Star) else self.scope.resolve(column)
            if found is not None:
                columns[found[1][0] - start] = (found[1][1] - start, found[0].name)
                if found[1] == (start, end):
                    return found[0].name
        words: list[str] = []
        last = 0
        text = self.query.text[start:end]
        for token in tokenize(text, self.query.file):
            if token.start < last:
                continue
            if token.start in columns:
                last, name = columns[token.start]
                words.append(quoted(name))
            else:
                written = text[token.start : token.end + 1]
                words.append(written.lower() if written.isidentifier() else written)
        return " ".join(words)

    def _measure(self, node: exp.Expr) -> Measure:
        call, where = node, None
        if isinstance(node, exp.Filter):
            call = node.this
            where = self._inner(node.expression.this)
        name = function_name(self.query, node)
        assert name is not None
        if isinstance(call.this, exp.Order) or call.find(exp.Order, exp.IgnoreNulls, exp.RespectNulls) is not None:
            raise Uncovered("ORDER_DEPENDENT", f"{name}() takes its rows in an order")
        distinct = call.find(exp.Distinct) is not None
        text = self._inner(node)
        argument: Scalar | None = None
        arguments = _arguments(call)
        if name in DECOMPOSED and not distinct and len(arguments) == 1:
            if not isinstance(arguments[0], exp.Star):
                argument = self._inner(arguments[0])
        elif distinct or name in RECOMPUTED or name in DECOMPOSED:
            return Measure("opaque", None, None, True, text)
        elif name in _ORDER_DEPENDENT:
            raise Uncovered("ORDER_DEPENDENT", f"the value of {name}() depends on the order of rows")
        else:
            raise Uncovered("AGGREGATE_FUNCTION", f"{name}() is not yet maintained incrementally")
        return Measure(name, argument, where, False, text)

    def _inner(self, node: exp.Expr) -> Scalar:
        """An expression below an aggregate: over the body's columns."""
        return expression(self.query, node, self.scope.column)

    def _typed(self, keys: list[Output], measures: list[Measure]) -> tuple[list[Output], list[Measure]]:
        """Types of keys, arguments and results, as Spark says."""
        at = places(self.body.columns)
        plain = [scalar_sql(key.value, at) for key in keys]
        plain += [scalar_sql(m.argument, at) for m in measures if m.argument is not None]
        key_types: list[Column] = []
        if plain:
            key_types = list(self.types(", ".join(f"{t} AS c{i}" for i, t in enumerate(plain)), self.body.columns))
        results: Schema = ()
        if measures:
            calls = ", ".join(f"{scalar_sql(m.text, at)} AS c{i}" for i, m in enumerate(measures))
            results = self.types(calls, self.body.columns)
        typed_keys = [
            Output(replace(key.column, type=key_types[place].type), key.value) for place, key in enumerate(keys)
        ]
        for key in typed_keys:
            check_comparable(key.column)
        arguments = iter(key_types[len(keys) :])
        typed = [
            replace(m, type=results[i].type, argument_type=next(arguments).type if m.argument is not None else "")
            for i, m in enumerate(measures)
        ]
        for place, measure in enumerate(typed):
            check_comparable(Column(f"of aggregate {place + 1}", measure.type))
        return typed_keys, typed


def _arguments(call: exp.Expr) -> list[exp.Expr]:
    first = [] if isinstance(call, exp.Anonymous) else [call.this, call.args.get("expression")]
    return [argument for argument in (*first, *call.expressions) if argument is not None]


def _aggregate_calls(query: Query, node: exp.Expr, known: Container[int]) -> list[exp.Expr]:
    """The outermost aggregate calls of *node*, with their FILTER clause."""
    if id(node) in known:
        return []
    if is_aggregate(query, node):
        if any(n is not node and is_aggregate(query, n) for n in node.walk()):
            raise Uncovered("AGGREGATE_FUNCTION", "an aggregate inside an aggregate")
        return [node]
    found = []
    for child in node.iter_expressions():
        found.extend(_aggregate_calls(query, child, known))
    return found
