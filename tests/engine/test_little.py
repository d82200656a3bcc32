"""Little data without ceremony."""

from __future__ import annotations

import pytest

from strandline.engine.little import no_rows
from strandline.engine.session import Engine

KINDS = "k int NOT NULL, a array<string>, m map<string,int>, s struct<x:int,d:decimal(10,2)>, t timestamp, b binary"


@pytest.mark.spark
def test_what_is_joined_with_a_frame_without_rows_is_not_read(engine: Engine) -> None:
    schema = engine.worker.createDataFrame([], KINDS).schema
    with engine.step("tests", "empty", small=True) as metrics:
        empty = no_rows(engine.worker, schema)
        assert empty.schema == schema
        assert empty.join(engine.worker.range(5).toDF("k"), "k").collect() == []
    assert metrics.jobs == 0


@pytest.mark.spark
def test_types_that_arrow_lacks_are_kept(engine: Engine) -> None:
    schema = engine.worker.createDataFrame([], "k int, i interval day to second, v variant").schema
    assert no_rows(engine.worker, schema).schema == schema
