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
from strandline.sql.names import quoted
from strandline.sql.render import SIGN, render
from strandline.store.deltas import Delta, write_delta


def ingest(
    engine: Engine,
    source: Source,
    table: str,
    after: Position,
    upto: Position,
    columns: Schema,
    stored: Schema,
    path: str,
) -> Delta:
    """Write the net changes of a table in (after, upto] as a stored delta at *path*, *columns* named as *stored*."""
    changes = source.changes(table, after, upto, columns)
    items = [f"{quoted(c.name)} AS {quoted(s.name)}" for c, s in zip(columns, stored, strict=True)]
    renamed = f"SELECT {', '.join([*items, SIGN])} FROM ({changes})"
    if not all(comparable(column) for column in columns):
        return write_delta(engine, renamed, stored, path)
    scan = Scan(Change(f"{source.name}.{table}"), "", stored)
    return write_delta(engine, render(Net(scan), lambda _: renamed, signed=True), stored, path)


def log_transactions(
    catalog: Catalog, source: Source, table: str, after: Position, upto: Position, lease: Lease
) -> int:
    """Note the transactions in (after, upto] in the unit-of-work log, then acknowledge them; how many were new."""
    peek = source.peek(table, after, upto)
    noted = [Transaction(t.position, t.txid, t.committed_at) for t in peek.transactions if t.changes_data]
    new = catalog.unit_of_work.append(f"{source.name}.{table}", noted, upto, lease=lease)
    source.acknowledge(table, upto)
    return new
