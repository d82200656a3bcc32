"""Taking in the changes of a leaf: the net of a change feed, by Spark or, if it is small, without."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.algebra.bag import SignedBag
from strandline.algebra.schema import Column, Schema
from strandline.engine import tables
from strandline.engine.files import read_rows
from strandline.engine.session import Engine
from strandline.ingest.leaf import ingest
from strandline.store.deltas import Delta
from tests.conftest import bag

pytestmark = pytest.mark.spark

FED = {"delta.enableChangeDataFeed": "true"}

KINDS: dict[str, tuple[pa.DataType, str, list[Any]]] = {
    "k": (pa.int64(), "bigint", [1, 2, None]),
    "i": (pa.int32(), "int", [7, None, -7]),
    "price": (pa.decimal128(15, 2), "decimal(15,2)", [Decimal("1.50"), None, Decimal("-2.25")]),
    "word": (pa.string(), "string", ["a", "", None]),
    "day": (pa.date32(), "date", [date(2026, 1, 1), None, date(1600, 2, 3)]),
    "at": (pa.timestamp("us", "UTC"), "timestamp", [datetime(2026, 1, 1, 2, 3, tzinfo=UTC), None, None]),
    "real": (pa.float64(), "double", [0.5, None, float("inf")]),
    "flag": (pa.bool_(), "boolean", [True, False, None]),
    "raw": (pa.binary(), "binary", [b"x", b"", None]),
}
COLUMNS: Schema = tuple(Column(name, kind) for name, (_, kind, _) in KINDS.items())


def rows(*copies: int) -> pa.Table:
    """The rows of that number, each as often as it is said."""
    places = [place for place, count in enumerate(copies) for _ in range(count)]
    return pa.table({name: pa.array([values[p] for p in places], kind) for name, (kind, _, values) in KINDS.items()})


def table(path: Path) -> str:
    """Rows that come, go, come again and change, and a column that does not matter."""
    where = str(path)
    write_deltalake(where, rows(1, 2, 1), configuration=FED)
    write_deltalake(where, rows(3, 0, 2), mode="append")
    DeltaTable(where).delete("k = 1")
    write_deltalake(where, rows(2, 1, 0), mode="append")
    DeltaTable(where).update({"i": "8"}, predicate="k = 2")
    DeltaTable(where).update({"i": "i"}, predicate="k IS NULL")
    return where


def taken_in(
    engine: Engine, path: str, columns: Schema, into: Path, *, small: bool
) -> tuple[Delta, pa.Table | None, int]:
    changes = tables.change_feed(path, 0, DeltaTable(path).version(), columns)
    with engine.step("t", "ingest", small=small) as metrics:
        delta = ingest(engine, "s.t", changes, columns, str(into))
    return delta, read_rows(str(into)) if delta.rows else None, metrics.jobs or 0


def signed(found: pa.Table | None, columns: Sequence[str]) -> SignedBag:
    given = [] if found is None else found.to_pylist()
    come, gone = (bag([row[c] for c in columns] for row in given if row["__sign"] == sign) for sign in (1, -1))
    return come - gone


def test_a_small_change_feed_is_netted_without_spark(tmp_path: Path, engine: Engine) -> None:
    path = table(tmp_path / "t")
    usual, by_spark, jobs = taken_in(engine, path, COLUMNS, tmp_path / "spark", small=False)
    delta, here, none = taken_in(engine, path, COLUMNS, tmp_path / "here", small=True)
    assert jobs and not none
    assert (delta.inserted, delta.deleted) == (usual.inserted, usual.deleted)
    assert here is not None and by_spark is not None
    assert (here.schema.names, here.schema.types) == (by_spark.schema.names, by_spark.schema.types)
    for names in (tuple(KINDS), ("k",), ("k", "word"), ("i", "real")):
        columns = tuple(column for column in COLUMNS if column.name in names)
        _, found, _ = taken_in(engine, path, columns, tmp_path / "some", small=True)
        assert signed(found, names) == signed(by_spark, names) != SignedBag()


def test_changes_have_the_types_that_they_had_then(tmp_path: Path, engine: Engine) -> None:
    path = table(tmp_path / "t")
    changes = tables.change_feed(path, 0, DeltaTable(path).version(), COLUMNS)
    later = pa.table({"k": pa.array([1], pa.int32()), "real": pa.array([1], pa.int32())})
    write_deltalake(path, later, mode="overwrite", schema_mode="overwrite")
    with engine.step("t", "ingest", small=True) as metrics:
        ingest(engine, "s.t", changes, COLUMNS, str(tmp_path / "here"))
    found = read_rows(str(tmp_path / "here"))
    assert not metrics.jobs and found.schema.field("real").type == pa.float64()
    assert 0.5 in found.column("real").to_pylist()


def test_changes_that_cancel_out_leave_nothing(tmp_path: Path, engine: Engine) -> None:
    path = str(tmp_path / "t")
    write_deltalake(path, rows(1, 0, 0), configuration=FED)
    write_deltalake(path, rows(0, 2, 0), mode="append")
    DeltaTable(path).delete("k = 2")
    delta, found, _ = taken_in(engine, path, COLUMNS, tmp_path / "d", small=True)
    assert (delta.rows, found) == (0, None)


def test_what_a_killed_step_left_is_replaced(tmp_path: Path, engine: Engine) -> None:
    path, into = table(tmp_path / "t"), tmp_path / "d"
    first, _, _ = taken_in(engine, path, COLUMNS, into, small=True)
    (into / "part-1.parquet").write_bytes((into / "part-0.parquet").read_bytes())
    again, found, _ = taken_in(engine, path, COLUMNS, into, small=True)
    assert again == first
    assert found is not None and found.num_rows == first.rows


def test_nested_values_are_left_to_spark(tmp_path: Path, engine: Engine) -> None:
    path, columns = str(tmp_path / "t"), (Column("k", "bigint"), Column("list", "array<bigint>"))
    write_deltalake(path, pa.table({"k": [1], "list": [[1]]}), configuration=FED)
    write_deltalake(path, pa.table({"k": [2, 3], "list": [[1, 2], None]}), mode="append")
    DeltaTable(path).delete("k = 3")
    delta, found, jobs = taken_in(engine, path, columns, tmp_path / "d", small=True)
    assert jobs and (delta.inserted, delta.deleted) == (1, 0)
    assert found is not None and found.select(["k", "list"]).to_pylist() == [{"k": 2, "list": [1, 2]}]


def test_a_text_is_a_change_feed_or_it_is_not() -> None:
    feed = tables.change_feed("/lake/t", 3, 5, COLUMNS)
    assert tables.change_feed_of(feed, COLUMNS) == ("/lake/t", 4, 5)
    assert tables.change_feed_of(feed, COLUMNS[:1]) is None
    assert tables.change_feed_of(f"SELECT * FROM ({feed})", COLUMNS) is None
    assert tables.change_feed_of(tables.no_changes(COLUMNS), COLUMNS) is None
