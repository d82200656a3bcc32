"""The types that plans declare of their columns are those that Spark finds for them.

Whether keys that differ may be equal to the same one is told from these types, and stored rows have them.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest

from strandline.algebra.plan import Plan, UnionAll, children
from strandline.algebra.schema import Column
from strandline.engine.session import Engine
from strandline.sql.compile import compile_view
from strandline.sql.ddl import parse_select
from strandline.sql.relations import Relation, empty_select
from strandline.sql.render import render
from tests.sql.shop import Known

pytestmark = pytest.mark.spark


def _relation(name: str, k: str, n: str, d: str) -> Relation:
    return Relation(f"s.{name}", (Column("k", k), Column("n", n), Column("d", d)))


MIXED = Known(
    [
        _relation("a", "int", "decimal(10,2)", "date"),
        _relation("b", "bigint", "decimal(12,4)", "timestamp"),
        _relation("c", "string", "double", "string"),
    ]
)
SIDES = list(permutations("abc", 2))
QUERIES = [
    *(f"SELECT k, n FROM s.{x} {kind} JOIN s.{y} USING (k, n)" for x, y in SIDES for kind in ("RIGHT", "FULL")),
    *(f"SELECT * FROM s.{x} {op} SELECT * FROM s.{y}" for x, y in SIDES for op in ("UNION", "UNION ALL", "EXCEPT")),
    "SELECT * FROM s.a INTERSECT ALL SELECT * FROM s.b",
    "SELECT k FROM s.a FULL JOIN s.b USING (k) FULL JOIN s.c USING (k)",
    "SELECT k, count(*) FROM s.a NATURAL RIGHT JOIN s.c GROUP BY k",
    "SELECT k, (SELECT max(n) FROM s.b WHERE b.k = a.k) FROM s.a UNION SELECT k, n FROM s.c",
    "SELECT coalesce(a.k, b.k), sum(b.n) FROM s.a LEFT JOIN s.b ON a.n = b.n GROUP BY 1",
    "SELECT DISTINCT CASE WHEN k > 1 THEN k ELSE n END FROM (VALUES (1, 2.50), (2L, 3.125)) AS v(k, n)",
]


@pytest.mark.parametrize("query", QUERIES)
def test_plans_declare_the_types_that_spark_finds(small: Engine, query: str) -> None:
    blocks = compile_view("v", parse_select(query), MIXED, small.analyse).blocks
    assert blocks
    for plan in (plan for block in blocks for plan in _parts(block.body)):
        found = small.analyse(render(plan, lambda scan: empty_select(scan.fields)))
        assert _types(plan) == tuple(column.type for column in found), plan
        if isinstance(plan, UnionAll):
            assert {_types(child) for child in plan.inputs} == {_types(plan)}


def _types(plan: Plan) -> tuple[str, ...]:
    return tuple(column.type for column in plan.columns)


def _parts(plan: Plan) -> Iterator[Plan]:
    yield plan
    for child in children(plan):
        yield from _parts(child)
