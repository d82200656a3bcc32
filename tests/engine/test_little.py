"""Little data without ceremony."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline.engine.little import PinnedReads, no_rows
from strandline.engine.session import Engine

KINDS = "k int NOT NULL, a array<string>, m map<string,int>, s struct<x:int,d:decimal(10,2)>, t timestamp, b binary"


def test_days_that_python_has_none_of_say_nothing_of_what_is_read(tmp_path: Path) -> None:
    days = pa.array([18_262, 18_628], pa.int32()).cast(pa.date32())
    write_deltalake(str(tmp_path / "t"), pa.table({"day": days, "n": [1, 2]}))
    reads = PinnedReads(None, {}, feeds=False)  # type: ignore[arg-type]
    for day in ("10000-01-01", "-0043-05-11"):
        within = {"day": [("2020-01-01", "2020-01-01"), (day, day)]}
        found = reads.rows(str(tmp_path / "t"), 0, ["n"], {"within": within}, {})
        assert found is not None and found.column("n").to_pylist() == [1, 2]


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
