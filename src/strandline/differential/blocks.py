"""Streams of rows as input buffers of a fixed number of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa


def in_blocks(batches: Iterable[pa.RecordBatch], schema: pa.Schema, rows: int) -> Iterator[pa.Table]:
    """The rows of *batches* in tables of *rows* each; the last may be shorter."""
    waiting: list[pa.RecordBatch] = []
    held = 0
    for batch in batches:
        while batch.num_rows:
            part = batch.slice(0, rows - held)
            batch = batch.slice(part.num_rows)
            waiting.append(part)
            held += part.num_rows
            if held == rows:
                yield _table(waiting, schema)
                waiting, held = [], 0
    if held:
        yield _table(waiting, schema)


def _table(batches: list[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    table = pa.Table.from_batches(batches)
    return (table if len(batches) == 1 else table.combine_chunks()).cast(schema)
