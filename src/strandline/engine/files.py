"""Stored Parquet files, looked at without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from deltalake.fs import DeltaStorageHandler
from pyarrow import fs


def has_parquet(path: str, storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether a Parquet file lies directly below *path*: an engine may write none for a result without rows."""
    if "://" not in path:
        return any(Path(path).glob("*.parquet"))
    found = _filesystem(path, storage_options).get_file_info(fs.FileSelector("", recursive=False))
    return any(str(info.path).endswith(".parquet") for info in found)


def count_signs(path: str, sign: str, storage_options: Mapping[str, str] | None = None) -> tuple[int, int]:
    """How many rows of the files at *path* have a positive *sign*, and how many a negative one."""
    positive = negative = 0
    for batch in _stored(path, storage_options).to_batches(columns=[sign]):
        above = pc.sum(pc.greater(batch.column(0), 0)).as_py() or 0
        positive += above
        negative += batch.num_rows - above
    return positive, negative


def count_rows(path: str, storage_options: Mapping[str, str] | None = None) -> int:
    """How many rows the files at *path* have."""
    return int(_stored(path, storage_options).count_rows())


def write_rows(table: pa.Table, path: str, storage_options: Mapping[str, str] | None = None) -> None:
    """Write rows as a file directly below *path*."""
    if "://" in path:
        pq.write_table(table, "part-0.parquet", filesystem=_filesystem(path, storage_options))
        return
    Path(path).mkdir(parents=True, exist_ok=True)
    pq.write_table(table, f"{path}/part-0.parquet")


def read_rows(path: str, storage_options: Mapping[str, str] | None = None) -> pa.Table:
    """The rows of the files at *path*."""
    return _stored(path, storage_options).to_table()


def _stored(path: str, storage_options: Mapping[str, str] | None) -> ds.Dataset:
    if "://" in path:
        return ds.dataset("", format="parquet", filesystem=_filesystem(path, storage_options))
    return ds.dataset(path, format="parquet")


def _filesystem(path: str, storage_options: Mapping[str, str] | None) -> fs.PyFileSystem:
    return fs.PyFileSystem(DeltaStorageHandler(path, dict(storage_options or {}) or None))
