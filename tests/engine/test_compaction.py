"""Tables put in order without Spark: the same rows, in files by ranges of a column."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline.algebra.bag import SignedBag
from strandline.engine.compaction import lay_out
from strandline.engine.delta_log import DeltaLog


def rows(path: str) -> SignedBag:
    return SignedBag.of(tuple(row.values()) for row in pa.table(DeltaTable(path).to_pyarrow_table()).to_pylist())


def test_a_table_is_put_into_files_by_ranges_of_a_column_and_keeps_its_rows(tmp_path: Path) -> None:
    path, keys = str(tmp_path / "t"), list(range(400_000))
    random.Random(1).shuffle(keys)
    for part in (keys[:200_000], keys[200_000:]):
        write_deltalake(path, pa.table({"k": part, "v": [key * 7919 % 1_000_003 for key in part]}), mode="append")
    log, before = DeltaLog(path), rows(path)
    scattered = log.files().apart("k")
    assert scattered is not None and len(scattered) == 1
    version = log.version()
    lay_out(path, "k", 500_000, {})
    groups = log.files().apart("k")
    assert groups is not None and len(groups) == log.files().count > 1
    assert rows(path) == before
    commits = log.commits(version, log.version())
    assert commits is not None and [commit.changes_data for commit in commits] == [False], "it is no change"
