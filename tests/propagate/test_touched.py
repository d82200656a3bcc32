"""Columns that joins set equal, and files that hold keys."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import write_deltalake

from strandline.algebra.plan import At, Exists, Filter, Join, Scan
from strandline.algebra.scalar import Call, Col, Lit, Text, equality
from strandline.algebra.schema import Column
from strandline.engine.delta_log import DeltaLog
from strandline.engine.statistics import TableSize
from strandline.propagate.touched import equal_columns, meeting


def scan(table: str, *columns: str) -> Scan:
    return Scan(At(table), table, tuple(Column(name, "bigint") for name in columns))


ORDERS, LINES, PARTS = scan("o", "key", "cust"), scan("l", "order", "part"), scan("p", "id")


def test_columns_that_joins_set_equal_belong_together() -> None:
    written = Text((Col("l.order"), " = ", Col("o.key")), meaning=equality("l.order", "o.key"))
    other = Call("<", (Col("o.cust"), Lit(5)))
    joined = Join((ORDERS, LINES), (written, other))
    body = Exists(joined, PARTS, ((Col("l.part"), Col("p.id")),))
    assert set(equal_columns(body)) == {
        frozenset({("l", "order"), ("o", "key")}),
        frozenset({("l", "part"), ("p", "id")}),
    }
    assert equal_columns(Filter(ORDERS, other)) == ()


def test_equality_goes_through_a_third_column() -> None:
    body = Join((ORDERS, LINES, PARTS), (equality("l.order", "o.key"), equality("o.key", "p.id")))
    equal = equal_columns(body)
    assert equal == (frozenset({("l", "order"), ("o", "key"), ("p", "id")}),)
    assert list(meeting(equal, "l", ["p", "l"])) == [("order", ("p", "id"))]
    assert list(meeting(equal, "l", ["l"])) == []


def test_files_hold_a_key_that_lies_in_their_range(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    for first in (0, 100, 200):
        rows = pa.table({"k": pa.array(range(first, first + 50), pa.int64()), "s": ["x"] * 50})
        write_deltalake(path, rows, mode="append")
    files = DeltaLog(path).files(2)
    assert files.count == 3
    counts = {keys: len(files.holding("k", keys) or ()) for keys in [(0,), (49, 200), (60, 75), (0, 1, 2), ()]}
    assert counts == {(0,): 1, (49, 200): 2, (60, 75): 0, (0, 1, 2): 1, (): 0}
    places = files.holding("k", (49, 200)) or ()
    on_disk = sum((Path(path) / files.paths[place]).stat().st_size for place in places)
    assert files.sized(places) == TableSize(rows=100, bytes=on_disk, files=2)
    assert files.holding("k", ["text"]) is None
    assert files.holding("nothing", [1]) is None
