"""GROUP BY: group keys, stored partial aggregates, and what names and aggregate calls mean over them."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace

from sqlglot import exp

from strandline.algebra.plan import Output, Plan
from strandline.algebra.scalar import Col, Scalar, transform
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.schema import Column, Schema, names
from strandline.sql.aggregates import Measure, Partials
from strandline.sql.coverage import Uncovered, check_comparable, check_expression, check_matchable
from strandline.sql.functions import (
    COUNTED,
    DECOMPOSED,
    OTHER_AGGREGATES,
    RECOMPUTED,
    SPREAD,
    function_name,
    is_aggregate,
)
from strandline.sql.grouping_sets import SET, Expanded, grouping_sets
from strandline.sql.names import places, quoted
from strandline.sql.render import scalar_sql
from strandline.sql.scopes import Replacement, Scope, SelectItem, expression
from strandline.sql.shapes import storable
from strandline.sql.spans import Span, span, tokenize
from strandline.sql.statements import Query
from strandline.sql.windows import window_functions

Types = Callable[[str, Schema], Schema]
"""The columns of a SELECT list over an input with the given columns, as Spark types them."""


class Groups(Scope):
    """A grouped query: what its names, keys and aggregates mean over the stored columns of its groups."""

    def __init__(
        self,
        inside: Scope,
        keys: tuple[Output, ...],
        partials: Partials,
        by_signature: Mapping[str, Scalar],
        signature: Callable[[exp.Expr], str],
        apart: Container[int],
    ) -> None:
        """*apart* are nodes that look like aggregates and are none: the functions of window calls."""
        super().__init__(inside.query, (), inside.outer)
        self.inside = inside
        self.keys = keys
        self.partials = partials
        self.values = inside.values
        self._by_signature = by_signature
        self._by_value = {key.value: Col(key.name) for key in keys}
        self._signature = signature
        self._apart = apart
        self._prefix: str | None = None

    def seen_as(self, alias: str) -> None:
        """From here on the stored columns are read under *alias*."""
        self._prefix = alias
        self.aliases = {name: self.read(shown) for name, shown in self.aliases.items()}

    def read(self, scalar: Scalar) -> Scalar:
        """*scalar*, over stored columns, under the alias by which they are read."""
        if self._prefix is None:
            return scalar
        return transform(scalar, lambda column: Col(f"{self._prefix}.{column.name}"))

    def resolve(self, node: exp.Column) -> tuple[Col, Span] | None:
        found = self.inside.resolve(node)
        if found is None:
            return None
        if found[0] not in self._by_value:
            raise Uncovered("CLAUSE", f"{node.name} is neither grouped by nor aggregated")
        read = self.read(self._by_value[found[0]])
        assert isinstance(read, Col)
        return read, found[1]

    def column(self, part: exp.Expr) -> Replacement | None:
        if id(part) in self.values:
            return span(part), self.values[id(part)]
        if id(part) not in self._apart and is_aggregate(self.query, part):
            return span(part), self.read(self._by_signature[self._signature(part)])
        if not isinstance(part, exp.Literal) and "span" in part.meta:
            key = self._by_signature.get(self._signature(part))
            if key is not None:
                return span(part), self.read(key)
        if not isinstance(part, exp.Column):
            return None
        if len(part.parts) == 1 and part.name.lower() in self.aliases and not self._is_key(part):
            return span(part), self.aliases[part.name.lower()]
        found = self.resolve(part)
        if found is None:
            raise self.inside.unknown(part)
        return found[1], found[0]

    def shown(self, item: SelectItem) -> Scalar:
        """What an item of the SELECT list shows, over stored columns; items right of it may use its alias."""
        if isinstance(item.shown, Col):
            if item.shown not in self._by_value:
                raise Uncovered("CLAUSE", f"{item.name} is neither grouped by nor aggregated")
            scalar = self.read(self._by_value[item.shown])
        else:
            scalar = expression(self.query, item.shown, self.column)
        self.aliases.setdefault(item.name.lower(), scalar)
        return scalar

    def name_keys(self, keys: Mapping[Scalar, Col]) -> None:
        """Values of the rows before they were taken once for every set, and the keys that stand for them."""
        self._by_value.update(keys)

    def _is_key(self, part: exp.Column) -> bool:
        found = self.inside.resolve(part)
        return found is not None and found[0] in self._by_value


class Grouping:
    """The GROUP BY of one query, with the aggregates of its SELECT list and HAVING."""

    def __init__(
        self,
        query: Query,
        types: Types,
        tree: exp.Select,
        scope: Scope,
        items: Sequence[SelectItem],
        later: Container[int] = (),
        *,
        exact_floats: bool = False,
    ) -> None:
        """*later* are parts that are compiled over the groups: window functions and subqueries."""
        self.exact_floats = exact_floats
        self.query = query
        self.types = types
        self.scope = scope
        self.items = items
        having = tree.args.get("having")
        self.having: exp.Expr | None = None if having is None else having.this
        shown = [item.shown for item in items if isinstance(item.shown, exp.Expr)]
        self._asked = [*shown, *([self.having] if self.having is not None else [])]
        self._known = _Known(scope.values, later)
        self._apart = {id(own) for node in self._asked for own in window_functions(node)}
        group = tree.args.get("group")
        self.needed = group is not None or any(self._aggregates(node) for node in self._asked)
        self.sets: list[frozenset[int]] | None = None
        self._keys: list[Output] = []
        self._key_signatures: list[str] = []
        for node in self._asked:
            check_expression(query, node, self._known)
        if group is not None:
            self._read_keys(group)

    def _read_keys(self, group: exp.Group) -> None:
        if group.args.get("all"):
            for item in self.items:
                if isinstance(item.shown, Col) or not self._aggregates(item.shown):
                    self._key_place(item.shown)
            return
        sets = grouping_sets(group)
        if sets is None:
            for node in group.expressions:
                self._key_place(self._grouped_by(node))
            return
        self.sets = [frozenset(self._key_place(self._grouped_by(node)) for node in found) for found in sets]

    def _aggregates(self, node: exp.Expr | Col) -> list[exp.Expr]:
        return [] if isinstance(node, Col) else _aggregate_calls(self.query, node, self.scope.values, self._apart)

    def groups(self, body: Plan, alias: Callable[[str], str]) -> tuple[Plan, Groups]:
        """The rows to group, and the groups: keys, stored partial aggregates, and what names mean over them."""
        measures: dict[str, tuple[exp.Expr, Measure]] = {}
        levels: dict[str, exp.Expr] = {}
        for call in [call for node in self._asked for call in self._aggregates(node)]:
            if function_name(self.query, call) in ("grouping", "grouping_id"):
                levels[self._signature(call)] = call
            else:
                measures.setdefault(self._signature(call), (call, self._measure(call)))
        own = set(names(body.columns))
        if not all(columns_of(measure.text) <= own for _, measure in measures.values()):
            raise Uncovered("SUBQUERY", "an aggregate over columns of the outer query")
        keys, typed = self._typed(body, [measure for _, measure in measures.values()])
        partials = Partials(exact_floats=self.exact_floats)
        results: dict[str, Scalar] = {
            signature: partials.result_of(measure) for signature, measure in zip(measures, typed, strict=True)
        }
        results |= {signature: Col(key.name) for signature, key in zip(self._key_signatures, keys, strict=True)}
        if self.sets is None:
            if levels:
                raise Uncovered("GROUPING_SETS", "GROUPING() without grouping sets")
            grouped = Groups(self.scope, tuple(keys), partials, results, self._signature, self._apart)
            return body, grouped
        expanded = Expanded(body, keys, self.sets, alias("sets"))
        for signature, call in levels.items():
            results[signature] = self._level(call, expanded)
        over = [replace(key, value=value) for key, value in zip(keys, expanded.values, strict=True)]
        grouped = Groups(self.scope, (*over, expanded.key), partials, results, self._signature, self._apart)
        grouped.name_keys({key.value: Col(key.name) for key in keys})
        return expanded.body, grouped

    def _level(self, call: exp.Expr, expanded: Expanded) -> Scalar:
        """GROUPING and GROUPING_ID, from the number of the set."""
        nodes = [node for argument in _arguments(call) for node in _listed(argument)]
        signatures = [self._signature(node) for node in nodes]
        if any(signature not in self._key_signatures for signature in signatures):
            raise Uncovered("GROUPING_SETS", "GROUPING() of what is not grouped by")
        found = [self._key_signatures.index(signature) for signature in signatures]
        if function_name(self.query, call) == "grouping":
            return expanded.grouping(found[0], Col(SET))
        return expanded.grouping_id(found or list(range(len(self._key_signatures))), Col(SET))

    def _key_place(self, chosen: exp.Expr | Col) -> int:
        """The place of a group key, which is added if it is new; its type follows."""
        if isinstance(chosen, Col):
            value: Scalar = chosen
            signature = chosen.name
        else:
            check_expression(self.query, chosen, self._known)
            if self._aggregates(chosen):
                raise Uncovered("CLAUSE", "GROUP BY an aggregate")
            value = expression(self.query, chosen, self.scope.column)
            signature = self._signature(chosen)
        for place, key in enumerate(self._keys):
            if key.value == value:
                return place
        self._key_signatures.append(signature)
        self._keys.append(Output(Column(self._key_name(value, signature), ""), value))
        return len(self._keys) - 1

    def _grouped_by(self, node: exp.Expr) -> exp.Expr | Col:
        """GROUP BY takes an ordinal, a column, an alias of the SELECT list, or an expression."""
        if isinstance(node, exp.Literal) and not node.is_string and node.this.isdigit():
            return self.items[int(node.this) - 1].shown
        if isinstance(node, exp.Column) and len(node.parts) == 1 and self.scope.resolve(node) is None:
            for item in self.items:
                if item.name.lower() == node.name.lower():
                    return item.shown
        return node

    def _key_name(self, value: Scalar, signature: str) -> str:
        """The name of the output that shows a key, else ``__key_n``."""
        taken = {key.name.lower() for key in self._keys}
        for item in self.items:
            node = item.shown
            same = node == value if isinstance(node, Col) else self._signature(node) == signature
            if same and item.name.lower() not in taken and storable(item.name):
                return item.name
        return f"__key_{len(self._keys) + 1}"

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
        distinct = call.find(exp.Distinct) is not None
        text = self._inner(node)
        argument: Scalar | None = None
        arguments = _arguments(call)
        if name in DECOMPOSED | COUNTED | SPREAD and not distinct and len(arguments) == 1:
            if not isinstance(arguments[0], exp.Star):
                argument = self._inner(arguments[0])
        elif distinct or name in RECOMPUTED or name in DECOMPOSED or name in OTHER_AGGREGATES:
            return Measure("opaque", None, None, True, text)
        else:
            raise Uncovered("AGGREGATE_FUNCTION", f"{name}() is not maintained incrementally")
        return Measure(name, argument, where, False, text)

    def _inner(self, node: exp.Expr) -> Scalar:
        """An expression below an aggregate: over the body's columns."""
        return expression(self.query, node, self.scope.column)

    def _typed(self, body: Plan, measures: list[Measure]) -> tuple[list[Output], list[Measure]]:
        """The keys and measures with the types of keys, arguments and results, as Spark says."""
        keys, columns = self._keys, body.columns
        at = places(columns)
        plain = [scalar_sql(key.value, at) for key in keys]
        plain += [scalar_sql(m.argument, at) for m in measures if m.argument is not None]
        key_types: list[Column] = []
        if plain:
            key_types = list(self.types(", ".join(f"{t} AS c{i}" for i, t in enumerate(plain)), columns))
        results: Schema = ()
        if measures:
            calls = ", ".join(f"{scalar_sql(m.text, at)} AS c{i}" for i, m in enumerate(measures))
            results = self.types(calls, columns)
        typed_keys = [
            Output(replace(key.column, type=key_types[place].type), key.value) for place, key in enumerate(keys)
        ]
        for key in typed_keys:
            check_matchable(key.column)
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


def _listed(node: exp.Expr) -> list[exp.Expr]:
    return list(node.expressions) if isinstance(node, exp.Tuple) else [node]


class _Known(Container[int]):
    """Parts of a query that something stands for already, or will."""

    def __init__(self, now: Container[int], later: Container[int]) -> None:
        self._now, self._later = now, later

    def __contains__(self, part: object) -> bool:
        return part in self._now or part in self._later


def _aggregate_calls(query: Query, node: exp.Expr, known: Container[int], apart: Container[int]) -> list[exp.Expr]:
    """The outermost aggregate calls of *node*, with their FILTER clause; a subquery has its own."""

    def settled(part: exp.Expr) -> bool:
        return id(part) in known or isinstance(part, exp.Query) or found(part)

    def found(part: exp.Expr) -> bool:
        return id(part) not in known and id(part) not in apart and is_aggregate(query, part)

    calls = [part for part in node.walk(bfs=False, prune=settled) if found(part)]
    for call in calls:
        if any(inner is not call and is_aggregate(query, inner) for inner in call.walk()):
            raise Uncovered("AGGREGATE_FUNCTION", "an aggregate inside an aggregate")
    return calls
