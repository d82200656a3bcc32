"""Expressions of a DataFrame's plan as text, their columns found among those of the relations below."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from strandline.sql.frames.fields import Field, found, unknown
from strandline.sql.frames.given import given
from strandline.sql.frames.literals import literal, type_text
from strandline.sql.frames.operators import called, seals
from strandline.sql.frames.printed import ATOM, COMPARISON, OR, UNARY, Printed, identifier, identifiers, parts_of
from strandline.sql.frames.refusals import refused

Scopes = tuple[tuple[Field, ...], ...]
"""Columns of the relation at hand, then those of the queries around it."""

_INSTEAD = {
    "common_inline_user_defined_function": ("a Python function (UDF)", "use Spark's own functions"),
    "unresolved_regex": ("colRegex", "name the columns"),
    "update_fields": ("withField and dropFields", "build the struct anew, with struct(...)"),
}


@dataclass
class Printer:
    """Prints expressions over *scopes*, and notes what it met on the way."""

    scopes: Scopes
    subquery: Callable[[int, Scopes], str]
    used: list[Field] = field(default_factory=list)
    sealing: bool = False
    """Whether a window, a generator or a value that changes by itself was met."""

    texts: bool = False
    lambdas: dict[str, str] = field(default_factory=dict)

    def printed(self, expression: Any) -> Printed:
        """The text of an expression without the name that it is given."""
        kind = expression.WhichOneof("expr_type")
        by_kind = getattr(self, f"_{kind}", None)
        if by_kind is None:
            raise refused(*_INSTEAD.get(kind, (f"an expression of kind {kind}", "write the view as SQL")))
        result: Printed = by_kind(getattr(expression, kind))
        return result

    def field_meant(self, attribute: Any) -> Field | None:
        """The column at hand that an attribute names, if it is a whole one."""
        meant = found(self.scopes[0], parts_of(attribute.unparsed_identifier), _plan(attribute))
        return meant[0] if meant is not None and not meant[1] else None

    def ordered(self, term: Any) -> str:
        """A term of ORDER BY. NULLs come first unless the order is descending, so that need not be said."""
        printed = self.printed(term.child)
        descending, nulls_first = term.direction == 2, term.null_ordering == 1
        nulls = "" if nulls_first != descending else " NULLS FIRST" if nulls_first else " NULLS LAST"
        return f"{printed.sql}{' DESC' if descending else ''}{nulls}"

    def _literal(self, value: Any) -> Printed:
        return literal(value)

    def _unresolved_attribute(self, attribute: Any) -> Printed:
        parts = parts_of(attribute.unparsed_identifier)
        for depth, fields in enumerate(self.scopes):
            meant = found(fields, parts, _plan(attribute))
            if meant is not None:
                if not depth:
                    self.used.append(meant[0])
                sql = meant[0].sql
                return Printed(f"{sql.within(UNARY)}.{identifiers(meant[1])}") if meant[1] else sql
        raise unknown(self.scopes[0], parts)

    def _unresolved_function(self, function: Any) -> Printed:
        name = function.function_name
        if function.is_internal:
            raise refused(f"the function {name}")
        self.sealing |= seals(name)
        if name.lower() == "struct":
            # Its fields are called as the columns are here, whatever these are called further down.
            arguments = [self._member(argument) for argument in function.arguments]
        else:
            arguments = [self._argument(argument) for argument in function.arguments]
        return called(name, arguments, distinct=function.is_distinct)

    def _call_function(self, function: Any) -> Printed:
        self.sealing |= seals(function.function_name)
        arguments = [self._argument(argument) for argument in function.arguments]
        return Printed(f"{identifiers(parts_of(function.function_name))}({', '.join(a.sql for a in arguments)})")

    def _argument(self, expression: Any) -> Printed:
        match expression.WhichOneof("expr_type"):
            case "unresolved_star":
                return Printed("*")
            case "alias":
                return Printed(f"{self.printed(expression.alias.expr).sql} AS {identifier(expression.alias.name[0])}")
            case _:
                return self.printed(expression)

    def _member(self, expression: Any) -> Printed:
        if expression.WhichOneof("expr_type") != "unresolved_attribute":
            return self._argument(expression)
        name = name_of(expression, self.field_meant)
        return Printed(f"{self.printed(expression).sql} AS {identifier(name or '')}")

    def _expression_string(self, text: Any) -> Printed:
        """The user's own text stays what it is; it calls columns by the names that they have below it."""
        said = given(text.expression)
        self.texts = True
        self.sealing |= said.sealing
        return Printed(said.sql, OR)

    def _alias(self, alias: Any) -> Printed:
        return self.printed(alias.expr)

    def _cast(self, cast: Any) -> Printed:
        if cast.eval_mode == 1:
            raise refused("a cast in legacy mode", "use cast or try_cast")
        into = cast.type_str if cast.WhichOneof("cast_to_type") == "type_str" else type_text(cast.type)
        word = "TRY_CAST" if cast.eval_mode == 3 else "CAST"
        return Printed(f"{word}({self.printed(cast.expr).sql} AS {into})")

    def _unresolved_extract_value(self, extract: Any) -> Printed:
        child = self.printed(extract.child).within(UNARY)
        return Printed(f"{child}[{self.printed(extract.extraction).sql}]")

    def _named_argument_expression(self, argument: Any) -> Printed:
        return Printed(f"{identifier(argument.key)} => {self.printed(argument.value).sql}", OR)

    def _lambda_function(self, function: Any) -> Printed:
        """Variables get names of their own, the same each time: a plan numbers them across the whole program."""
        names = []
        for variable in function.arguments:
            numbered = ".".join(variable.name_parts)
            base = numbered.split("_")[0] or "x"
            taken = set(self.lambdas.values())
            names.append(next(n for n in (base, *(f"{base}{i}" for i in range(1, 99))) if n not in taken))
            self.lambdas[numbered] = names[-1]
        body = self.printed(function.function).sql
        for variable in function.arguments:
            del self.lambdas[".".join(variable.name_parts)]
        return Printed(f"{names[0] if len(names) == 1 else '(' + ', '.join(names) + ')'} -> {body}", OR)

    def _unresolved_named_lambda_variable(self, variable: Any) -> Printed:
        return Printed(self.lambdas[".".join(variable.name_parts)])

    def _window(self, window: Any) -> Printed:
        self.sealing = True
        clauses = []
        if window.partition_spec:
            clauses.append(f"PARTITION BY {', '.join(self.printed(e).sql for e in window.partition_spec)}")
        if window.order_spec:
            clauses.append(f"ORDER BY {', '.join(self.ordered(term) for term in window.order_spec)}")
        if window.HasField("frame_spec"):
            frame = window.frame_spec
            word = "ROWS" if frame.frame_type == 1 else "RANGE"
            clauses.append(
                f"{word} BETWEEN {self._bound(frame.lower, 'lower')} AND {self._bound(frame.upper, 'upper')}"
            )
        return Printed(f"{self.printed(window.window_function).sql} OVER ({' '.join(clauses)})")

    def _bound(self, bound: Any, side: str) -> str:
        match bound.WhichOneof("boundary"):
            case "current_row":
                return "CURRENT ROW"
            case "unbounded":
                return "UNBOUNDED PRECEDING" if side == "lower" else "UNBOUNDED FOLLOWING"
            case _:
                kind = bound.value.literal.WhichOneof("literal_type")
                if kind not in ("integer", "long"):
                    raise refused("a bound of a window frame that is no whole number")
                rows = getattr(bound.value.literal, kind)
                return f"{abs(rows)} {'PRECEDING' if rows < 0 else 'FOLLOWING'}"

    def _subquery_expression(self, subquery: Any) -> Printed:
        inner = self.subquery(subquery.plan_id, self.scopes)
        match subquery.subquery_type:
            case 1:
                return Printed(inner, ATOM)
            case 2:
                return Printed(f"EXISTS {inner}", COMPARISON)
            case 4:
                values = [self.printed(value) for value in subquery.in_subquery_values]
                left = values[0].within(COMPARISON) if len(values) == 1 else f"({', '.join(v.sql for v in values)})"
                return Printed(f"{left} IN {inner}", COMPARISON)
            case _:
                raise refused("a table argument")


