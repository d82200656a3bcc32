"""Stored deltas: what is missing of one is missed."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from strandline.store.deltas import Delta, require_whole


def test_rows_that_were_removed_are_missed(tmp_path: Path) -> None:
    for number in (1, 2):
        pq.write_table(pa.table({"a": [1, 2], "__sign": [1, -1]}), tmp_path / f"part-{number}.parquet")
    delta = Delta(str(tmp_path), 2, 2)
    require_whole([delta, Delta("", 0, 0)])
    (tmp_path / "part-2.parquet").unlink()
    with pytest.raises(FileNotFoundError, match=f"of 4 rows that were stored at {tmp_path}, 2 are there"):
        require_whole([delta])
    (tmp_path / "part-1.parquet").unlink()
    with pytest.raises(FileNotFoundError):
        require_whole([delta])
