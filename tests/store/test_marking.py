"""Rows that go are found in the files that hold them, by their key, whatever was marked there before."""

from __future__ import annotations

import tempfile
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, TableFeatures, write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.engine import vectors
from strandline.engine.opened import opened
from strandline.errors import StoreError
from strandline.store.marking import _going
from strandline.store.node import Node
from tests.store.test_replacing import KEY, Rows, shown, table, tables


def node(folder: Path) -> Node:
    return cast(Node, SimpleNamespace(name="v", key=KEY, path=str(folder)))


def stored(folder: Path, parts: list[Rows]) -> None:
    """A table with a file for each part, of which those without rows have none."""
    write_deltalake(str(folder), table({}))
    for part in parts:
        write_deltalake(str(folder), table(part), mode="append")
    DeltaTable(str(folder)).alter.add_feature(TableFeatures.DeletionVectors, allow_protocol_versions_increase=True)


def at(folder: Path, places: dict[str, Any]) -> list[Any]:
    """The rows at places of files."""
    return [row for path, found in places.items() for row in shown(pq.read_table(folder / path).take(pa.array(found)))]


@settings(max_examples=20, deadline=None)
@given(tables, tables, st.data())
def test_what_goes_is_found_and_what_is_left_is_the_rest(old: Rows, wanted: Rows, data: st.DataObject) -> None:
    numbers = data.draw(st.lists(st.integers(0, 2), min_size=len(old), max_size=len(old)))
    parts = [
        {key: rest for (key, rest), number in zip(old.items(), numbers, strict=True) if number == part}
        for part in range(3)
    ]
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place, "t")
        stored(folder, parts)
        left = dict(old)
        for _ in range(2):
            gone_keys = data.draw(st.sets(st.sampled_from(sorted(left)))) if left else set()
            gone = {key: left[key] for key in gone_keys}
            came = {key: rest for key, rest in wanted.items() if key in gone or key not in left}
            head = opened(str(folder))
            found = _going(node(folder), head, table(came), table(gone))
            assert sorted(row[:3] for row in at(folder, found)) == sorted(gone)
            if found:
                now = head.table.version()
                vectors.marks(folder, now, found, head.deleted).commit(now + 1, "step")
            left = {key: rest for key, rest in left.items() if key not in gone}
            rows = pa.table(DeltaTable(str(folder)).scan().read_all())
            assert sorted(row[:3] for row in shown(rows.select(list(KEY)))) == sorted(left)


def test_a_row_that_was_marked_before_is_not_there_any_more(tmp_path: Path) -> None:
    row: Rows = {(1, "a", date(2026, 1, 1)): (None, None)}
    stored(tmp_path / "t", [row])
    head = opened(str(tmp_path / "t"))
    found = _going(node(tmp_path / "t"), head, table({}), table(row))
    now = head.table.version()
    vectors.marks(tmp_path / "t", now, found, head.deleted).commit(now + 1, "step")
    with pytest.raises(StoreError, match="0 are there"):
        _going(node(tmp_path / "t"), opened(str(tmp_path / "t")), table({}), table(row))
    assert _going(node(tmp_path / "t"), opened(str(tmp_path / "t")), table(row), table({})) == {}
    assert np.concatenate([*found.values()]).tolist() == [0]
