"""Rows with a key replaced in the files that hold them, which are read, changed and written here, without Spark.

A MERGE looks for the rows to change in all files near the delta, twice, and marks or copies them, in a dozen jobs.
Where these files are not large, reading and writing them once is less work than that. A table that lies in ranges of
its key keeps doing so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.equality import WHOLE_NUMBERS
from strandline.algebra.schema import names
from strandline.engine.delta_log import DeltaLog
from strandline.engine.files import columns, read_column, read_rows
from strandline.engine.little import read_version, writable, write_table
from strandline.engine.session import Engine
from strandline.engine.statistics import Files, TableSize, added_up
from strandline.engine.vectors import Numbers
from strandline.errors import StoreError
from strandline.sql.render import SIGN
from strandline.stopwatch import spending
from strandline.store.deltas import Delta
from strandline.store.matching import BOUNDED
from strandline.store.node import Node
from strandline.store.small_tables import told_apart_by_arrow, unit_rows

MOST_BYTES = 64 << 20
MOST_ROWS = 16_000_000
"""Files of more bytes or rows than these are left to Spark: all their rows are held in memory here."""

FEW_BYTES = 8 << 20
"""So much is written anew however little changes."""

REWRITTEN = 1_000
"""Of more bytes, so many rows may be written anew for each that changes: old versions are kept for days."""

REWRITTEN_BESIDE_MARKS = 100
"""So many where rows could be marked instead, which takes less."""

FILE_BYTES = 8 << 20
FILE_ROWS = 1_000_000
"""A file that is written here has about so many bytes, one by Spark so many rows: the next delta may touch few."""

_COMPARED = ("decimal", "boolean", "timestamp")
"""More types whose values are equal to Arrow if they are to Spark."""


@dataclass(frozen=True)
class Stretch:
    """Rows whose first key column is at least *first* and below *end*, where these are given.

    *size* is that of the files that hold such rows; no other rows are in them.
    """

    first: int | None
    end: int | None
    size: TableSize


@dataclass(frozen=True)
class Part:
    """What of a *version* is written anew for a delta: stretches that lie apart, in their order."""

    version: int
    stretches: tuple[Stretch, ...]

    @property
    def size(self) -> TableSize:
        """Of their files."""
        return added_up(stretch.size for stretch in self.stretches)


def pays(changed: int, rows: int | None, bytes: int, *, can_be_marked: bool = False) -> bool:
    """Whether files of so many rows and bytes may be written anew for so many *changed* rows."""
    if rows is None or rows > MOST_ROWS or bytes > MOST_BYTES:
        return False
    return bytes <= FEW_BYTES or changed * (REWRITTEN_BESIDE_MARKS if can_be_marked else REWRITTEN) >= rows


def replaceable(node: Node, options: Mapping[str, str]) -> bool:
    """Whether rows of a table can be replaced here: they have a key of plain values, and Spark left no marks on it."""
    return found_by_key(node) and writable(node.path, options)


def found_by_key(node: Node) -> bool:
    """Whether rows of a table have a key of values that are equal to Arrow if they are to Spark."""
    by = [column.type for column in node.stored if column.name in node.key]
    return bool(by) and all(kind in BOUNDED or kind.startswith(_COMPARED) for kind in by)


def part_of(engine: Engine, node: Node, delta: Delta, version: int) -> Part | None:
    """The part of a table that *delta* changes; None if its rows cannot be replaced here."""
    options = engine.storage_options
    if delta.form != "explicit" or not delta.rows or not replaceable(node, options):
        return None
    if not told_by_keys(node, delta, options):
        return None
    files = DeltaLog(node.path, options).files(version)
    return Part(version, _touched(node, delta, files, options) or (Stretch(None, None, files.size),))


def told_by_keys(node: Node, delta: Delta, options: Mapping[str, str]) -> bool:
    """Whether the delta has no values but those that Arrow tells apart as Spark does, and no key that is NULL."""
    stored = columns(delta.path, options)
    if stored is None or not told_apart_by_arrow(stored):
        return False
    keys = read_rows(delta.path, options, node.key)
    return not any(keys.column(name).null_count for name in node.key)


def _touched(node: Node, delta: Delta, files: Files, options: Mapping[str, str]) -> tuple[Stretch, ...]:
    """The stretches that keys of the delta lie in; none if the log does not tell files apart by them."""
    if not _in_order(node):
        return ()
    groups = files.apart(node.key[0])
    keys = read_column(delta.path, node.key[0], options)
    if not groups or keys is None:
        return ()
    firsts = [first for first, _ in groups]
    places = np.searchsorted(firsts, pc.unique(keys).to_numpy(), side="right") - 1
    found: list[list[int]] = []
    for place in np.unique(np.maximum(places, 0)).tolist():
        if found and found[-1][-1] == place - 1:
            found[-1].append(place)
        else:
            found.append([place])
    return tuple(
        Stretch(
            firsts[run[0]] if run[0] else None,
            firsts[run[-1] + 1] if run[-1] + 1 < len(firsts) else None,
            added_up(groups[place][1] for place in run),
        )
        for run in found
    )


def _in_order(node: Node) -> bool:
    """Whether the rows of a table are kept in the order of the first column of its key."""
    return next(column.type for column in node.stored if column.name == node.key[0]) in WHOLE_NUMBERS


def replace(engine: Engine, node: Node, delta: Delta, part: Part, step_id: str, last: str) -> None:
    """Write a part of the table anew with the rows of a delta: a commit for each stretch, which carries *step_id*.

    That of the last one is *last*, which says that the step is done.
    """
    with spending("files"):
        rows = unit_rows(engine, node, delta)
        written = [_anew(engine, node, rows, part.version, stretch) for stretch in part.stretches]
    with spending("commit"):
        for number, (stretch, new) in enumerate(zip(part.stretches, written, strict=True)):
            said = last if number + 1 == len(written) else step_id
            where = _said(node.key[0], stretch)
            options = engine.storage_options
            write_table(new, node.path, "overwrite", {}, said, options, where=where, file_bytes=FILE_BYTES)


def _anew(engine: Engine, node: Node, delta: pa.Table, version: int, stretch: Stretch) -> pa.Table:
    """The rows of a stretch after the delta."""
    within = _within(node.key[0], stretch)
    old = read_version(node.path, version, names(node.stored), engine.storage_options, within)
    assert old is not None, "a table that is written here is read here"
    new = replaced(node.name, old, delta if within is None else delta.filter(within), node.key)
    return in_order(new, node.key[0]) if _in_order(node) else new


def _within(column: str, stretch: Stretch) -> pc.Expression | None:
    """The rows of a stretch for Arrow; None is all."""
    tests = [pc.field(column) >= stretch.first] if stretch.first is not None else []
    tests += [pc.field(column) < stretch.end] if stretch.end is not None else []
    return None if not tests else tests[0] if len(tests) == 1 else tests[0] & tests[1]


def _said(column: str, stretch: Stretch) -> str | None:
    """The same for delta-rs."""
    name = '"' + column.replace('"', '""') + '"'
    tests = [f"{name} >= {stretch.first}"] if stretch.first is not None else []
    tests += [f"{name} < {stretch.end}"] if stretch.end is not None else []
    return " AND ".join(tests) or None


def in_order(rows: pa.Table, column: str) -> pa.Table:
    """*rows* in the order of a column of numbers, NULL last; those that are in order stay as they are."""
    values = rows.column(column)
    if not values.null_count:
        numbers = values.to_numpy()
        if (numbers[1:] >= numbers[:-1]).all():
            return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[(column, "ascending")]))


def replaced(name: str, old: pa.Table, delta: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows of the table *name* after unit rows of a delta, those that stay or are updated where they were.

    No value of *key* is NULL in the delta.
    """
    signs = delta.column(SIGN)
    rows = delta.drop_columns([SIGN]).cast(old.schema) if delta.num_rows else old.slice(0, 0)
    came, gone = rows.filter(pc.greater(signs, 0)), rows.filter(pc.less(signs, 0))
    near = near_keys(old, rows, key)
    going, there, by = changing(name, old.select(list(key)).take(pa.array(near)), near, came, gone, key)
    places = np.arange(old.num_rows)
    places[there] = old.num_rows + by
    stay = np.ones(old.num_rows, dtype=bool)
    stay[np.setdiff1d(going, there)] = False
    added = np.setdiff1d(np.arange(came.num_rows), by)
    chosen = np.concatenate([places[stay], old.num_rows + added])
    return pa.concat_tables([old, came]).take(pa.array(chosen))


