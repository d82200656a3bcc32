"""Rows with a key replaced in the files that hold them: read, changed and written here in one commit, without Spark.

A MERGE looks for the rows to change in all files near the delta, twice, and marks or copies them, in a dozen jobs.
Where these files are not large, reading and writing them once is less work than that. Rows stay where they lie, so a
table that lies in ranges of its key keeps doing so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.near import Pairs
from strandline.algebra.schema import Column, names
from strandline.engine.delta_log import DeltaLog
from strandline.engine.files import columns, read_rows
from strandline.engine.little import read_version, writable, write_table
from strandline.engine.session import Engine
from strandline.engine.statistics import TableSize
from strandline.errors import StoreError
from strandline.sql.render import SIGN
from strandline.stopwatch import spending
from strandline.store.deltas import Delta
from strandline.store.matching import BOUNDED
from strandline.store.node import Node
from strandline.store.ranges import stored_ranges
from strandline.store.small_tables import comparable, unit_rows

MOST_BYTES = 64 << 20
MOST_ROWS = 16_000_000
"""Files of more bytes or rows than these are left to Spark: all their rows are held in memory here."""

FEW_BYTES = 8 << 20
"""So much is written anew however little changes."""

REWRITTEN = 1_000
"""Of more bytes, so many rows may be written anew for each that changes: old versions are kept for days."""

FILE_BYTES = 16 << 20
"""Of what is written, a file has about so many bytes: the next delta may touch few of them."""

_COMPARED = ("decimal", "boolean", "timestamp")
"""More types whose values are equal to Arrow if they are to Spark."""

_WHOLE_NUMBERS = ("tinyint", "smallint", "int", "bigint")


@dataclass(frozen=True)
class Part:
    """What of a *version* is written anew for a delta: rows whose first key column lies in *ranges*, or all.

    *size* is that of the files that hold them, whole.
    """

    version: int
    size: TableSize
    ranges: Pairs | None


def pays(changed: int, rows: int | None, bytes: int) -> bool:
    """Whether files of so many rows and bytes may be written anew for so many *changed* rows."""
    if rows is None or rows > MOST_ROWS or bytes > MOST_BYTES:
        return False
    return bytes <= FEW_BYTES or changed * REWRITTEN >= rows


def replaceable(node: Node, options: Mapping[str, str]) -> bool:
    """Whether rows of a table can be replaced here: they have a key of plain values, and Spark left no marks on it."""
    by = [column.type for column in node.stored if column.name in node.key]
    alike = all(kind in BOUNDED or kind.startswith(_COMPARED) for kind in by)
    return bool(by) and alike and writable(node.path, options)


def part_of(engine: Engine, node: Node, delta: Delta, version: int) -> Part | None:
    """The part of a table that *delta* changes; None if its rows cannot be replaced here."""
    options = engine.storage_options
    if delta.form != "explicit" or not delta.rows or not replaceable(node, options):
        return None
    if _left_to_spark(node, delta, options):
        return None
    ranges = _ranges(delta, next(column for column in node.stored if column.name == node.key[0]), options)
    files = DeltaLog(node.path, options).files(version)
    return Part(version, files.size_within({} if ranges is None else {node.key[0]: ranges}), ranges)


def _left_to_spark(node: Node, delta: Delta, options: Mapping[str, str]) -> bool:
    """Whether the delta has values that Arrow does not tell apart as Spark does, or a key that is NULL."""
    stored = columns(delta.path, options)
    if stored is None or not comparable(stored):
        return True
    keys = read_rows(delta.path, options, node.key)
    return any(keys.column(name).null_count for name in node.key)


def _ranges(delta: Delta, column: Column, options: Mapping[str, str]) -> Pairs | None:
    """Where the keys of the delta lie, if files can be told apart by them."""
    if column.type not in _WHOLE_NUMBERS:
        return None
    found = stored_ranges(delta.path, column, options)
    return None if found is None or found.nulls else found.values


def replace(engine: Engine, node: Node, delta: Delta, part: Part, commit: str) -> None:
    """Write a part of the table anew with the rows of a delta."""
    first, options = node.key[0], engine.storage_options
    within, where = (None, None) if part.ranges is None else (_within(first, part.ranges), _said(first, part.ranges))
    with spending("files"):
        old = read_version(node.path, part.version, names(node.stored), options, within)
        assert old is not None, "a table that is written here is read here"
        new = replaced(node.name, old, unit_rows(engine, node, delta), node.key)
    with spending("commit"):
        write_table(new, node.path, "overwrite", {}, commit, options, where=where, file_bytes=FILE_BYTES)


def _within(column: str, ranges: Pairs) -> pc.Expression:
    tests = [(pc.field(column) >= low) & (pc.field(column) <= high) for low, high in ranges]
    found = tests[0]
    for test in tests[1:]:
        found = found | test
    return found


def _said(column: str, ranges: Pairs) -> str:
    name = '"' + column.replace('"', '""') + '"'
    return " OR ".join(f"({name} >= {low} AND {name} <= {high})" for low, high in ranges)


def replaced(name: str, old: pa.Table, delta: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows of the table *name* after unit rows of a delta, those that stay or are updated where they were.

    No value of *key* is NULL in the delta.
    """
    signs = delta.column(SIGN)
    rows = delta.drop_columns([SIGN]).cast(old.schema) if delta.num_rows else old.slice(0, 0)
    came, gone = rows.filter(pc.greater(signs, 0)), rows.filter(pc.less(signs, 0))
    near = pc.indices_nonzero(pc.is_in(old.column(key[0]), pc.unique(rows.column(key[0])))).to_numpy()
    among = old.select(list(key)).take(pa.array(near))
    going, _ = _matches(among, near, gone, key)
    there, by = _matches(among, near, came, key)
    if len(going) != gone.num_rows or len(np.unique(going)) != len(going):
        raise StoreError(
            "DELETE_WITHOUT_ROW",
            f"{name}: {gone.num_rows} rows were to be deleted by their key ({', '.join(key)}), and {len(going)} are "
            "there; the key is not one, or somebody else changed the table. Refresh the view in full.",
        )
    if not np.isin(there, going).all() or len(np.unique(by)) != len(by):
        raise StoreError(
            "DELETE_WITHOUT_ROW",
            f"{name}: rows were to be inserted whose key ({', '.join(key)}) is there and does not go; the key is not "
            "one, or somebody else changed the table. Refresh the view in full.",
        )
    places = np.arange(old.num_rows)
    places[there] = old.num_rows + by
    stay = np.ones(old.num_rows, dtype=bool)
    stay[np.setdiff1d(going, there)] = False
    added = np.setdiff1d(np.arange(came.num_rows), by)
    chosen = np.concatenate([places[stay], old.num_rows + added])
    return pa.concat_tables([old, came]).take(pa.array(chosen))


_PLACE, _NUMBER = "place in table", "number in delta"


def _matches(among: pa.Table, places: np.ndarray, rows: pa.Table, key: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """Where in the table keys of *rows* are, and the numbers of these rows; *among* are the keys at some *places*."""
    ours = among.append_column(_PLACE, pa.array(places, pa.int64()))
    theirs = rows.select(list(key)).append_column(_NUMBER, pa.array(np.arange(rows.num_rows), pa.int64()))
    found = ours.join(theirs, list(key), join_type="inner")
    return found.column(_PLACE).to_numpy(), found.column(_NUMBER).to_numpy()
