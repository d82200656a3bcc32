"""Which column a name in a query means, and expressions as text with those columns cut out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from strandline.algebra.scalar import Col, Scalar, Text
from strandline.algebra.schema import Column, Schema
from strandline.errors import SqlError
from strandline.sql.meaning import meaning
from strandline.sql.names import choices
from strandline.sql.spans import Span, error_at, span
from strandline.sql.statements import Query

Replacement = tuple[Span, Scalar]
"""A part of the text and what stands for it."""


@dataclass(frozen=True)
class Item:
    """A table, view or derived table in a FROM clause.

    Columns that USING merged with another item's are *hidden* from names without a qualifier, and from ``*``. The
    merged ones are an item of their own, whose columns *stand* for columns of other items.
    """

    alias: str
    qualifiers: tuple[str, ...]
    columns: Schema
    prefix: str
    hidden: frozenset[str] = frozenset()
    stand: Mapping[str, str] = field(default_factory=dict)

    def answers_to(self, qualifier: str) -> bool:
        return qualifier.lower() in self.qualifiers

    def find(self, name: str) -> Column | None:
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    def column(self, name: str) -> Col:
        """The column of that name, by its name in the plan."""
        return Col(self.stand.get(name, f"{self.prefix}.{name}"))

    def shown(self) -> list[Column]:
        """The columns that ``*`` shows."""
        return [column for column in self.columns if column.name not in self.hidden]


@dataclass(frozen=True)
class SelectItem:
    """An item of a SELECT list: its name, and what it shows."""

    name: str
    shown: exp.Expr | Col


class Scope:
    """The FROM items of one SELECT."""

    def __init__(self, query: Query, items: Sequence[Item], outer: Scope | None = None) -> None:
        self.query = query
        self.items = list(items)
        self.outer = outer
        self.values: dict[int, Scalar] = {}
        """What stands for parts of the query, by their identity: subqueries, window functions."""
        self.aliases: dict[str, Scalar] = {}
        """What the items of the SELECT list show, so far."""

    def resolve(self, node: exp.Column) -> tuple[Col, Span] | None:
        """The column that *node* names and the part of the text that names it; the rest are fields of a struct.

        None if nothing fits; an error if several columns do.
        """
        parts = [part for part in node.parts if isinstance(part, exp.Identifier)]
        for qualified in (2, 1):
            if len(parts) > qualified:
                qualifier = ".".join(part.name for part in parts[:qualified])
                items = [item for item in self.items if item.answers_to(qualifier)]
                found = [item.column(c.name) for item in items if (c := item.find(parts[qualified].name)) is not None]
                if len(found) == 1:
                    return found[0], _covers(parts[: qualified + 1])
        name = parts[0].name
        candidates = [
            (item, column)
            for item in self.items
            if (column := item.find(name)) is not None and column.name not in item.hidden
        ]
        if len(candidates) > 1:
            raise error_at(
                "AMBIGUOUS_COLUMN",
                f"column {name} is in {' and in '.join(item.alias for item, _ in candidates)}; "
                f"write {candidates[0][0].alias}.{name} or {candidates[1][0].alias}.{name}.",
                self.query.text,
                _covers(parts[:1]),
                self.query.file,
            )
        if not candidates:
            return None if self.outer is None else self.outer.resolve(node)
        item, column = candidates[0]
        return item.column(column.name), _covers(parts[:1])

    def column(self, part: exp.Expr) -> Replacement | None:
        """What a column name, a subquery or a window function stands for; nothing for another expression."""
        if id(part) in self.values:
            return span(part), self.values[id(part)]
        if not isinstance(part, exp.Column):
            return None
        found = self.resolve(part)
        if found is None:
            raise self.unknown(part)
        return found[1], found[0]

    def shown(self, item: SelectItem) -> Scalar:
        """What an item of the SELECT list shows; items right of it may use its alias."""
        scalar = item.shown if isinstance(item.shown, Col) else expression(self.query, item.shown, self._in_list)
        self.aliases.setdefault(item.name.lower(), scalar)
        return scalar

    def _in_list(self, part: exp.Expr) -> Replacement | None:
        """What a part of the SELECT list stands for: a column, or else an alias that stands further left."""
        if not isinstance(part, exp.Column) or id(part) in self.values or len(part.parts) > 1:
            return self.column(part)
        if part.name.lower() in self.aliases and self.resolve(part) is None:
            return span(part), self.aliases[part.name.lower()]
        return self.column(part)

    def unknown(self, node: exp.Column) -> SqlError:
        """The error for a column that no item has."""
        known = [f"{item.alias}.{c.name}" for item in self.items for c in item.columns]
        name = ".".join(part.name for part in node.parts)
        qualifier = node.parts[0].name if len(node.parts) > 1 else None
        if qualifier is not None:
            own = [f"{i.alias}.{c.name}" for i in self.items if i.answers_to(qualifier) for c in i.columns]
            known = own or known
        return error_at(
            "UNKNOWN_COLUMN",
            f"there is no column {name}; there are: {choices(known, name)}. Correct the name, or add the column "
            "to the query that provides it.",
            self.query.text,
            span(node),
            self.query.file,
        )


def _covers(parts: Sequence[exp.Identifier]) -> Span:
    return parts[0].meta["start"], parts[-1].meta["end"] + 1


Known = Callable[[exp.Expr], Replacement | None]
"""What stands for a part of an expression, if anything does; asked from the top down."""


def expression(query: Query, node: exp.Expr, known: Known) -> Scalar:
    """*node* as the user's text, with the parts that *known* knows cut out."""
    found: list[Replacement] = []
    scalars: dict[int, Scalar] = {}
    for part in node.walk(bfs=False, prune=lambda n: id(n) in scalars):
        replacement = known(part)
        if replacement is not None:
            scalars[id(part)] = replacement[1]
            found.append(replacement)
    start, end = span(node)
    if len(found) == 1 and found[0][0] == (start, end):
        return found[0][1]
    fragments: list[str | Scalar] = []
    last = start
    for (first, after), scalar in sorted(found, key=lambda replacement: replacement[0]):
        fragments.extend([query.text[last:first], scalar])
        last = after
    fragments.append(query.text[last:end])
    kept = tuple(fragment for fragment in fragments if fragment != "")
    return Text(kept, meaning(node, lambda n: scalars.get(id(n)) if n is not node or not kept else None))


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """The conditions that *node* joins by AND, and before an OR what it implies: columns that are equal in any case."""
    found: list[exp.Expr] = []
    waiting = [node]
    while waiting:
        part = waiting.pop()
        if isinstance(part, exp.And):
            waiting += [part.expression, part.this]
        elif isinstance(part, exp.Paren) and isinstance(part.this, exp.And):
            waiting.append(part.this)
        else:
            found += [*_equal_in_any_case(part), part]
    return found


def _equal_in_any_case(node: exp.Expr) -> list[exp.Expr]:
    """The equalities of columns that stand in each of the conditions that *node* joins by OR.

    Where the whole is true, so are they: said apart, they are what tables are joined by.
    """
    whole = node.unnest()
    if not isinstance(whole, exp.Or):
        return []
    cases = [[part for part in conjuncts(case) if _equality(part)] for case in whole.flatten()]
    common = set.intersection(*({_equality(part) for part in case} for case in cases))
    first = {_equality(part): part for part in cases[0]}
    return [part for sides, part in first.items() if sides in common]


def _equality(node: exp.Expr) -> frozenset[exp.Expr] | None:
    """The two columns that *node* says are equal, if it says no more."""
    node = node.unnest()
    if not isinstance(node, exp.EQ) or not all(isinstance(side, exp.Column) for side in (node.this, node.expression)):
        return None
    return frozenset((node.this, node.expression))
