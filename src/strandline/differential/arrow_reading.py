"""Reading a snapshot in this process: record batches in the order of the rows, a few at a time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from strandline.differential.snapshot import Snapshot, first_line
from strandline.differential.unreadable import SHOWN, Policy, Unreadable
from strandline.errors import DifferentialError

DECODING = 5 << 19
"""Bytes that reading a column of a file takes besides its rows: a page and a dictionary, about a megabyte each."""

PROBE = 1_000
"""Rows that are read to find out how large rows are, and whether they come in order."""


def batches(
    snapshot: Snapshot, schema: pa.Schema, rows: int, unreadable: Unreadable, policy: Policy
) -> Iterator[pa.RecordBatch]:
    """The rows of a snapshot that this process can read, with the columns of *schema*, about *rows* at a time."""
    assert snapshot.files is not None
    for file in snapshot.files:
        try:
            if snapshot.format == "csv":
                yield from _typed(_csv(file, snapshot, schema, unreadable), schema, unreadable, policy)
            else:
                yield from _parquet(file, schema, rows)
        except (pa.ArrowException, OSError) as error:
            raise DifferentialError(
                "SNAPSHOT_UNREADABLE",
                f"{file} cannot be read to its end: {first_line(error)}; put it right or take it away.",
            ) from error


def row_bytes(snapshot: Snapshot, schema: pa.Schema) -> float:
    """About how large a row is in memory."""
    probe = Unreadable(snapshot.name)
    for batch in batches(snapshot, schema, PROBE, probe, "set-aside"):
        if batch.num_rows:
            return float(batch.nbytes / batch.num_rows)
    return 1.0


def _parquet(file: str, schema: pa.Schema, rows: int) -> Iterator[pa.RecordBatch]:
    # Without pre-buffering, pages are decoded as they are needed: memory does not depend on the size of row groups.
    with pq.ParquetFile(file, pre_buffer=False, memory_map=True) as stored:
        present = [name for name in schema.names if name in stored.schema_arrow.names]
        for batch in stored.iter_batches(rows, columns=present, use_threads=True):
            yield _cast(batch, schema)


def _cast(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """*batch* in the types of *schema*; a column that the file does not have is NULL."""
    names = batch.schema.names
    columns = [
        batch.column(names.index(field.name)) if field.name in names else pa.nulls(batch.num_rows, field.type)
        for field in schema
    ]
    arrays = [
        column if column.type == field.type else _decoded(column).cast(field.type)
        for column, field in zip(columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _decoded(column: pa.Array) -> pa.Array:
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _csv(file: str, snapshot: Snapshot, schema: pa.Schema, unreadable: Unreadable) -> Iterator[pa.RecordBatch]:
    """Lines as text; unquoted nothing is NULL, ``""`` is the empty text."""
    assert snapshot.schema is not None
    skipped: list[Any] = []

    def skip(row: Any) -> str:
        skipped.append(row)
        return "skip"

    convert = csv.ConvertOptions(
        column_types={name: pa.string() for name in snapshot.schema.names},
        include_columns=[name for name in schema.names if name in snapshot.schema.names],
        null_values=[""],
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )
    read = csv.ReadOptions(block_size=1 << 22, use_threads=False)
    parse = csv.ParseOptions(invalid_row_handler=skip)
    # The stream is decompressed as its name says.
    with pa.input_stream(file) as stream, csv.open_csv(stream, read, parse, convert) as reader:
        while True:
            try:
                batch = reader.read_next_batch()
            except StopIteration:
                break
            finally:
                unreadable.add(len(skipped), [f"{row.text}" for row in skipped[:SHOWN]])
                skipped.clear()
            yield batch


def _typed(
    texts: Iterator[pa.RecordBatch], schema: pa.Schema, unreadable: Unreadable, policy: Policy
) -> Iterator[pa.RecordBatch]:
    """Lines of text in the types of *schema*; those with a value that is not of its type are unreadable."""
    for batch in texts:
        try:
            yield _cast(batch, schema)
        except pa.ArrowInvalid:
            good = pa.array([_readable(batch.slice(place, 1), schema) for place in range(batch.num_rows)])
            bad = batch.filter(pc.invert(good))
            shown = [",".join("" if v is None else str(v) for v in row.values()) for row in bad.slice(0, 5).to_pylist()]
            unreadable.add(bad.num_rows, shown)
            yield _cast(batch.filter(good), schema)
        unreadable.refuse(policy)


def _readable(row: pa.RecordBatch, schema: pa.Schema) -> bool:
    try:
        _cast(row, schema)
    except pa.ArrowInvalid:
        return False
    return True
