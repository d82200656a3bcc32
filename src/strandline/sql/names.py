"""Identifiers and literals in Spark's dialect."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches

from strandline.algebra.schema import Schema


def quoted(name: str) -> str:
    """*name* between backticks."""
    return "`" + name.replace("`", "``") + "`"


def quoted_list(names: Iterable[str]) -> str:
    """Names between backticks, separated by commas."""
    return ", ".join(quoted(name) for name in names)


def literal(text: str) -> str:
    """*text* as a string literal; Spark would substitute variables such as ``${env:HOME}`` inside one."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "'" + escaped.replace("$", "\\u0024") + "'"


def choices(names: Iterable[str], wanted: str = "", most: int = 12) -> str:
    """What exists, for an error message: the names closest to *wanted* first."""
    known = sorted(set(names))
    if not known:
        return "none"
    folded = {name.lower(): name for name in known}
    close = [folded[name] for name in get_close_matches(wanted.lower(), list(folded), n=3, cutoff=0.6)]
    ordered = close + [name for name in known if name not in close]
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more


def places(columns: Schema) -> dict[str, str]:
    """Where the columns of a plan are, if its inputs are written beside each other: ``alias.column`` in that alias.

    Spark names some results, the fields of ``struct(a, b)`` for one, after the last part of a column's name.
    """
    return {name: f"{quoted(alias)}.{quoted(column)}" for name, (alias, column) in split_names(columns).items()}


def split_names(columns: Schema) -> dict[str, tuple[str, str]]:
    """The names of a plan's columns as alias and column; those without an alias are in ``columns``."""
    found = {}
    for column in columns:
        alias, dot, name = column.name.partition(".")
        found[column.name] = (alias, name) if dot and name else ("columns", column.name)
    return found


def told_apart(names: Iterable[str]) -> tuple[str, ...]:
    """*names* with a number at those that stand further left already: no query can mean them by their own name."""
    found: list[str] = []
    for name in names:
        taken = {other.lower() for other in found}
        others = (f"{name} ({number})" for number in range(2, len(found) + 3))
        found.append(name if name.lower() not in taken else next(o for o in others if o.lower() not in taken))
    return tuple(found)


def twice(names: Iterable[str]) -> set[str]:
    """Those of *names* that are told apart only by upper and lower case, which Spark does not do."""
    listed = list(names)
    folded = Counter(name.lower() for name in listed)
    return {name for name in listed if folded[name.lower()] > 1}
