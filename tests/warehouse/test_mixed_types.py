"""Joins that compare values of two types: there both '1' and '01' are equal to 1."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline import Warehouse
from strandline.algebra.schema import Column
from strandline.engine.session import Engine
from strandline.sources.memory import MemorySource
from tests.warehouse.shop import assert_verified

pytestmark = pytest.mark.spark

ITEMS = (Column("id", "bigint"), Column("number", "int"))
CODES = (Column("code", "string"), Column("x", "bigint"))

JOINED = {
    "some": "SELECT id FROM s.items i WHERE EXISTS (SELECT 1 FROM s.codes c WHERE c.code = i.number)",
    "without": "SELECT count(*) AS n FROM s.items i WHERE NOT EXISTS (SELECT 1 FROM s.codes c WHERE c.code = i.number)",
    "beside": "SELECT i.id, c.x FROM s.items i LEFT JOIN s.codes c ON c.code = i.number",
    "either": "SELECT i.id, c.x FROM s.items i FULL JOIN s.codes c ON c.code = i.number",
    "inside": "SELECT i.id, c.x FROM s.items i JOIN s.codes c ON c.code = i.number",
    "listed": "SELECT id FROM s.items WHERE number IN (SELECT code FROM s.codes)",
    "unlisted": "SELECT id FROM s.items WHERE number NOT IN (SELECT code FROM s.codes)",
    "united": "SELECT id FROM s.items UNION SELECT code FROM s.codes",
    "less": "SELECT id FROM s.items EXCEPT ALL SELECT code FROM s.codes",
    "merged": (
        "SELECT id FROM s.items i WHERE EXISTS (SELECT 1 FROM (SELECT k FROM (SELECT number AS k FROM s.items) a "
        "RIGHT JOIN (SELECT code AS k FROM s.codes) b USING (k)) c WHERE c.k = i.number)"
    ),
}
VALUES = {
    "summed": "SELECT id, (SELECT sum(x) FROM s.codes c WHERE c.code = i.number) AS x FROM s.items i",
    "maybe": "SELECT id FROM s.items WHERE number IN (SELECT code FROM s.codes) OR id = 0",
}


@pytest.fixture
def source() -> MemorySource:
    source = MemorySource("s")
    source.create("items", ITEMS)
    source.create("codes", CODES)
    source.commit("items", [(10, 1), (11, 2), (12, None)])
    source.commit("codes", [("1", 5), ("3", 6)])
    return source


@pytest.fixture
def wh(tmp_path: Path, engine: Engine, source: MemorySource) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        warehouse.attach(source)
        yield warehouse


def test_texts_that_are_equal_to_the_same_number_come_and_go(wh: Warehouse, source: MemorySource) -> None:
    for name, query in JOINED.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {query}")
    for name, query in VALUES.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    assert_verified(wh)
    for inserted, deleted in (
        ([("01", 6), (" 2", 7)], []),
        ([("02", 8)], [("1", 5)]),
        ([], [("01", 6), (" 2", 7)]),
    ):
        source.commit("codes", inserted, deleted)
        report = wh.refresh()
        assert {report.views[name].strategy for name in JOINED} <= {"incremental", "affected"}
        assert "compares string inside with int outside" in report.views["summed"].reason.detail
        assert_verified(wh)
