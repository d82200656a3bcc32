"""From log entries to a delta: what a stretch of a table's change log does to the copy of the table, as SQL.

A keyed table's log says of a changed row its key and what it is now; what it was is in the copy. A table without a key
is a bag of rows, and its log holds the old rows too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from strandline.algebra.schema import Schema, names
from strandline.ingest.change_log import column, entries
from strandline.sql.names import literal, quoted, quoted_list
from strandline.sql.render import SIGN

Parsers = Mapping[str, Callable[[str], str]]


@dataclass(frozen=True)
class Stretch:
    """Entries of a log from one place up to another, as far as they meet the condition *counted*, if there is one.

    Entries may be *truncated* (the table was emptied), leave columns *unchanged*, or be *only inserts*.
    """

    path: str
    version: int
    log: str
    after: int
    upto: int
    counted: str | None = None
    truncated: bool = False
    unchanged: bool = False
    only_inserts: bool = False

    def entries(self, columns: int) -> str:
        """A SELECT of the entries that count, each with ``_at`` to order them by."""
        tests = [f"_log = {literal(self.log)}", f"_place >= {self.after}", f"_place < {self.upto}"]
        if self.counted is not None:
            tests.append(self.counted)
        stretch = (
            f"SELECT *, struct(_place, _n) AS _at FROM ({entries(self.path, self.version, range(columns))}) "
            f"WHERE {' AND '.join(tests)}"
        )
        if not self.truncated:
            return stretch
        emptied = f"(SELECT max(_at) FROM ({stretch}) WHERE _op = 'T')"
        return f"SELECT * FROM ({stretch}) WHERE coalesce(_at > {emptied}, true)"


def delta(stretch: Stretch, columns: Schema, key: tuple[str, ...], parsers: Parsers, copy: str) -> str:
    """Signed rows: *columns* and ``__sign``; *copy* is a SELECT of the copied table where the stretch begins."""
    if not key:
        return _of_bag(stretch, columns, parsers, copy)
    return _of_keyed(stretch, columns, key, parsers, copy)


def _of_bag(stretch: Stretch, columns: Schema, parsers: Parsers, copy: str) -> str:
    values = ", ".join(_value(n, c.name, parsers) for n, c in enumerate(columns))
    rows = (
        f"SELECT {values}, CASE WHEN _op = 'D' THEN -1 ELSE 1 END AS {SIGN} "
        f"FROM ({stretch.entries(len(columns))}) WHERE _op <> 'T'"
    )
    return f"{rows} UNION ALL {_minus(copy, columns)}" if stretch.truncated else rows


def _of_keyed(stretch: Stretch, columns: Schema, key: tuple[str, ...], parsers: Parsers, copy: str) -> str:
    numbers = {c.name: n for n, c in enumerate(columns)}
    found = stretch.entries(len(columns))
    keys = ", ".join(_value(numbers[name], name, parsers) for name in key)
    if stretch.only_inserts and not stretch.truncated:
        values = ", ".join(_value(n, c.name, parsers) for n, c in enumerate(columns))
        return f"SELECT {values}, 1 AS {SIGN} FROM ({found})"
    others = [c for c in columns if c.name not in key]
    last = ["max_by(_op, _at) AS _op", *(part for c in others for part in _last_known(stretch, numbers[c.name]))]
    listed = quoted_list(key)
    controls = ", ".join(["_op", "_at", "_unchanged", *(column(numbers[c.name]) for c in others)])
    keyed = f"SELECT {keys}, {controls} FROM ({found}) WHERE _op <> 'T'"
    newest = f"SELECT {listed}, {', '.join(last)} FROM ({keyed}) GROUP BY {listed}"
    same = " AND ".join(f"o.{quoted(name)} <=> n.{quoted(name)}" for name in key)
    values = ", ".join(
        f"n.{quoted(c.name)} AS {quoted(c.name)}" if c.name in key else _now(stretch, c.name, numbers[c.name], parsers)
        for c in columns
    )
    join = f" LEFT JOIN (SELECT *, true AS __here FROM ({copy})) AS o ON {same}" if stretch.unchanged else ""
    after = f"SELECT {values}, 1 AS {SIGN} FROM ({newest}) AS n{join} WHERE n._op <> 'D'"
    if stretch.truncated:
        return f"{after} UNION ALL {_minus(copy, columns)}"
    touched = f"SELECT DISTINCT {listed} FROM (SELECT {keys} FROM ({found}))"
    shown = ", ".join(f"o.{quoted(c.name)} AS {quoted(c.name)}" for c in columns)
    before = f"SELECT {shown}, -1 AS {SIGN} FROM ({copy}) AS o LEFT SEMI JOIN ({touched}) AS n ON {same}"
    return f"{after} UNION ALL {before}"


def _last_known(stretch: Stretch, number: int) -> list[str]:
    """The value of a column in the newest entry that has it, and whether any has."""
    name = column(number)
    if not stretch.unchanged:
        return [f"max_by({name}, _at) AS {name}"]
    known = f"_op <> 'D' AND NOT coalesce(array_contains(_unchanged, {number}), false)"
    return [f"max_by({name}, _at) FILTER (WHERE {known}) AS {name}", f"count_if({known}) > 0 AS __known{number}"]


def _now(stretch: Stretch, name: str, number: int, parsers: Parsers) -> str:
    """The value of a column after the stretch; if no entry has it, it is what it was."""
    parsed = parsers[name](f"n.{column(number)}")
    if not stretch.unchanged:
        return f"{parsed} AS {quoted(name)}"
    missing = (
        "raise_error('[LOG_WITHOUT_ROW] the log leaves the value of a row unchanged that the copy does not hold; "
        "refresh in full to copy the table anew: ' || CAST(n.__known{number} AS STRING))"
    ).replace("{number}", str(number))
    old = f"CASE WHEN o.__here THEN o.{quoted(name)} ELSE {missing} END"
    return f"CASE WHEN n.__known{number} THEN {parsed} ELSE {old} END AS {quoted(name)}"


def _value(number: int, name: str, parsers: Parsers) -> str:
    return f"{parsers[name](column(number))} AS {quoted(name)}"


def _minus(copy: str, columns: Schema) -> str:
    return f"SELECT {quoted_list(names(columns))}, -1 AS {SIGN} FROM ({copy})"
