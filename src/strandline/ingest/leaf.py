"""A leaf's changes over an interval, peeked at and made durable.

A Delta table keeps its own history, so what is stored here is the net delta, once for all views that use it; which
transactions it covers goes into the unit-of-work log, and then the source may forget them.
"""

from __future__ import annotations

from strandline.algebra.plan import Change, Net, Scan
from strandline.algebra.schema import Schema, comparable
from strandline.catalog import Catalog, Lease, Transaction
from strandline.engine.session import Engine
from strandline.sources.protocol import Position, Source
from strandline.sql.render import render
from strandline.store.deltas import Delta, write_delta


def ingest(engine: Engine, leaf: str, changes: str, columns: Schema, path: str) -> Delta:
    """Write the net of the signed rows of *changes*, which has *columns*, as a stored delta of a leaf at *path*."""
    if not all(comparable(column) for column in columns):
        return write_delta(engine, changes, columns, path)
    scan = Scan(Change(leaf), "", columns)
    return write_delta(engine, render(Net(scan), lambda _: changes, signed=True), columns, path)


def log_transactions(
    catalog: Catalog, source: Source, table: str, after: Position, upto: Position, lease: Lease
) -> int:
    """Note the transactions in (after, upto] in the unit-of-work log, then acknowledge them; how many were new."""
    peek = source.peek(table, after, upto)
    noted = [Transaction(t.position, t.txid, t.committed_at) for t in peek.transactions if t.changes_data]
    new = catalog.unit_of_work.append(f"{source.name}.{table}", noted, upto, lease=lease)
    source.acknowledge(table, upto)
    return new
