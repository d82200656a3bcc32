"""Maintained aggregates are Spark's own, in value and in type, after rounds of insertions and deletions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, delta_of
from strandline.algebra.plan import At, Backing, Bag, Change, Net, Scan, UnionAll
from strandline.algebra.schema import Column, names
from strandline.engine.session import Engine
from strandline.sql.compile import compile_view
from strandline.sql.ddl import parse_select
from strandline.sql.names import quoted_list
from strandline.sql.references import replaced
from strandline.sql.relations import Relation
from strandline.sql.render import SIGN, render
from tests.sql.shop import Known, rows_sql

pytestmark = pytest.mark.spark

NINES = "9" * 15 + "." + "9" * 18

TYPES: dict[str, tuple[str, ...]] = {
    "tinyint": ("127", "-128", "1", "3"),
    "smallint": ("32767", "-32768", "1", "3"),
    "int": ("2147483647", "-2147483648", "1", "3"),
    "bigint": ("1125899906842625", "-1125899906842627", "1", "3"),
    "decimal(1,0)": ("9", "-9", "1", "2"),
    "decimal(10,2)": ("99999999.99", "-0.01", "0.05", "0.02"),
    "decimal(12,4)": ("99999999.9999", "-0.0001", "0.0005", "0.0002"),
    "decimal(28,6)": ("1234567890123456789012.345678", "-0.000001", "0.000001", "0.000002"),
    "decimal(38,18)": (NINES, f"-{NINES}", "0.000000000000000001", "0.000000000000000002"),
    "double": ("0.5", "'NaN'", "'Infinity'", "'-Infinity'"),
    "float": ("0.25", "'NaN'", "'Infinity'", "'-Infinity'"),
}
"""Per type four values: at the ends of its range, smallest steps, and what is not a number."""

# A row is a number, a group, and the place of its values, or None for NULL. Group 1 gets all values, 2 loses all but
# one, 3 has only NULL, 4 comes, 5 goes, 6 has no value and then gets one; in the end nothing is left.
STATES: tuple[tuple[tuple[int, int, int | None], ...], ...] = (
    ((1, 1, 0), (2, 1, 0), (3, 2, 0), (4, 2, 1), (5, 2, 2), (6, 2, 3), (7, 3, None), (8, 5, 1), (9, 6, None)),
    ((1, 1, 0), (2, 1, 0), (3, 2, 0), (5, 2, 2), (7, 3, None), (9, 6, None), (11, 1, 3), (12, 4, 2), (13, 4, 2)),
    ((1, 1, 0), (3, 2, 0), (7, 3, None), (11, 1, 3), (12, 4, 2), (14, 6, 3), (15, 3, None), (16, 1, 2), (17, 1, 2)),
    (),
)

RELATION = Relation(
    "t", (Column("k", "int"), Column("g", "int"), *(Column(f"x{n}", type_) for n, type_ in enumerate(TYPES)))
)
RELATIONS = Known([RELATION])
ANEW = ("decimal(28,6)", "decimal(38,18)")
"""Types whose averages are not the quotient of what can be stored."""


def _select(template: str, types: Sequence[str]) -> str:
    """The select list *template* for the columns of some types."""
    return ", ".join(template.replace("#", str(list(TYPES).index(type_))) for type_ in types)


LINEAR = "SELECT count(*) AS n, " + _select(
    "count(x#) AS c#, sum(x#) AS s#, avg(x#) AS a#, sum(x#) FILTER (WHERE k % 2 = 0) AS f#",
    [type_ for type_ in TYPES if type_ not in ANEW],
)
ANEW_TOO = (
    "SELECT "
    + _select("min(x#) AS lo#, max(x#) AS hi#", list(TYPES))
    + ", "
    + _select("sum(x#) AS s#, avg(x#) AS a#", ANEW)
)
QUERIES = {
    f"{LINEAR} FROM t GROUP BY g": "incremental",
    f"{LINEAR} FROM t": "incremental",
    f"{ANEW_TOO} FROM t GROUP BY g": "affected",
    f"{ANEW_TOO} FROM t": "affected",
}


@pytest.mark.parametrize("sql", QUERIES, ids=["linear by group", "linear", "affected by group", "affected"])
def test_aggregates_are_those_of_spark(small: Engine, sql: str) -> None:
    for place, rows in enumerate(STATES):
        small.run(f"CREATE OR REPLACE TEMPORARY VIEW t{place} AS {_rows(rows)}")
    block = _block(small, sql)
    for place in (1, 2) if "GROUP" in sql else (1, 3):
        written = replaced(parse_select(sql), RELATIONS, lambda _, table=f"t{place}": table)  # type: ignore[misc]
        shown = _shown(block, _stored(block, place))
        assert _types(small, shown) == _types(small, written)
        expected, found = (
            SignedBag.of(_values(row) for (row,) in small.rows(f"SELECT to_json(struct(*)) FROM ({part})"))
            for part in (written, shown)
        )
        assert found == expected and expected


def test_what_is_stored_follows_the_type(small: Engine) -> None:
    """Where 38 digits are not enough to add or to divide exactly, groups are computed anew."""
    found = {}
    for place, type_ in enumerate(TYPES):
        for function in ("sum", "avg"):
            block = _block(small, f"SELECT {function}(x{place}) AS x FROM t")
            found[type_, function] = ", ".join(sorted({p.kind for p in block.partials} - {"count"}))
    anew = {(type_, "avg"): "opaque" for type_ in ANEW} | {("decimal(38,18)", "sum"): "opaque"}
    assert found == {(type_, function): "sum" for type_ in TYPES for function in ("sum", "avg")} | anew


def _types(engine: Engine, sql: str) -> list[tuple[str, str]]:
    return [(column.name, column.type) for column in engine.analyse(sql)]


def _values(row: str) -> tuple[tuple[str, Any], ...]:
    """A row of JSON: numbers are exact, and -0.0 is 0.0."""
    return tuple(json.loads(row, parse_float=Decimal).items())


def _block(engine: Engine, sql: str) -> Block:
    compiled = compile_view("v", parse_select(sql), RELATIONS, engine.analyse)
    assert compiled.reason is None
    (block,) = compiled.blocks
    delta = delta_of(block, ["t"], insert_only=False)
    assert delta is not None and delta.strategy == QUERIES.get(sql, delta.strategy)
    return block


def _stored(block: Block, place: int) -> str:
    """The stored rows at a state: those of the state before and the delta, added up."""
    before, after = STATES[place - 1], STATES[place]
    inserted = _rows([row for row in after if row not in before])
    deleted = _rows([row for row in before if row not in after])
    change = f"SELECT *, 1 AS {SIGN} FROM ({inserted}) UNION ALL SELECT *, -1 AS {SIGN} FROM ({deleted})"
    old = render(block.contents, lambda scan: _fields(scan, f"t{place - 1}"))
    operands = {
        At("t", "pre"): f"t{place - 1}",
        At("t", "post"): f"t{place}",
        Change("t"): f"({change})",
        Backing("v", "pre"): f"({old})",
        Bag("stored"): f"({old})",
    }
    delta = delta_of(block, ["t"], insert_only=False)
    assert delta is not None
    total = Net(UnionAll((Scan(Bag("stored"), "", block.stored), delta.plan)))
    text = render(total, lambda scan: _fields(scan, operands[scan.operand]))
    return f"SELECT {quoted_list(names(block.stored))} FROM ({text}) WHERE {SIGN} = 1"


def _shown(block: Block, stored: str) -> str:
    return render(block.reading(Scan(Backing("v"), "", block.stored)), lambda _: stored)


def _fields(scan: Scan, rows: str) -> str:
    wanted = (*names(scan.fields), SIGN) if isinstance(scan.operand, Change) else names(scan.fields)
    return f"SELECT {quoted_list(wanted)} FROM {rows}"


def _rows(rows: Sequence[tuple[int, int, int | None]]) -> str:
    listed = []
    for number, group, at in rows:
        values = ["NULL" if at is None else f"CAST({choice[at]} AS {type_})" for type_, choice in TYPES.items()]
        listed.append(f"({number}, {group}, {', '.join(values)})")
    return rows_sql(RELATION.columns, listed)
