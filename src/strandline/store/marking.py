"""Rows with a key marked as deleted in the files that hold them, and new ones appended, without Spark.

Where few rows of a large table change, and lie everywhere in it, writing its files anew would be much for little. Their
places are found by the columns of the key alone, and noted in deletion vectors; the files stay as they are, and with
them what is kept of them (:mod:`strandline.engine.arranged`). Upkeep puts the files in order again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake.exceptions import DeltaError

from strandline.algebra.schema import names
from strandline.engine import files, vectors
from strandline.engine.delta_log import DeltaLog
from strandline.engine.little import usual_type, write_table
from strandline.engine.opened import Opened, opened
from strandline.engine.places import on_disk
from strandline.engine.session import Engine
from strandline.engine.vectors import NONE, Numbers
from strandline.errors import StoreError
from strandline.sql.render import SIGN
from strandline.stopwatch import spending
from strandline.store.deltas import Delta
from strandline.store.node import Node
from strandline.store.replacing import changing, found_by_key, in_order, near_keys, told_by_keys
from strandline.store.small_tables import unit_rows

MOST_ROWS = 1_000_000
"""A delta of more rows is left to Spark."""

MOST_LOOKED_AT = 50_000_000
"""So are tables of more: their keys are read one file after another."""

MOST_FILES = 1_000
"""And those in so many files: it is time to put them together."""


def can_be_marked(node: Node, options: Mapping[str, str]) -> bool:
    """Whether rows of a table can be marked without Spark: they have a key, are not too many, and lie on a disk."""
    if not found_by_key(node) or on_disk(node.path) is None:
        return False
    try:
        known = opened(node.path, None, options)
        size = known.files.size
        few = size.rows is not None and size.rows <= MOST_LOOKED_AT and size.files <= MOST_FILES
        return few and known.readable and vectors.known_to_writers(known.table)
    except (DeltaError, OSError):
        return False


def pays(engine: Engine, node: Node, delta: Delta) -> bool:
    """Whether the rows of *delta* are to be marked and appended."""
    options, few = engine.storage_options, delta.form == "explicit" and 0 < delta.rows <= MOST_ROWS
    if not engine.marks or not few or not can_be_marked(node, options) or not told_by_keys(node, delta, options):
        return False
    head = opened(node.path, None, options)
    try:
        vectors.added(_folder(node) / "_delta_log", head.table.version(), set(head.files.paths))
    except vectors.Unknown:
        return False
    return True


def mark(engine: Engine, node: Node, delta: Delta, step_id: str, last: str) -> int:
    """Append the rows of a delta that come, and mark those that go, in a commit each; the number of commits.

    Only the last one carries *last*, which says that the step is done. Nothing is appended before all is ready.
    """
    options = engine.storage_options
    with spending("files"):
        head = opened(node.path, DeltaLog(node.path, options).version(), options)
        came, gone = _parts(engine, node, delta, head)
        places = _going(node, head, came, gone)
    if gone.num_rows and not vectors.switched_on(head.table):
        raise StoreError("MARKS_OFF", f"the table of {node.name} does not take deletion vectors; refresh it in full.")
    version = head.table.version()
    marks = vectors.marks(_folder(node), version, places, head.deleted)
    with spending("commit"):
        if came.num_rows:
            said = step_id if gone.num_rows else last
            write_table(_ordered(node, came), node.path, "append", {}, said, options)
        if gone.num_rows:
            _commit(node, marks, version + bool(came.num_rows) + 1, last)
    return sum(bool(part.num_rows) for part in (came, gone))


def _folder(node: Node) -> Path:
    folder = on_disk(node.path)
    assert folder is not None, "rows are marked on a disk"
    return folder


def _parts(engine: Engine, node: Node, delta: Delta, head: Opened) -> tuple[pa.Table, pa.Table]:
    """The rows that come, and those that go, in the types of the table."""
    rows = unit_rows(engine, node, delta)
    kinds = pa.schema(head.table.schema().to_arrow())
    stored = pa.schema([pa.field(name, usual_type(kinds.field(name).type)) for name in names(node.stored)])
    signs = rows.column(SIGN)
    found = rows.select(stored.names).cast(stored)
    return found.filter(pc.greater(signs, 0)), found.filter(pc.less(signs, 0))


def _commit(node: Node, marks: vectors.Marks, version: int, last: str) -> None:
    """Mark the rows in the commit that follows on ours: whoever came between may have changed the files."""
    try:
        marks.commit(version, last)
    except FileExistsError as error:
        raise StoreError(
            "FOREIGN_COMMIT",
            f"the table of {node.name} got version {version} from somebody else while a step was about to make it. "
            "The next refresh undoes that.",
        ) from error


def _ordered(node: Node, rows: pa.Table) -> pa.Table:
    whole = pa.types.is_integer(rows.schema.field(node.key[0]).type)
    return in_order(rows, node.key[0]) if whole else rows


def _going(node: Node, head: Opened, came: pa.Table, gone: pa.Table) -> dict[str, Numbers]:
    """Where in files the rows are that go."""
    both = pa.concat_tables([came, gone])
    found = [(path, *_near(head, node, path, both)) for path in _holding(head, both.column(node.key[0]), node.key[0])]
    if not found:
        found = [("", NONE, both.select(list(node.key)).slice(0, 0))]
    numbers = np.arange(sum(len(places) for _, places, _ in found))
    among = pa.concat_tables([keys for _, _, keys in found])
    going, _, _ = changing(node.name, among, numbers, came, gone, node.key)
    chosen = np.zeros(len(numbers), dtype=bool)
    chosen[going] = True
    ends = np.cumsum([len(places) for _, places, _ in found])
    parts = zip(found, np.split(chosen, ends[:-1]), strict=True)
    return {path: places[part] for (path, places, _), part in parts if part.any()}


def _holding(head: Opened, keys: pa.ChunkedArray, column: str) -> list[str]:
    """The files that may hold *keys*: ends of ranges are exact for whole numbers."""
    paths = head.files.paths
    if not pa.types.is_signed_integer(keys.type):
        return paths
    places = head.files.holding(column, sorted(pc.unique(keys).to_pylist()))
    return [path for place, path in enumerate(paths) if places is None or place in places]


def _near(head: Opened, node: Node, path: str, rows: pa.Table) -> tuple[Numbers, pa.Table]:
    """Where in a file keys are that may be those of *rows*, and these keys."""
    kinds = pa.schema([rows.schema.field(name) for name in node.key])
    keys = files.dataset(node.path, [f"{node.path.rstrip('/')}/{path}"], kinds).to_table()
    places = near_keys(keys, rows, node.key)
    left = places[~np.isin(places, head.deleted.get(path, NONE))]
    return left, keys.take(pa.array(left))
