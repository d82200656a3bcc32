"""The change log: what a source said of one of its tables, in commit order.

An entry holds a row in the source's own text form. What counts is the version that the catalog names: entries of a
capture that crashed before it was recorded are undone by the next one; so is what removed entries that nobody needs any
more, and was not recorded. It is written without Spark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa
from deltalake import write_deltalake

from strandline.engine import tables
from strandline.engine.delta_log import DeltaLog
from strandline.sources.protocol import Entry
from strandline.sql.names import quoted_list

ROWS_AT_ONCE = 50_000
"""Entries are written in portions of this many, so that a huge transaction needs no more memory than a small one."""

CONTROL = ("_log", "_place", "_n", "_xid", "_op", "_unchanged")


def column(number: int) -> str:
    """The name of the log's column for the copy's column *number*, from 0."""
    return f"c{number + 1}"


class ChangeLog:
    """The log of one table, being written; *version* is the one that counts, None before the first."""

    def __init__(self, path: str, columns: int, version: int | None, storage_options: Mapping[str, str]) -> None:
        self.path = path
        self._storage_options = dict(storage_options) or None
        self._schema = pa.schema(
            [
                ("_log", pa.string()),
                ("_place", pa.int64()),
                ("_n", pa.int64()),
                ("_xid", pa.int64()),
                ("_op", pa.string()),
                ("_unchanged", pa.list_(pa.int32())),
                *((column(number), pa.string()) for number in range(columns)),
            ]
        )
        self.version = version
        self._ready = False
        self._rows: list[list[object]] = [[] for _ in self._schema]

    def add(self, number: int, entry: Entry, log: str, place: int, xid: int) -> None:
        """One entry, the *number*-th of its transaction."""
        row = (log, place, number, xid, entry.op, list(entry.unchanged) or None, *entry.values)
        for values, value in zip(self._rows, row, strict=True):
            values.append(value)
        if len(self._rows[0]) >= ROWS_AT_ONCE:
            self.flush()

    def flush(self) -> None:
        """Write what was added so far."""
        if not self._rows[0]:
            return
        self._make_ready()
        arrays = [pa.array(values, field.type) for values, field in zip(self._rows, self._schema, strict=True)]
        write_deltalake(
            self.path,
            pa.Table.from_arrays(arrays, schema=self._schema),
            mode="append",
            storage_options=self._storage_options,
        )
        self.version = DeltaLog(self.path, self._storage_options).version()
        self._rows = [[] for _ in self._schema]

    def _make_ready(self) -> None:
        """Before the first write: undo what an earlier capture wrote and did not live to record."""
        if self._ready:
            return
        self._ready = True
        log = DeltaLog(self.path, self._storage_options)
        if not log.exists():
            return
        if self.version is None:
            write_deltalake(
                self.path,
                self._schema.empty_table(),
                mode="overwrite",
                schema_mode="overwrite",
                storage_options=self._storage_options,
            )
        elif log.version() != self.version:
            log.restore(self.version, "strandline: entries of an unrecorded capture undone")


def entries(path: str, version: int, columns: Sequence[int]) -> str:
    """A SELECT of the log at a version: control columns, and the columns with these numbers."""
    shown = quoted_list((*CONTROL, *(column(number) for number in columns)))
    return f"SELECT {shown} FROM {tables.table(path, version)}"