def near_keys(old: pa.Table, rows: pa.Table, key: Sequence[str]) -> Numbers:
    """The places in *old* of rows whose first key column has a value that it has in *rows*."""
    there = pc.is_in(old.column(key[0]), pc.unique(rows.column(key[0])))
    found: Numbers = pc.indices_nonzero(there).to_numpy().astype(np.int64)
    return found


def changing(
    name: str, among: pa.Table, places: Numbers, came: pa.Table, gone: pa.Table, key: Sequence[str]
) -> tuple[Numbers, Numbers, Numbers]:
    """The places of rows of the table *name* that go, of those whose key comes, and the numbers of these in *came*.

    *among* are the keys of the table at *places*, all that may match. What goes has to be there, what comes not, unless
    it goes as well.
    """
    going, _ = _matches(among, places, gone, key)
    there, by = _matches(among, places, came, key)
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
    return going, there, by


_PLACE, _NUMBER = "place in table", "number in delta"


def _matches(among: pa.Table, places: Numbers, rows: pa.Table, key: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Where in the table keys of *rows* are, and the numbers of these rows; *among* are the keys at some *places*."""
    ours = among.append_column(_PLACE, pa.array(places, pa.int64()))
    theirs = rows.select(list(key)).append_column(_NUMBER, pa.array(np.arange(rows.num_rows), pa.int64()))
    found = ours.join(theirs, list(key), join_type="inner")
    return found.column(_PLACE).to_numpy(), found.column(_NUMBER).to_numpy()
