"""From log entries to a delta: what a stretch of a table's change log does to the copy of the table, as SQL.

A keyed table's log says of a changed row its key and what it is now; what it was is in the copy. A table without a key
is a bag of rows, and its log holds the old rows too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from strandline.algebra.schema import Schema
from strandline.ingest.change_log import column, entries
from strandline.sql.names import literal, quoted
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


def delta(
    stretch: Stretch, columns: Schema, key: tuple[str, ...], parsers: Parsers, copy: str, named: Sequence[str]
) -> str:
    """Signed rows: the columns, called as *named*, and ``__sign``.

    *copy* is a SELECT of the copied table where the stretch begins. Within, columns go by their numbers, because a
    source may call its columns as it likes.
    """
    if not key:
        return _of_bag(stretch, columns, parsers, copy, named)
    return _of_keyed(stretch, columns, key, parsers, copy, named)


def _of_bag(stretch: Stretch, columns: Schema, parsers: Parsers, copy: str, named: Sequence[str]) -> str:
    values = [parsers[c.name](column(n)) for n, c in enumerate(columns)]
    sign = f"CASE WHEN _op = 'D' THEN -1 ELSE 1 END AS {SIGN}"
    rows = f"SELECT {_listed(values, named)}, {sign} FROM ({stretch.entries(len(columns))}) WHERE _op <> 'T'"
    return f"{rows} UNION ALL {_minus(copy, columns, named)}" if stretch.truncated else rows


def _of_keyed(
    stretch: Stretch, columns: Schema, key: tuple[str, ...], parsers: Parsers, copy: str, named: Sequence[str]
) -> str:
    found = stretch.entries(len(columns))
    if stretch.only_inserts:
        values = [parsers[c.name](column(n)) for n, c in enumerate(columns)]
        return f"SELECT {_listed(values, named)}, 1 AS {SIGN} FROM ({found})"
    keys = {n: parsers[c.name](column(n)) for n, c in enumerate(columns) if c.name in key}
    others = [n for n in range(len(columns)) if n not in keys]
    listed = ", ".join(_key(n) for n in keys)
    shown = ", ".join(f"{value} AS {_key(n)}" for n, value in keys.items())
    controls = ", ".join(["_op", "_at", "_unchanged", *(column(n) for n in others)])
    keyed = f"SELECT {shown}, {controls} FROM ({found}) WHERE _op <> 'T'"
    last = ["max_by(_op, _at) AS _op", *(part for n in others for part in _last_known(stretch, n))]
    newest = f"SELECT {listed}, {', '.join(last)} FROM ({keyed}) GROUP BY {listed}"
    same = " AND ".join(f"o.{_old(n)} <=> n.{_key(n)}" for n in keys)
    touched = f"SELECT DISTINCT {listed} FROM (SELECT {shown} FROM ({found}))"
    renamed = ", ".join(f"{quoted(c.name)} AS {_old(n)}" for n, c in enumerate(columns))
    before = f"SELECT * FROM (SELECT {renamed} FROM ({copy})) AS o LEFT SEMI JOIN ({touched}) AS n ON {same}"
    values = [f"n.{_key(n)}" if n in keys else _now(stretch, n, parsers[c.name]) for n, c in enumerate(columns)]
    join = f" LEFT JOIN (SELECT *, true AS __here FROM ({before})) AS o ON {same}" if stretch.unchanged else ""
    after = f"SELECT {_listed(values, named)}, 1 AS {SIGN} FROM ({newest}) AS n{join} WHERE n._op <> 'D'"
    if stretch.truncated:
        return f"{after} UNION ALL {_minus(copy, columns, named)}"
    gone = _listed([_old(n) for n in range(len(columns))], named)
    return f"{after} UNION ALL SELECT {gone}, -1 AS {SIGN} FROM ({before})"


def _last_known(stretch: Stretch, number: int) -> list[str]:
    """The value of a column in the newest entry that has it, and whether any has."""
    name = column(number)
    if not stretch.unchanged:
        return [f"max_by({name}, _at) AS {name}"]
    known = f"_op <> 'D' AND NOT coalesce(array_contains(_unchanged, {number}), false)"
    return [f"max_by({name}, _at) FILTER (WHERE {known}) AS {name}", f"count_if({known}) > 0 AS __known{number}"]


def _now(stretch: Stretch, number: int, parse: Callable[[str], str]) -> str:
    """The value of a column after the stretch; if no entry has it, it is what it was."""
    parsed = parse(f"n.{column(number)}")
    if not stretch.unchanged:
        return parsed
    missing = (
        "raise_error('[LOG_WITHOUT_ROW] the log leaves the value of a row unchanged that the copy does not hold; "
        f"refresh in full to copy the table anew: ' || CAST(n.__known{number} AS STRING))"
    )
    old = f"CASE WHEN o.__here THEN o.{_old(number)} ELSE {missing} END"
    return f"CASE WHEN n.__known{number} THEN {parsed} ELSE {old} END"


def _key(number: int) -> str:
    return f"k{number + 1}"


def _old(number: int) -> str:
    return f"o{number + 1}"


def _listed(values: Sequence[str], named: Sequence[str]) -> str:
    return ", ".join(f"{value} AS {quoted(name)}" for value, name in zip(values, named, strict=True))


def _minus(copy: str, columns: Schema, named: Sequence[str]) -> str:
    return f"SELECT {_listed([quoted(c.name) for c in columns], named)}, -1 AS {SIGN} FROM ({copy})"
