"""Whether a view is what its query gives: recomputed over the pinned inputs of a state, and compared as bags.

Equal means: under Spark's grouping equality, in both directions; maps by their sorted entries; float and double
within a relative tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from strandline.algebra.schema import Column, Schema, names
from strandline.engine import tables
from strandline.engine.session import Engine
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame

TOLERANCE = 1e-9
"""Relative, for float and double."""


@dataclass(frozen=True)
class Verification:
    """The outcome for one view: rows that the query gives and the view lacks, and the other way round."""

    view: str
    state: int | None
    ok: bool
    rows: int
    missing_count: int
    extra_count: int
    _differing: tuple[Callable[[], DataFrame], Callable[[], DataFrame]]

    @property
    def missing(self) -> DataFrame:
        """Rows that the query gives and the view lacks."""
        return self._differing[0]()

    @property
    def extra(self) -> DataFrame:
        """Rows that the view has and the query does not give."""
        return self._differing[1]()

    def to_dict(self) -> dict[str, Any]:
        """As ``verify --json`` prints it."""
        return {
            "view": self.view,
            "state": self.state,
            "ok": self.ok,
            "rows": self.rows,
            "missing": self.missing_count,
            "extra": self.extra_count,
        }


def verify(engine: Engine, view: str, state: int | None, columns: Schema, stored: str, recomputed: str) -> Verification:
    """Compare the visible rows *stored* with the rows *recomputed*: what is left when equal rows cancel out."""
    # By number: a view may call its columns as it likes.
    numbered = tuple(replace(c, name=f"c{n + 1}") for n, c in enumerate(columns))
    values = ", ".join(f"{_comparable(c)} AS {n.name}" for c, n in zip(columns, numbered, strict=True))
    actual = f"SELECT {values} FROM ({stored})"
    expected = f"SELECT {values} FROM ({recomputed})"
    left_over = tables.compared(actual, expected, numbered, 0)
    missing, extra = (f"SELECT {quoted_list(names(numbered))} FROM ({left_over}) WHERE {SIGN} {s} 0" for s in "><")
    count, lacking, surplus = _summary(engine, stored, left_over)
    if lacking and surplus and any(c.type in ("float", "double") for c in columns):
        missing, extra = _unpaired(missing, extra, numbered), _unpaired(extra, missing, numbered)
        lacking, surplus = _counts(engine, missing, extra)
    shown = ", ".join(f"{n.name} AS {quoted(c.name)}" for c, n in zip(columns, numbered, strict=True))
    first, second = (f"SELECT {shown} FROM ({rows})" for rows in (missing, extra))
    differing = (lambda: engine.query(first), lambda: engine.query(second))
    return Verification(view, state, not lacking and not surplus, count, lacking, surplus, differing)


def _summary(engine: Engine, stored: str, left_over: str) -> tuple[int, int, int]:
    """How many rows there are, are missing, and are too many."""
    counts = f"SELECT (SELECT count(*) FROM ({stored})), count_if({SIGN} > 0), count_if({SIGN} < 0) FROM ({left_over})"
    rows, lacking, surplus = engine.rows(counts)[0]
    return int(rows), int(lacking), int(surplus)


def _counts(engine: Engine, missing: str, extra: str) -> tuple[int, int]:
    first, second = engine.rows(f"SELECT (SELECT count(*) FROM ({missing})), (SELECT count(*) FROM ({extra}))")[0]
    return int(first), int(second)


def _comparable(column: Column) -> str:
    """A column in a form that rows can be compared by."""
    name = quoted(column.name)
    if column.type.startswith("map<"):
        return f"array_sort(map_entries({name}))"
    return name


def _unpaired(left: str, right: str, columns: Schema) -> str:
    """The rows of *left* without a partner in *right* that differs from it only within the tolerance.

    Partners are sought among the rows that agree in all other columns, in the order of their floating values.
    """
    floats = [c.name for c in columns if c.type in ("float", "double")]
    others = [c.name for c in columns if c.name not in floats]
    shown = quoted_list(c.name for c in columns)
    window = f"PARTITION BY {quoted_list(others) if others else '1'} ORDER BY {quoted_list(floats)}"
    left_numbered = f"SELECT {shown}, row_number() OVER ({window}) AS __n FROM ({left})"
    right_numbered = f"SELECT {shown}, row_number() OVER ({window}) AS __n FROM ({right})"
    same = [f"l.{quoted(c)} <=> r.{quoted(c)}" for c in others] + ["l.__n = r.__n"]
    for name in floats:
        a, b = f"l.{quoted(name)}", f"r.{quoted(name)}"
        same.append(f"({a} <=> {b} OR abs({a} - {b}) <= {TOLERANCE} * greatest(abs({a}), abs({b})))")
    listed = ", ".join(f"l.{quoted(c.name)} AS {quoted(c.name)}" for c in columns)
    return f"SELECT {listed} FROM ({left_numbered}) AS l LEFT ANTI JOIN ({right_numbered}) AS r ON {' AND '.join(same)}"
