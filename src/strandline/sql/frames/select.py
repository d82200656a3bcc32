"""One SELECT under construction: operations of a DataFrame are put into it for as long as its clauses allow that."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from strandline.sql.frames.fields import Field
from strandline.sql.frames.printed import ATOM, Printed, all_of, identifier

_WIDTH = 100


@dataclass(frozen=True)
class Select:
    """A query in parts. *body* is one that has no parts: a set operation."""

    fields: tuple[Field, ...]
    source: str = ""
    table: tuple[str, ...] = ()
    """The table's name, if FROM holds nothing else."""

    alias: str = ""
    joined: bool = False
    whole: bool = True
    """Whether the columns are those of FROM, all of them under their own names."""

    where: tuple[Printed, ...] = ()
    texts: bool = False
    """Whether WHERE has columns as the user calls them, who knows nothing of other tables in FROM."""

    group: str | None = None
    """What GROUP BY says; empty if all rows are one group."""

    grouping_sets: bool = False
    having: tuple[Printed, ...] = ()
    distinct: bool = False
    order: tuple[str, ...] = ()
    sorting: tuple[Any, ...] = ()
    """The terms of *order* as the plan has them."""

    by_output: bool = False
    """Whether *order* speaks of the names that SELECT gives."""

    limit: int | None = None
    offset: int | None = None
    sealed: bool = False
    """Windows, generators, or values that change by themselves: other rows in FROM would mean other values."""

    body: str | None = None
    chain: str = ""
    """The operator of *body*."""

    @property
    def limited(self) -> bool:
        """Whether the order decides which rows there are."""
        return self.limit is not None or self.offset is not None

    @property
    def closed(self) -> bool:
        """Whether more conditions or other columns would change what the rows mean."""
        return self.body is not None or self.group is not None or self.distinct or self.limited or self.sealed

    @property
    def flat(self) -> bool:
        """Whether this is FROM and WHERE, and a choice of columns."""
        return not self.closed and all(field.plain for field in self.fields)

    def seen_by(self, plan: int) -> Select:
        """The same as the relation of that number in the plan."""
        return replace(self, fields=tuple(replace(field, plans=field.plans | {plan}) for field in self.fields))

    def unordered(self) -> Select:
        """The same bag, without an order that nothing depends on."""
        return self if self.limited else replace(self, order=(), sorting=(), by_output=False)


def text_of(select: Select, names: Sequence[str | None] | None = None) -> str:
    """The query, its columns called *names*."""
    if select.body is not None:
        return select.body
    called = [field.name for field in select.fields] if names is None else names
    items = [_item(field, name) for field, name in zip(select.fields, called, strict=True)]
    lines = [listed("SELECT DISTINCT" if select.distinct else "SELECT", items), f"FROM {select.source}"]
    if select.where:
        lines.append(f"WHERE {all_of(select.where)}")
    if select.group:
        lines.append(f"GROUP BY {select.group}")
    if select.having:
        lines.append(f"HAVING {all_of(select.having)}")
    if select.order and select.limited:
        lines.append(f"ORDER BY {', '.join(select.order)}")
    if select.limit is not None:
        lines.append(f"LIMIT {select.limit}")
    if select.offset is not None:
        lines.append(f"OFFSET {select.offset}")
    return "\n".join(lines)


def listed(word: str, items: Sequence[str]) -> str:
    """A clause on one line, or with an item on each."""
    line = f"{word} {', '.join(items)}"
    return line if len(line) <= _WIDTH else f"{word}\n  " + ",\n  ".join(items)


def _item(field: Field, name: str | None) -> str:
    if name is None or field.column == name or field.sql.sql == name:
        return field.sql.sql
    return f"{field.sql.sql} AS {identifier(name)}"


def nested(text: str) -> str:
    """A query between parentheses."""
    return "(\n" + "\n".join(f"  {line}" for line in text.splitlines()) + "\n)"


def wrapped(select: Select, alias: str) -> Select:
    """The query as a derived table: each of its columns stands in FROM, under a name of its own."""
    names = distinct_names(select.fields)
    if select.body is not None:
        # The names of a set operation are those of its first query, which were made distinct there.
        text = select.body
    else:
        text = text_of(select, names)
    return from_table(
        f"{nested(text)} AS {identifier(alias)}",
        alias,
        [replace(field, column=name) for field, name in zip(select.fields, names, strict=True)],
    )


def from_table(source: str, alias: str, fields: Iterable[Field], table: tuple[str, ...] = ()) -> Select:
    """All of what stands in FROM under *alias*."""
    return Select(
        tuple(
            replace(field, sql=Printed(f"{identifier(alias)}.{identifier(field.column or '')}", ATOM))
            for field in fields
        ),
        source,
        table,
        alias,
    )


def distinct_names(fields: Sequence[Field]) -> list[str]:
    """A name for each column, no two alike."""
    taken = {field.name.lower() for field in fields if field.name is not None}
    used: set[str] = set()
    names = []
    for place, field in enumerate(fields, 1):
        name = field.name or f"column_{place}"
        if name.lower() in used or (field.name is None and name.lower() in taken):
            number = next(n for n in range(1, len(fields) + 2) if f"{name}_{n}".lower() not in used | taken)
            name = f"{name}_{number}"
        used.add(name.lower())
        names.append(name)
    return names
