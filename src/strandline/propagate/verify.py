"""Whether a view is what its query gives: recomputed over the pinned inputs of a state, and compared as bags.

Equal means: under Spark's grouping equality, in both directions; maps by their sorted entries; float and double
within a relative tolerance. Where rows that tie may come in any order, two correct computations may differ: a view that
differs is then compared once more without the columns that this decides, lists as their sorted elements.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from strandline.algebra.schema import Column, Schema, matchable, names
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
    order_count: int
    """Rows that differ in what the order of tied rows decides, and are right all the same."""
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
            "differ_by_order": self.order_count,
        }


def verify(
    engine: Engine,
    view: str,
    state: int | None,
    columns: Schema,
    stored: str,
    recomputed: str,
    loose: Collection[str] = (),
) -> Verification:
    """Compare the visible rows *stored* with the rows *recomputed*; *loose* columns depend on the order of rows."""
    exact = _compare(engine, columns, stored, recomputed)
    if exact.equal or not loose:
        return exact.verification(view, state, 0)
    settled = tuple(c for c in columns if c.name not in loose or c.type.startswith("array<"))
    settled = tuple(c for c in settled if c.name not in loose or matchable(c))
    found = _compare(engine, settled, stored, recomputed, loose)
    return found.verification(view, state, exact.missing_count if found.equal else 0)


@dataclass(frozen=True)
class _Comparison:
    """What is left of two bags when equal rows cancel out."""

    engine: Engine
    rows: int
    missing_count: int
    extra_count: int
    missing: str
    extra: str

    @property
    def equal(self) -> bool:
        return not self.missing_count and not self.extra_count

    def verification(self, view: str, state: int | None, order_count: int) -> Verification:
        differing = (lambda: self.engine.query(self.missing), lambda: self.engine.query(self.extra))
        counts = (self.missing_count, self.extra_count, order_count)
        return Verification(view, state, self.equal, self.rows, *counts, differing)


def _compare(
    engine: Engine, columns: Schema, stored: str, recomputed: str, in_any_order: Collection[str] = ()
) -> _Comparison:
    """Compare two bags by *columns*, lists *in_any_order* as their sorted elements."""
    # By number: a view may call its columns as it likes. The constant stands for a row without columns.
    numbered = tuple(replace(c, name=f"c{n + 1}") for n, c in enumerate(columns)) or (Column("c1", "int"),)
    values = ", ".join(
        f"{_comparable(c, sort=c.name in in_any_order)} AS {n.name}" for c, n in zip(columns, numbered, strict=False)
    )
    actual = f"SELECT {values or '1 AS c1'} FROM ({stored})"
    expected = f"SELECT {values or '1 AS c1'} FROM ({recomputed})"
    left_over = tables.compared(actual, expected, numbered, 0)
    missing, extra = (f"SELECT {quoted_list(names(numbered))} FROM ({left_over}) WHERE {SIGN} {s} 0" for s in "><")
    count, lacking, surplus = _summary(engine, stored, left_over)
    if lacking and surplus and any(c.type in ("float", "double") for c in columns):
        missing, extra = _unpaired(missing, extra, numbered), _unpaired(extra, missing, numbered)
        lacking, surplus = _counts(engine, missing, extra)
    shown = ", ".join(f"{n.name} AS {quoted(c.name)}" for c, n in zip(columns, numbered, strict=False)) or "c1"
    first, second = (f"SELECT {shown} FROM ({rows})" for rows in (missing, extra))
    return _Comparison(engine, count, lacking, surplus, first, second)


def _summary(engine: Engine, stored: str, left_over: str) -> tuple[int, int, int]:
    """How many rows there are, are missing, and are too many."""
    counts = f"SELECT (SELECT count(*) FROM ({stored})), count_if({SIGN} > 0), count_if({SIGN} < 0) FROM ({left_over})"
    rows, lacking, surplus = engine.rows(counts)[0]
    return int(rows), int(lacking), int(surplus)


def _counts(engine: Engine, missing: str, extra: str) -> tuple[int, int]:
    first, second = engine.rows(f"SELECT (SELECT count(*) FROM ({missing})), (SELECT count(*) FROM ({extra}))")[0]
    return int(first), int(second)


def _comparable(column: Column, *, sort: bool) -> str:
    """A column in a form that rows can be compared by."""
    name = quoted(column.name)
    if sort:
        return f"array_sort({name})"
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
