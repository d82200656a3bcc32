"""UNION, INTERSECT and EXCEPT of two SELECTs."""

from __future__ import annotations

from dataclasses import replace

from strandline.errors import SqlError
from strandline.sql.frames.fields import Field, named
from strandline.sql.frames.printed import Printed, identifier
from strandline.sql.frames.refusals import refused
from strandline.sql.frames.select import Select, distinct_names, text_of
from strandline.sql.names import choices

_WORDS = {1: "INTERSECT", 2: "UNION", 3: "EXCEPT"}


def united(left: Select, right: Select, kind: int, *, all_rows: bool) -> Select:
    """Both as one set operation, its columns called as those of the left side."""
    word = _WORDS.get(kind)
    if word is None:
        raise refused("this set operation")
    operator = f"{word} ALL" if all_rows else word
    names = distinct_names(left.fields)
    # A chain of unions needs no parentheses.
    chained = left.body is not None and operator == "UNION ALL" and left.chain == operator
    first = left.body if chained else _operand(left, names)
    body = f"{first}\n{operator}\n{_operand(right, None)}"
    fields = tuple(
        replace(field, name=name, sql=Printed(identifier(name)), column=None)
        for field, name in zip(left.fields, names, strict=True)
    )
    return Select(fields, body=body, chain=operator)


def by_name(left: Select, right: Select, *, missing: bool) -> tuple[Select, Select]:
    """Both sides with the same columns in the same order: those of the left one, then what only the right one has."""
    order = [field.name for field in left.fields]
    order += [field.name for field in right.fields if not named(left.fields, field.name or "")]
    if len(order) > len(left.fields) and not missing:
        raise _lacking(left, order[len(left.fields)])
    return (
        replace(left, fields=tuple(_of_name(left, name, missing) for name in order), table=(), whole=False),
        replace(right, fields=tuple(_of_name(right, name, missing) for name in order), table=(), whole=False),
    )


def _of_name(select: Select, name: str | None, missing: bool) -> Field:
    found = named(select.fields, name or "")
    if len(found) == 1:
        return found[0]
    if found or not missing:
        raise _lacking(select, name)
    return Field(name, Printed("NULL"))


def _lacking(select: Select, name: str | None) -> SqlError:
    known = choices([field.name for field in select.fields if field.name is not None], name or "")
    return SqlError("UNKNOWN_COLUMN", f"unionByName finds not one column {name} on a side that has: {known}.")


def _operand(select: Select, names: list[str] | None) -> str:
    text = text_of(select, names)
    return f"({text})" if select.body is not None or select.limited else text
