"""A leaf's changes over an interval, peeked at and made durable.

A Delta table keeps its own history, so what is stored here is the net delta, once for all views that use it; which
transactions it covers goes into the unit-of-work log, and then the source may forget them.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.plan import Change, Net, Scan
from strandline.algebra.schema import Schema, comparable, names
from strandline.catalog import Catalog, Lease, Transaction
from strandline.engine import tables
from strandline.engine.little import read_feed
from strandline.engine.session import Engine
from strandline.sources.protocol import Position, Source
from strandline.sql.render import SIGN, render
from strandline.stopwatch import spending
from strandline.store.deltas import Delta, write_delta
from strandline.store.netting import write_net
from strandline.store.small_tables import told_apart_by_arrow


def ingest(engine: Engine, leaf: str, changes: str, columns: Schema, path: str) -> Delta:
    """Write the net of the signed rows of *changes*, which has *columns*, as a stored delta of a leaf at *path*."""
    with spending("files"):
        if (rows := _fed(engine, changes, columns)) is not None:
            return write_net(rows, path, engine.storage_options)
    if not all(comparable(column) for column in columns):
        return write_delta(engine, changes, columns, path)
    scan = Scan(Change(leaf), "", columns)
    return write_delta(engine, render(Net(scan), lambda _: changes, signed=True), columns, path)


def _fed(engine: Engine, changes: str, columns: Schema) -> pa.Table | None:
    """The signed rows of a small change feed, read without Spark; None if *changes* are left to it."""
    feed = tables.change_feed_of(changes, columns) if engine.small else None
    rows = None if feed is None else read_feed(*feed, engine.storage_options)
    if rows is None or not set(rows.schema.names).issuperset(names(columns)):
        return None
    shown = rows.select(names(columns))
    if not told_apart_by_arrow(shown.schema):
        return None
    coming = pc.is_in(rows.column("_change_type"), value_set=pa.array(tables.COMING))
    return shown.append_column(SIGN, pc.if_else(coming, pa.scalar(1, pa.int32()), pa.scalar(-1, pa.int32())))


def log_transactions(
    catalog: Catalog, source: Source, table: str, after: Position, upto: Position, lease: Lease
) -> int:
    """Note the transactions in (after, upto] in the unit-of-work log, then acknowledge them; how many were new."""
    peek = source.peek(table, after, upto)
    noted = [Transaction(t.position, t.txid, t.committed_at) for t in peek.transactions if t.changes_data]
    new = catalog.unit_of_work.append(f"{source.name}.{table}", noted, upto, lease=lease)
    source.acknowledge(table, upto)
    return new
