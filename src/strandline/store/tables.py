"""Making, filling and restoring the table of a node."""

from __future__ import annotations

import pyarrow as pa

from strandline.algebra.schema import names
from strandline.engine import compaction, places
from strandline.engine.delta_log import DeltaLog, NoSuchTable
from strandline.engine.little import writable, write_table
from strandline.engine.session import Engine
from strandline.errors import StoreError
from strandline.sql.names import quoted, quoted_list
from strandline.stopwatch import spending
from strandline.store.install import committed, is_tiny, last_commit
from strandline.store.matching import BOUNDED
from strandline.store.node import Node
from strandline.store.replacing import FILE_BYTES, FILE_ROWS, MOST_ROWS, in_order, replaceable


def fill(engine: Engine, node: Node, sql: str, keep_states: str, step_id: str) -> int:
    """Make the rows of *sql* the contents of the node's table, which is made if it is not there; its new version."""
    log = DeltaLog(node.path, engine.storage_options)
    rows = _laid_out(engine, node, sql, log)
    properties = retention(keep_states) | node.properties
    file_rows = None if _ordered_key(node) is None else FILE_ROWS
    if not log.exists():
        if engine.capabilities.engine == "spark" or engine.small:
            engine.write_delta(rows, node.path, "error", last_commit(step_id), properties, file_rows)
            return committed(log, node, -1, 1)
        log.create(engine.schema_json(rows), retention(keep_states), step_id)
    head = log.version()
    engine.write_delta(rows, node.path, "overwrite", last_commit(step_id), None, file_rows)
    if engine.capabilities.engine != "spark":
        _lay_out(engine, node, log)
    return committed(log, node, head, 1)


def fill_with(engine: Engine, node: Node, rows: pa.Table, keep_states: str, step_id: str) -> int | None:
    """Make *rows*, which are few, the contents of the node's table; its new version, or None if Spark has to."""
    options = engine.storage_options
    if node.cluster_by or not writable(node.path, options):
        return None
    log, key = DeltaLog(node.path, options), _ordered_key(node)
    found = rows.select(list(names(node.stored)))
    if key is not None and pa.types.is_integer(found.schema.field(key).type):
        found = in_order(found, key)
    head = log.version() if log.exists() else -1
    mode, properties = ("overwrite", {}) if head >= 0 else ("error", retention(keep_states) | node.properties)
    with spending("commit"):
        write_table(found, node.path, mode, properties, last_commit(step_id), options, file_bytes=FILE_BYTES)
    return committed(log, node, head, 1)


def _lay_out(engine: Engine, node: Node, log: DeltaLog) -> None:
    """Put a large table into ranges of its key, for an engine that writes rows in no order."""
    key, rows = _ordered_key(node), log.size().rows
    if key is None or node.cluster_by or _overwritten(log) or not replaceable(node, engine.storage_options):
        return
    if rows is not None and rows <= MOST_ROWS:
        compaction.lay_out(node.path, key, FILE_BYTES, engine.storage_options)


def _laid_out(engine: Engine, node: Node, sql: str, log: DeltaLog) -> str:
    """The rows of *sql* in the order in which they are written, so that Delta can skip files.

    That is as CLUSTER BY says. Else, in a table so large that changes are merged into it, rows that are found by a key
    lie in ranges of it: changed keys are often close together.
    """
    stored = {name.lower(): name for name in names(node.stored)}
    wanted = [stored[name.lower()] for name in node.cluster_by if name.lower() in stored]
    columns = quoted_list(names(node.stored))
    if wanted:
        return f"SELECT {columns} FROM ({sql}) SORT BY {quoted_list(wanted)}"
    first = _ordered_key(node)
    if first is None or engine.small or engine.capabilities.engine != "spark" or _overwritten(log):
        return f"SELECT {columns} FROM ({sql})"
    key = quoted(first)
    return f"SELECT /*+ REPARTITION_BY_RANGE({key}) */ {columns} FROM ({sql}) SORT BY {key}"


def _ordered_key(node: Node) -> str | None:
    """The first column of a node's key, if files can be skipped by it."""
    types = {column.name: column.type for column in node.stored}
    return node.key[0] if node.key and types[node.key[0]] in BOUNDED else None


def _overwritten(log: DeltaLog) -> bool:
    """Whether a table is known to be so small that every change writes it anew."""
    size = log.size() if log.exists() else None
    return size is not None and is_tiny(size.rows, size.bytes)


def retention(keep_states: str) -> dict[str, str]:
    """Table properties that keep old states readable; Delta wants both, and neither above the other."""
    interval = f"interval {keep_states}"
    return {"delta.logRetentionDuration": interval, "delta.deletedFileRetentionDuration": interval}


def committed_version(engine: Engine, node: Node, baseline: int | None, step_id: str) -> int | None:
    """The version that a step committed after *baseline*, or None if it did not get that far."""
    log = DeltaLog(node.path, engine.storage_options)
    try:
        head = log.version()
    except NoSuchTable:
        return None
    for commit in log.commits(-1 if baseline is None else baseline, head) or ():
        if commit.step_id == last_commit(step_id):
            return commit.version
    return None


def make_ready(engine: Engine, node: Node, baseline: int | None, step_id: str) -> None:
    """See to it that the table holds what the catalog says it does, before a step changes it.

    What came after *baseline* was left behind by a crashed step, or by somebody else: it is undone. A table without a
    baseline is removed. Compaction changes no rows and may stay.
    """
    if baseline is None:
        remove(engine, node)
        return
    log = DeltaLog(node.path, engine.storage_options)
    try:
        after = log.commits(baseline, log.version())
        log.size(baseline)
    except NoSuchTable as error:
        raise StoreError(
            "TABLE_GONE",
            f"the table of {node.name} was at {node.path} and is not there any more, or not as it was: {error}; "
            f"make it anew: `strandline refresh --full {node.name}`.",
        ) from error
    if not log.holds_version(baseline):
        raise StoreError(
            "FILES_GONE",
            f"a file of the table of {node.name} ({node.path}, version {baseline}) was removed from outside; make the "
            f"table anew: `strandline refresh --full {node.name}`.",
        )
    changing = [commit for commit in after or () if commit.changes_data]
    undone = f"{_RESTORED} {baseline} for"
    if not changing or (changing[-1].step_id or "").startswith(undone):
        return
    if engine.capabilities.engine == "spark":
        with engine.committing(f"{undone} {step_id}"):
            engine.run(f"RESTORE TABLE delta.{quoted(node.path)} TO VERSION AS OF {baseline}")
    else:
        log.restore(baseline, f"{undone} {step_id}")


_RESTORED = "strandline: restored"


def remove(engine: Engine, node: Node) -> None:
    """Remove the files of a table that no state names."""
    places.remove(node.path, engine.storage_options)
