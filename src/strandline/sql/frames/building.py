"""How SELECTs are built upon each other: over the one below, which becomes a derived table if it must."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from strandline.errors import SqlError
from strandline.sql.frames.expressions import Printer, Scopes, name_of
from strandline.sql.frames.fields import Field
from strandline.sql.frames.given import given
from strandline.sql.frames.printed import Printed, identifier, parts_of
from strandline.sql.frames.refusals import refused
from strandline.sql.frames.select import Select, from_table, listed, nested, text_of, wrapped

_T = TypeVar("_T")

Pick = tuple[int, str | None]
"""The place of a column in a list, and another name for it."""


class Builder(ABC):
    """One conversion, and the names that it has given in FROM."""

    def __init__(self) -> None:
        self.taken: set[str] = set()

    @abstractmethod
    def subquery(self, plan: int, scopes: Scopes) -> str:
        """The query of a plan inside an expression, between parentheses."""

    def allot(self, wanted: str) -> str:
        """A name for something in FROM that nothing else there has."""
        name = wanted
        number = 0
        while name.lower() in self.taken or (wanted == "t" and not number):
            number += 1
            name = f"{wanted}{number}" if wanted == "t" else f"{wanted}_{number}"
        self.taken.add(name.lower())
        return name

    def printer(self, fields: Sequence[Field], outer: Scopes) -> Printer:
        """What prints expressions over *fields*."""
        return Printer((tuple(fields), *outer), self.subquery)

    def over(self, select: Select, outer: Scopes, printing: Callable[[Printer], _T]) -> tuple[Select, Printer, _T]:
        """What is printed over the columns of a SELECT, and that SELECT: a derived table if its own would not do."""
        printer = self.printer(select.fields, outer)
        printed = printing(printer)
        as_they_are = all(field.plain for field in printer.used)
        if not select.closed and as_they_are and (not printer.texts or (select.whole and select.flat)):
            return select, printer, printed
        below = self.wrapped(select, outer)
        printer = self.printer(below.fields, outer)
        return below, printer, printing(printer)

    def wrapped(self, select: Select, outer: Scopes = ()) -> Select:
        """A SELECT as a derived table, still in its order."""
        qualifiers = {field.qualifier[-1:] for field in select.fields}
        one = len(qualifiers) == 1 and qualifiers != {()} and select.body is None
        alias = next(iter(qualifiers))[0] if one else "t"
        below = wrapped(select.unordered(), self.allot(alias))
        if select.sorting and not select.limited:
            try:
                return self.sorted(below, select.sorting, outer)
            except SqlError as error:
                raise refused("this orderBy", "put it right before limit") from error
        return below

    def sorted(self, select: Select, terms: tuple[Any, ...], outer: Scopes) -> Select:
        """A SELECT in an order: by what stands in FROM, or by the names that it gives where only these will do."""
        if any(term.child.WhichOneof("expr_type") == "literal" for term in terms):
            raise refused("an order by a constant", "order by a column")
        if select.limited or select.body is not None:
            select = self.wrapped(select.unordered())
        printer = self.printer(select.fields, outer)
        order = [printer.ordered(term) for term in terms]
        if printer.texts and not (select.whole and select.flat):
            select = self.wrapped(select.unordered())
            printer = self.printer(select.fields, outer)
            order = [printer.ordered(term) for term in terms]
        by_output = select.closed or not all(field.plain for field in printer.used)
        if by_output:
            outputs = tuple(
                replace(f, sql=Printed(identifier(f.name))) if f.name is not None else f for f in select.fields
            )
            printer = self.printer(outputs, outer)
            order = [printer.ordered(term) for term in terms]
        return replace(select, order=tuple(order), sorting=terms, by_output=by_output)

    def fields(self, expression: Any, printer: Printer) -> list[Field]:
        """The columns that an item of a list gives."""
        kind = expression.WhichOneof("expr_type")
        if kind == "unresolved_star":
            fields = self.starred(expression.unresolved_star, printer.scopes[0])
        elif kind == "expression_string" and given(expression.expression_string.expression).star:
            if given(expression.expression_string.expression).sql != "*":
                raise refused("a star with words around it", "name the columns")
            fields = list(printer.scopes[0])
        else:
            meant = printer.field_meant(expression.unresolved_attribute) if kind == "unresolved_attribute" else None
            if meant is None:
                return [self.computed(name_of(expression, printer.field_meant), expression, printer)]
            fields = [meant]
        printer.used.extend(fields)
        return fields

    def computed(self, name: str | None, expression: Any, printer: Printer) -> Field:
        """An expression as a column of that name."""
        if expression.WhichOneof("expr_type") == "alias":
            return self.computed(name, expression.alias.expr, printer)
        meant = None
        if expression.WhichOneof("expr_type") == "unresolved_attribute":
            meant = printer.field_meant(expression.unresolved_attribute)
        printed = printer.printed(expression)
        return Field(name, printed, meant.column if meant is not None else None)

    def starred(self, star: Any, fields: Sequence[Field]) -> list[Field]:
        """The columns that a star stands for."""
        if star.HasField("plan_id"):
            return [field for field in fields if star.plan_id in field.plans]
        if not star.HasField("unparsed_target"):
            return list(fields)
        target = tuple(part.lower() for part in parts_of(star.unparsed_target.removesuffix(".*")))
        found = [f for f in fields if tuple(p.lower() for p in f.qualifier)[-len(target) :] == target]
        if not found:
            raise refused(f"{star.unparsed_target} of something that is no DataFrame's alias", "name the fields")
        return found

    def picked(self, select: Select, expressions: Sequence[Any]) -> list[Pick] | None:
        """The columns that a list takes as they are or under other names; None if it computes something."""
        printer = self.printer(select.fields, ())
        places = {id(field): place for place, field in enumerate(select.fields)}
        picked: list[Pick] = []
        for expression in expressions:
            kind = expression.WhichOneof("expr_type")
            inner = expression.alias.expr if kind == "alias" and len(expression.alias.name) == 1 else expression
            if inner.WhichOneof("expr_type") == "unresolved_attribute":
                field = printer.field_meant(inner.unresolved_attribute)
                if field is None:
                    return None
                picked.append((places[id(field)], expression.alias.name[0] if kind == "alias" else None))
            elif kind == "unresolved_star":
                starred = self.starred(expression.unresolved_star, select.fields)
                picked.extend((places[id(field)], None) for field in starred)
            else:
                return None
        return picked

    def picking(self, select: Select, picks: Sequence[Pick]) -> Select:
        """Some of the columns of a SELECT, in another order or under other names."""
        if list(picks) == [(place, None) for place in range(len(select.fields))]:
            return select
        # A generator makes its rows whether or not its column is shown, and it makes them once.
        once_each = sorted(place for place, _ in picks) == list(range(len(select.fields)))
        bound = select.distinct or (select.by_output and select.order) or (select.sealed and not once_each)
        if select.body is not None or bound:
            select = self.wrapped(select)
        fields = [
            select.fields[place]
            if name is None
            else replace(select.fields[place], name=name, plans=frozenset(), qualifier=())
            for place, name in picks
        ]
        return replace(select, fields=tuple(fields), table=(), whole=False)

    def generated(self, select: Select, expressions: Sequence[Any], outer: Scopes) -> Select:
        """A list in which a generator gives several columns; they can only be named there."""

        def items(printer: Printer) -> list[tuple[str, list[Field]]]:
            found = []
            for expression in expressions:
                names = list(expression.alias.name) if expression.WhichOneof("expr_type") == "alias" else []
                if len(names) > 1:
                    sql = f"{printer.printed(expression).sql} AS ({', '.join(identifier(n) for n in names)})"
                    found.append((sql, [Field(name, Printed(""), name) for name in names]))
                    continue
                for field in self.fields(expression, printer):
                    if field.name is None:
                        raise refused("a column without a name beside a generator", "name it with alias")
                    same = field.column == field.name
                    sql = field.sql.sql if same else f"{field.sql.sql} AS {identifier(field.name)}"
                    found.append((sql, [replace(field, column=field.name)]))
            return found

        below, _, listing = self.over(select, outer, items)
        alias = self.allot("t")
        where = text_of(replace(below.unordered(), fields=())).split("\n", 1)[1]
        text = listed("SELECT", [sql for sql, _ in listing]) + "\n" + where
        return from_table(f"{nested(text)} AS {alias}", alias, [field for _, fields in listing for field in fields])