def name_of(expression: Any, meant: Callable[[Any], Field | None]) -> str | None:
    """How Spark calls a column that is given no name; None where only Spark knows."""
    kind = expression.WhichOneof("expr_type")
    match kind:
        case "unresolved_attribute":
            column = meant(expression.unresolved_attribute)
            parts = parts_of(expression.unresolved_attribute.unparsed_identifier)
            return column.name if column is not None else parts[-1]
        case "alias":
            return str(expression.alias.name[0])
        case "cast" if expression.cast.expr.WhichOneof("expr_type") in ("unresolved_attribute", "alias"):
            return name_of(expression.cast.expr, meant)
        case "expression_string":
            return given(expression.expression_string.expression).name
        case "unresolved_function":
            function = expression.unresolved_function
            if function.function_name.lower() in ("explode", "explode_outer"):
                return "col"
            arguments = [_argument_name(argument, meant) for argument in function.arguments]
            named = [argument for argument in arguments if argument is not None]
            if not function.function_name.isidentifier() or len(named) < len(arguments) or function.is_distinct:
                return None
            return f"{function.function_name}({', '.join(named)})" if function.function_name in _NAMED_SO else None
        case _:
            return None


_NAMED_SO = {"count", "sum", "avg", "min", "max"}
"""The aggregates of GroupedData, which are called by what they are."""


def _argument_name(expression: Any, meant: Callable[[Any], Field | None]) -> str | None:
    if expression.WhichOneof("expr_type") == "unresolved_attribute":
        return name_of(expression, meant)
    if expression.WhichOneof("expr_type") == "literal" and expression.literal.WhichOneof("literal_type") == "integer":
        return str(expression.literal.integer)
    return None


def _plan(attribute: Any) -> int | None:
    return attribute.plan_id if attribute.HasField("plan_id") else None
