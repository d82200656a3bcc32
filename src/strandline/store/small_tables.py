"""Small tables brought up to date here: rows and delta are read, added up, and written in one commit, without Spark.

Left to Spark are values that Arrow does not tell apart as Spark does, and tables that have to be written by Spark.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.schema import names
from strandline.engine.files import read_rows
from strandline.engine.little import appendable, read_version, usual, writable, write_table
from strandline.engine.session import Engine
from strandline.errors import StoreError
from strandline.sql.render import SIGN
from strandline.stopwatch import spending
from strandline.store.deltas import Delta, require_all
from strandline.store.node import Node

_COPIES = f"{SIGN}_sum"


def append(engine: Engine, node: Node, delta: Delta, commit: str) -> bool:
    """Append the rows of a delta that only inserts; False if that is left to Spark."""
    if not engine.small or not appendable(node.path, engine.storage_options):
        return False
    with spending("files"):
        rows = unit_rows(engine, node, delta)
    if not told_apart_by_arrow(rows.schema):
        return False
    _write(engine, node, rows.drop_columns([SIGN]), "append", commit)
    return True


def overwrite(engine: Engine, node: Node, delta: Delta, baseline: int, commit: str) -> bool:
    """Write version *baseline* anew with the rows of a delta; False if that is left to Spark."""
    if not engine.small or not writable(node.path, engine.storage_options):
        return False
    with spending("files"):
        old = read_version(node.path, baseline, names(node.stored), engine.storage_options)
        if old is None or not told_apart_by_arrow(old.schema):
            return False
        rows = after(node.name, old, unit_rows(engine, node, delta))
    _write(engine, node, rows, "overwrite", commit)
    return True


def unit_rows(engine: Engine, node: Node, delta: Delta) -> pa.Table:
    """All rows of a stored delta, with their signs."""
    rows = usual(read_rows(delta.path, engine.storage_options, (*names(node.stored), SIGN)))
    require_all(delta, rows.num_rows)
    return rows


def after(name: str, old: pa.Table, delta: pa.Table) -> pa.Table:
    """The rows of the table *name* when unit rows have come to its *old* ones: each as often as signs add up to."""
    kinds = {field.name: field.type for field in old.schema}
    columns = [*kinds]
    signed = old.append_column(SIGN, pa.repeat(pa.scalar(1, pa.int32()), old.num_rows))
    both = pa.concat_tables([signed, delta.cast(signed.schema)])
    for place, column in enumerate(columns):
        if pa.types.is_floating(kinds[column]):
            both = both.set_column(place, column, _one_of_each(both.column(column)))
    counted = both.group_by(columns, use_threads=False).aggregate([(SIGN, "sum")])
    copies = counted.column(_COPIES)
    if counted.num_rows and (least := pc.min(copies).as_py()) < 0:
        raise StoreError(
            "DELETE_WITHOUT_ROW",
            f"{name}: the delta deletes a row that the table does not hold; left over: {least}. Somebody else "
            "changed the table; refresh the view in full.",
        )
    kept = counted.filter(pc.greater(copies, 0))
    rows = kept.select(columns)
    if kept.num_rows and pc.max(kept.column(_COPIES)).as_py() > 1:
        rows = rows.take(_repeated(kept.column(_COPIES)))
    return rows.cast(old.schema)


def _one_of_each(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floating numbers as Spark groups by them: there is one zero, and one that is not a number."""
    zero, nan = pa.scalar(0.0, values.type), pa.scalar(float("nan"), values.type)
    return pc.if_else(pc.is_nan(values), nan, pc.add(values, zero))


def _repeated(copies: pa.ChunkedArray) -> pa.Array:
    """The place of each row as often as there are copies of it."""
    lists = pa.ListArray.from_arrays(
        pa.concat_arrays([pa.array([0], pa.int32()), pc.cumulative_sum(copies).combine_chunks().cast(pa.int32())]),
        pa.nulls(pc.sum(copies).as_py()),
    )
    return pc.list_parent_indices(lists)


def _write(engine: Engine, node: Node, rows: pa.Table, mode: str, commit: str) -> None:
    with spending("commit"):
        write_table(rows, node.path, mode, {}, commit, engine.storage_options)


def told_apart_by_arrow(schema: pa.Schema) -> bool:
    """Whether values of these types are the same to Arrow if they are to Spark."""
    return not any(pa.types.is_nested(kind) or pa.types.is_null(kind) for kind in schema.types)
