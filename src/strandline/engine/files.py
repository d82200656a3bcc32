"""Stored Parquet files, looked at without Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
from pyarrow import fs

from strandline.engine.places import filesystem, on_disk

PARQUET = ds.ParquetFileFormat(read_options=ds.ParquetReadOptions(coerce_int96_timestamp_unit="us"))
"""Old timestamps, of nanoseconds, have no room for all years."""


def has_parquet(path: str, storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether a Parquet file lies directly below *path*: an engine may write none for a result without rows."""
    return bool(parquet_files(path, storage_options))


def parquet_files(path: str, storage_options: Mapping[str, str] | None = None) -> list[str]:
    """The Parquet files that lie directly below *path*."""
    if (here := on_disk(path)) is not None:
        return sorted(f"{path.rstrip('/')}/{file.name}" for file in here.glob("*.parquet"))
    found = filesystem(path, storage_options).get_file_info(fs.FileSelector("", recursive=False))
    names = sorted(str(info.path) for info in found)
    return [f"{path.rstrip('/')}/{name}" for name in names if name.endswith(".parquet")]


def sizes(path: str, storage_options: Mapping[str, str] | None = None) -> list[int]:
    """The bytes of each of these files."""
    if (here := on_disk(path)) is not None:
        return [file.stat().st_size for file in here.glob("*.parquet")]
    found = filesystem(path, storage_options).get_file_info(fs.FileSelector("", recursive=False))
    return [int(info.size or 0) for info in found if str(info.path).endswith(".parquet")]


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
    if (here := on_disk(path)) is None:
        pq.write_table(table, "part-0.parquet", filesystem=filesystem(path, storage_options))
        return
    here.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, here / "part-0.parquet")


def read_rows(
    path: str, storage_options: Mapping[str, str] | None = None, columns: Sequence[str] | None = None
) -> pa.Table:
    """The rows of the files at *path*: some *columns*, or all."""
    return _stored(path, storage_options).to_table(columns=None if columns is None else list(columns))


def read_column(path: str, name: str, storage_options: Mapping[str, str] | None = None) -> pa.ChunkedArray | None:
    """One column of the files at *path*; None if there are no such files, or they do not have it."""
    if not has_parquet(path, storage_options):
        return None
    stored = _stored(path, storage_options)
    return stored.to_table(columns=[name]).column(0) if name in stored.schema.names else None


def values(path: str, column: str, most: int, storage_options: Mapping[str, str] | None = None) -> list[Any] | None:
    """The values of a column in the files at *path*, sorted, NULL apart; None if there is none or are too many rows."""
    stored = _stored(path, storage_options)
    if column not in stored.schema.names or stored.count_rows() > most:
        return None
    found = pc.unique(stored.to_table(columns=[column]).column(column))
    return sorted(found.drop_null().to_pylist())


def columns(path: str, storage_options: Mapping[str, str] | None = None) -> pa.Schema | None:
    """The columns of the files at *path*; None if there are none."""
    return _stored(path, storage_options).schema if has_parquet(path, storage_options) else None


def dataset(
    folder: str, paths: Sequence[str], schema: pa.Schema, storage_options: Mapping[str, str] | None = None
) -> ds.Dataset:
    """Some files below a *folder*, which have columns of *schema*; one that a file lacks is NULL in it."""
    if on_disk(folder) is not None:
        return ds.dataset([str(on_disk(path)) for path in paths], schema=schema, format=PARQUET)
    below = [path.removeprefix(f"{folder.rstrip('/')}/") for path in paths]
    return ds.dataset(below, schema=schema, format=PARQUET, filesystem=filesystem(folder, storage_options))


def rows_left(
    stored: Callable[[Sequence[str]], ds.Dataset],
    paths: Sequence[str],
    condition: pc.Expression | None,
    deleted: Mapping[str, np.ndarray[Any, Any]],
) -> Iterator[pa.Table]:
    """The rows of files that are as a *condition* says, but for those at places where they are *deleted*."""
    whole = [path for path in paths if path not in deleted]
    if whole:
        yield stored(whole).to_table(filter=condition)
    for path in paths:
        if path in deleted:
            file, place = stored([path]), 0
            for batch in file.to_batches():
                first, last = np.searchsorted(deleted[path], [place, place + batch.num_rows])
                left = np.ones(batch.num_rows, dtype=bool)
                left[deleted[path][first:last] - place] = False
                place += batch.num_rows
                found = pa.Table.from_batches([batch]).filter(pa.array(left))
                yield found if condition is None else found.filter(condition)


def _stored(path: str, storage_options: Mapping[str, str] | None) -> ds.Dataset:
    if (here := on_disk(path)) is None:
        return ds.dataset("", format="parquet", filesystem=filesystem(path, storage_options))
    return ds.dataset(here, format="parquet")
