"""Comparing a copy with its source, while the source goes on writing.

The source is read in one snapshot. The copy is brought, on paper, to just what that snapshot shows: by the logged
transactions that it saw and the copy does not have yet.
"""

from __future__ import annotations

from collections.abc import Callable

from strandline.algebra.schema import Schema
from strandline.catalog import Catalog
from strandline.engine import tables
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.ingest.advance import table_of
from strandline.ingest.baselines import jdbc_rows
from strandline.ingest.capture import logged
from strandline.ingest.copied import CopiedSource
from strandline.ingest.logged import position_of
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN
from strandline.store.node import Node


def source_and_copy(
    catalog: Catalog, engine: Engine, source: CopiedSource, node: Node, folder: str, take_in: Callable[[], None]
) -> tuple[str, str]:
    """Two SELECTs of the same columns: the rows of the source, and those of the copy, in one snapshot of the source.

    Both are written below *folder* first, because the snapshot ends. *take_in* captures the source up to now.
    """
    base = catalog.versions.baseline(node.record.id)
    if base is None:
        raise SourceError("NOT_COPIED", f"{node.name} is not copied yet; refresh a view over it first.")
    table, names = table_of(node), [column.name for column in node.visible]
    parsers = source.inner.parsers(table)
    with source.inner.baseline(table, names) as baseline:
        take_in()
        with jdbc_rows(engine, baseline, parsers, names, "audit") as rows:
            _written(engine, rows, node.visible, f"{folder}/source")
    record = catalog.captures.get(source.name)
    assert record is not None
    copy = tables.select(node.path, base.version, node.stored)
    if logged(record, table, node.log_path) is not None:
        upto = position_of(record.log, record.place)
        seen = f"NOT ({source.inner.not_seen(baseline.seen)})"
        changes = source.stored_changes(table, base.positions[node.name], upto, only=seen)
        copy = _applied(copy, changes, node.stored)
    _written(engine, copy, node.stored, f"{folder}/copy")
    return _read(f"{folder}/source", node.visible), _read(f"{folder}/copy", node.visible)


def _applied(rows: str, changes: str, columns: Schema) -> str:
    """Rows after signed changes of them."""
    shown = quoted_list(column.name for column in columns)
    both = f"SELECT {shown}, 1 AS {SIGN} FROM ({rows}) UNION ALL SELECT {shown}, {SIGN} FROM ({changes})"
    return (
        f"SELECT {shown} FROM (SELECT {shown}, sum({SIGN}) AS __copies FROM ({both}) GROUP BY {shown} "
        f"HAVING sum({SIGN}) > 0) LATERAL VIEW explode(sequence(1, __copies)) AS __copy"
    )


def _written(engine: Engine, sql: str, columns: Schema, path: str) -> None:
    numbered = ", ".join(f"{quoted(column.name)} AS c{number}" for number, column in enumerate(columns))
    engine.write_parquet(f"SELECT {numbered} FROM ({sql})", path)


def _read(path: str, columns: Schema) -> str:
    named = ", ".join(f"c{number} AS {quoted(column.name)}" for number, column in enumerate(columns))
    return f"SELECT {named} FROM parquet.{quoted(path)}"
