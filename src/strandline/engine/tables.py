"""Delta tables and stored files as SQL: what every engine that speaks Spark's SQL reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from strandline.algebra.schema import Schema, names
from strandline.sql.names import literal, quoted, quoted_list
from strandline.sql.relations import empty_select
from strandline.sql.render import SIGN

COMING = ("insert", "update_postimage")
"""Kinds of changes in a change feed whose rows come; those of all others go."""

FEED = re.compile(r"table_changes_by_path\('([^'\\]+)', (\d+), (\d+)\)")

_VERSION = re.compile(r"\bdelta\.`(?:[^`]|``)+` VERSION AS OF \d+\b")


def table(path: str, version: int) -> str:
    """A pinned version of a Delta table as a relation."""
    return f"delta.{quoted(path)} VERSION AS OF {version}"


Told = Mapping[str, Any]
"""What is told of the rows of a table that matter, as JSON.

``within`` has the ranges of columns, ``among`` for columns where their values come from (:func:`stored_values`,
:func:`found_values`), and ``columns`` then the columns that are read.
"""


def near(sql: str, told: Told) -> str:
    """*sql*, which reads one pinned version, for a reader who needs only rows that are as is *told*.

    To Spark that is a comment: conditions that say the same stand beside. Within a step the engine, which hands files
    to Spark then, reads fewer of them, or seeks the rows itself.
    """
    # A comment may hold others: neither must one begin in a value, nor end.
    text = json.dumps(told).replace("*", "\\u002a")
    return _VERSION.sub(lambda found: f"{found[0]} /* near {text} */", sql) if any(told.values()) else sql


def stored_values(path: str, column: str) -> Told:
    """The values of a column of stored files."""
    return {"files": path, "column": column}


def found_values(sql: str, told: Told, column: str) -> Told | None:
    """The values of a column of the rows that are sought in what *sql* reads; None if that is not one table."""
    found = pinned(sql)
    return None if found is None else {"table": found[0], "version": found[1], "column": column, **told}


def pinned_version(sql: str) -> int | None:
    """The version of the one table that *sql* reads."""
    found = pinned(sql)
    return None if found is None else found[1]


def pinned(sql: str) -> tuple[str, int] | None:
    """The one table that *sql* reads, and its version."""
    found = _VERSION.findall(sql)
    if len(found) != 1:
        return None
    path, _, version = found[0].removeprefix("delta.`").rpartition("` VERSION AS OF ")
    return path.replace("``", "`"), int(version)


def select(path: str, version: int, columns: Schema) -> str:
    """The rows of a pinned version."""
    return f"SELECT {quoted_list(names(columns))} FROM {table(path, version)}"


def change_feed(path: str, after: int, upto: int, columns: Schema) -> str:
    """The changed rows in (after, upto], from the table's change feed."""
    kinds = ", ".join(map(literal, COMING))
    return (
        f"SELECT {quoted_list(names(columns))}, CASE WHEN _change_type IN ({kinds}) THEN 1 ELSE -1 END AS {SIGN}, "
        f"_commit_version AS _position FROM table_changes_by_path({literal(path)}, {after + 1}, {upto})"
    )


def change_feed_of(sql: str, columns: Schema) -> tuple[str, int, int] | None:
    """The table whose change feed *sql* is, with the first and the last version; None if it is anything else."""
    found = FEED.search(sql)
    if found is None:
        return None
    path, first, last = found[1], int(found[2]), int(found[3])
    return (path, first, last) if change_feed(path, first - 1, last, columns) == sql else None


def difference(path: str, after: int, upto: int, columns: Schema) -> str:
    """The changed rows in (after, upto], by comparing the two versions; of files that both have, rows cancel out."""
    shown = quoted_list(names(columns))
    old, new = (f"SELECT {shown} FROM {apart(path, one, other)}" for one, other in ((after, upto), (upto, after)))
    return compared(old, new, columns, upto)


def apart(path: str, version: int, other: int) -> str:
    """A pinned version as a relation, for a reader who does not need the rows of files that *other* has too.

    To Spark that is a comment; within a step the engine reads fewer files for it, on both sides of a comparison or on
    none.
    """
    return f"{table(path, version)} /* without files of version {other} */"


def compared(old: str, new: str, columns: Schema, position: int) -> str:
    """Unit rows that lead from *old* to *new*: rows that are in both as often cancel out."""
    shown = quoted_list(names(columns))
    both = f"SELECT *, 1 AS {SIGN} FROM ({new}) UNION ALL SELECT *, -1 AS {SIGN} FROM ({old})"
    netted = f"SELECT {shown}, sum({SIGN}) AS __net FROM ({both}) GROUP BY {shown} HAVING sum({SIGN}) <> 0"
    return (
        f"SELECT {shown}, CASE WHEN __net > 0 THEN 1 ELSE -1 END AS {SIGN}, {position} AS _position "
        f"FROM ({netted}) LATERAL VIEW explode(sequence(1, abs(__net))) AS __copy"
    )


def stored_delta(path: str, columns: Schema) -> str:
    """The unit rows of a stored delta."""
    return f"SELECT {quoted_list((*names(columns), SIGN))} FROM parquet.{quoted(path)}"


def distinct(sql: str, columns: Schema) -> str:
    """Each row of *sql* once."""
    shown = quoted_list(names(columns))
    return f"SELECT {shown} FROM ({sql}) GROUP BY {shown}"


def no_changes(columns: Schema) -> str:
    """An empty delta."""
    return f"SELECT *, 1 AS {SIGN}, 0 AS _position FROM ({empty_select(columns)})"
