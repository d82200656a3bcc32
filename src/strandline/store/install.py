"""Installing a delta: the stored unit rows of a step become a new version of a node's table.

Six ways, whichever fits: append what is only inserted; overwrite a tiny table; replace rows with a key in the files
that hold them, if these are not large; mark them as deleted there, and append; let Spark delete by key, and append;
MERGE. Each is set-oriented, and each fails loudly where a row that is to be deleted is not there. Rows with a key that
are deleted and inserted again with other values are updated in place.

A summary delta, and copies of rows for a table that counts them, are never appended: they may meet rows that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

from strandline.algebra.few import MOST_ROWS
from strandline.algebra.schema import Column, names
from strandline.engine import tables
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.engine.statistics import TableSize
from strandline.engine.vectors import SWITCH
from strandline.errors import StoreError
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN
from strandline.store import marking, replacing, small_tables, summary
from strandline.store.deltas import Delta
from strandline.store.matching import BOUNDED, constant, missing_row, same
from strandline.store.node import Node
from strandline.store.ranges import bounds

Method = Literal["none", "append", "overwrite", "replace", "mark", "delete+append", "merge"]

TINY_ROWS = 100_000
"""Up to here a table is overwritten: cheaper than finding the rows to change."""

TINY_BYTES = 8 << 20
"""So is one of ten times as many rows, if they take no more than this."""

FEW_KEYS = 500
"""Up to here keys are deleted by a list of literals, which lets Delta skip files."""


@dataclass(frozen=True)
class Installed:
    """What an install did, with the rows of the table that it inserted and deleted, an update counting as both."""

    method: Method
    version: int
    inserted: int
    deleted: int


def is_tiny(rows: int | None, bytes: int | None = None) -> bool:
    """Whether a table of so many rows and bytes, as far as that is known, is overwritten rather than changed."""
    if rows is None:
        return False
    return rows <= TINY_ROWS or (rows <= 10 * TINY_ROWS and bytes is not None and bytes <= TINY_BYTES)


def method_for(
    node: Node,
    delta: Delta,
    table_rows: int | None,
    table_bytes: int | None = None,
    part: TableSize | None = None,
    marks: Callable[[], bool] = lambda: False,
) -> Method:
    """How *delta* is to be installed into a table of so many rows and bytes.

    *part* is the size of the files that hold what changes, if its rows can be replaced; *marks* tells whether they can
    be marked.
    """
    if delta.rows == 0:
        return "none"
    if delta.form == "summary":
        return "merge"
    if delta.deleted == 0 and delta.form == "explicit":
        return "append"
    if is_tiny(table_rows, table_bytes):
        return "overwrite"
    if part is not None and replacing.pays(delta.rows, part.rows, part.bytes, can_be_marked=True):
        return "replace"
    if marks():
        return "mark"
    if part is not None and replacing.pays(delta.rows, part.rows, part.bytes):
        return "replace"
    if delta.form == "explicit" and _literal_key(node) is not None and delta.deleted <= FEW_KEYS:
        return "delete+append"
    return "merge"


def install(engine: Engine, node: Node, delta: Delta, baseline: int, step_id: str) -> Installed:
    """Bring the node's table from version *baseline* to the next by *delta*."""
    log = DeltaLog(node.path, engine.storage_options)
    appended = delta.form == "explicit" and not delta.deleted
    size = TableSize(None, 0, 0) if appended else log.size(baseline)
    whole = appended or is_tiny(size.rows, size.bytes)
    part = None if whole else replacing.part_of(engine, node, delta, baseline)
    near = None if part is None else part.size
    method = method_for(node, delta, size.rows, size.bytes, near, lambda: marking.pays(engine, node, delta))
    if method in ("mark", "delete+append", "merge"):
        _mark_deleted_rows(engine, node, log)
    head = log.version()
    inserted, deleted, commits = delta.inserted, delta.deleted, 1
    match method:
        case "none":
            return Installed("none", baseline, 0, 0)
        case "append":
            if not small_tables.append(engine, node, delta, last_commit(step_id)):
                engine.write_delta(_inserted(node, delta), node.path, "append", last_commit(step_id))
        case "overwrite":
            summed = delta.form == "explicit" and small_tables.overwrite(
                engine, node, delta, baseline, last_commit(step_id)
            )
            if not summed:
                engine.write_delta(_whole(node, delta, baseline), node.path, "overwrite", last_commit(step_id))
        case "replace":
            assert part is not None
            replacing.replace(engine, node, delta, part, step_id, last_commit(step_id))
            commits = len(part.stretches)
        case "mark":
            commits = marking.mark(engine, node, delta, step_id, last_commit(step_id))
        case "delete+append":
            _delete_and_append(engine, node, delta, step_id)
            commits = 2 if delta.inserted else 1
        case "merge":
            with engine.committing(last_commit(step_id)), _taking_in_as_stored(engine, node, delta):
                counted = engine.run(_merge(engine, node, delta, baseline))
            inserted, deleted = _merged_rows(engine, node, delta, counted)
    version = committed(log, node, head, commits)
    return Installed(method, version, inserted, deleted)


def _taking_in_as_stored(engine: Engine, node: Node, delta: Delta) -> AbstractContextManager[None]:
    """Within, a MERGE reads what it takes in twice: stored rows are the same each time, so Delta need not keep a copy.

    What rows with duplicates take in has to be computed, once.
    """
    if delta.form == "explicit" and not node.key:
        return nullcontext()
    return engine.setting("spark.databricks.delta.merge.materializeSource", "none")


def _merged_rows(engine: Engine, node: Node, delta: Delta, counted: Sequence[tuple[Any, ...]]) -> tuple[int, int]:
    """What a MERGE inserted and deleted, by its own count; rows with a key must be just those of the delta."""
    counts_rows = delta.form == "summary" or (delta.form == "explicit" and node.key)
    if not counts_rows or not counted or not engine.capabilities.commit_metadata:
        return delta.inserted, delta.deleted
    _, updated, deleted, inserted = (int(number or 0) for number in counted[0])
    found = (inserted + updated, deleted + updated)
    if delta.form == "explicit" and found != (delta.inserted, delta.deleted):
        raise StoreError(
            "DELETE_WITHOUT_ROW",
            f"{node.name}: {delta.deleted} rows were to be deleted and {delta.inserted} inserted by their key "
            f"({', '.join(node.key)}), but {found[1]} and {found[0]} were; the key is not one, or somebody else "
            "changed the table. The next refresh undoes that; refresh the view in full.",
        )
    return found


def _mark_deleted_rows(engine: Engine, node: Node, log: DeltaLog) -> None:
    """From here on, deleted rows of a table that has grown are marked, instead of files being written anew.

    Small tables do without: their files are read and written without Spark, which knows no marks.
    """
    if engine.capabilities.deletion_vectors and SWITCH not in log.configuration():
        engine.run(f"ALTER TABLE delta.{quoted(node.path)} SET TBLPROPERTIES ('{SWITCH}' = 'true')")


def committed(log: DeltaLog, node: Node, head: int, expected: int) -> int:
    """The version after a step's commits, which must be all that came after *head*.

    A server may carry out what a dead client asked of it late; such a commit must not slip in between.
    """
    version = log.version()
    changing = [commit for commit in log.commits(head, version) or () if commit.changes_data]
    if len(changing) > expected:
        raise StoreError(
            "FOREIGN_COMMIT",
            f"the table of {node.name} got {len(changing)} commits where its step makes {expected}; somebody else "
            "writes to it. The next refresh undoes that.",
        )
    return version


def last_commit(step_id: str) -> str:
    """What the last commit of a step carries: if it is there, the step is done."""
    return f"strandline:{step_id}"


def _inserted(node: Node, delta: Delta) -> str:
    shown = quoted_list(names(node.stored))
    return f"SELECT {shown} FROM parquet.{quoted(delta.path)} WHERE {SIGN} > 0"


def _deleted(node: Node, delta: Delta) -> str:
    shown = quoted_list(names(node.stored))
    return f"SELECT {shown} FROM parquet.{quoted(delta.path)} WHERE {SIGN} < 0"


def _whole(node: Node, delta: Delta, baseline: int) -> str:
    """All rows after the delta."""
    if delta.form != "explicit":
        return summary.whole(node, summary.summary_of(node, delta), baseline)
    shown = quoted_list(names(node.stored))
    old = tables.select(node.path, baseline, node.stored)
    signed = f"SELECT *, 1 AS {SIGN} FROM ({old}) UNION ALL {tables.stored_delta(delta.path, node.stored)}"
    missing = missing_row(node, f"sum({SIGN})")
    return (
        f"SELECT {shown} FROM (SELECT {shown}, sum({SIGN}) AS __copies FROM ({signed}) GROUP BY {shown} "
        f"HAVING CASE WHEN sum({SIGN}) < 0 THEN {missing} ELSE sum({SIGN}) > 0 END) "
        f"LATERAL VIEW explode(sequence(1, __copies)) AS __copy"
    )


def _literal_key(node: Node) -> Column | None:
    """The key of the table, if it is one column whose values can be written as literals."""
    if len(node.key) != 1:
        return None
    column = next(c for c in node.stored if c.name == node.key[0])
    return column if column.type in BOUNDED else None


def _delete_and_append(engine: Engine, node: Node, delta: Delta, step_id: str) -> None:
    """Two commits; only the second carries the step's id, so a crash between them starts the step again."""
    column = _literal_key(node)
    assert column is not None
    text = f"CAST({quoted(column.name)} AS STRING)"
    keys = [row[0] for row in engine.rows(f"SELECT DISTINCT {text} FROM ({_deleted(node, delta)})")]
    present = [constant(key, column) for key in keys if key is not None]
    tests = [f"{quoted(column.name)} IN ({', '.join(present)})"] if present else []
    if None in keys:
        tests.append(f"{quoted(column.name)} IS NULL")
    statement = f"DELETE FROM delta.{quoted(node.path)} WHERE {' OR '.join(tests)}"
    with engine.committing(step_id if delta.inserted else last_commit(step_id)):
        counted = engine.run(statement)
    if engine.capabilities.commit_metadata and counted[0][0] != len(keys):
        raise StoreError(
            "DELETE_WITHOUT_ROW",
            f"{node.name}: {len(keys)} rows were to be replaced, but its table holds {counted[0][0]} of them; "
            "somebody else changed the table. Refresh the view in full.",
        )
    if delta.inserted:
        engine.write_delta(_inserted(node, delta), node.path, "append", last_commit(step_id))


def _merge(engine: Engine, node: Node, delta: Delta, baseline: int) -> str:
    if delta.form != "explicit":
        change = _sent(summary.summary_of(node, delta), delta)
        return summary.merge(node, change, _near(engine, node, delta, node.key))
    if node.key:
        return _merge_keyed(engine, node, delta, node.key)
    return _merge_rows(engine, node, delta, baseline)


def _sent(source: str, delta: Delta) -> str:
    """What a MERGE takes in, sent to the rows among which it looks for those to change if it has few itself."""
    return f"SELECT /*+ BROADCAST(d) */ * FROM ({source}) AS d" if delta.rows <= MOST_ROWS else source


def _near(engine: Engine, node: Node, delta: Delta, key: Sequence[str]) -> str:
    """A condition on the rows of the table that the delta may touch, by the first column that they are found by."""
    if not key:
        return ""
    return bounds(delta.path, next(c for c in node.stored if c.name == key[0]), "t", engine.storage_options)


def _merge_keyed(engine: Engine, node: Node, delta: Delta, key: tuple[str, ...]) -> str:
    """Rows by key: updated in place where one goes and one comes, else deleted or inserted.

    A row that goes must be there, and one that only comes must not; either is told before anything is committed.
    """
    shown, keys = quoted_list(names(node.stored)), quoted_list(key)
    by = [column for column in node.stored if column.name in key]
    came = ", ".join(f"i.{quoted(name)}" for name in names(node.stored))
    updated = (
        f"SELECT {came}, 'U' AS __op, d.__here IS NOT NULL AS __was FROM ({_inserted(node, delta)}) AS i LEFT JOIN "
        f"(SELECT {keys}, 1 AS __here FROM ({_deleted(node, delta)})) AS d ON {same('i', 'd', by)}"
    )
    gone = (
        f"SELECT {shown}, 'D' AS __op, true AS __was FROM ({_deleted(node, delta)}) AS d LEFT ANTI JOIN "
        f"(SELECT {keys} FROM ({_inserted(node, delta)})) AS i ON {same('d', 'i', by)}"
    )
    first = node.stored[0]
    missing = missing_row(node, f"s.{quoted(key[0])}", first.type)
    values = ", ".join(
        [
            f"CASE WHEN s.__was THEN {missing} ELSE s.{quoted(first.name)} END",
            *(f"s.{quoted(name)}" for name in names(node.stored)[1:]),
        ]
    )
    changed = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in names(node.stored) if name not in key)
    return (
        f"MERGE INTO delta.{quoted(node.path)} AS t USING ({_sent(f'{updated} UNION ALL {gone}', delta)}) AS s\n"
        f"ON {same('t', 's', by)}{_near(engine, node, delta, key)}\n"
        f"WHEN MATCHED AND s.__op = 'D' THEN DELETE\n"
        f"{f'WHEN MATCHED THEN UPDATE SET {changed}' if changed else ''}\n"
        f"WHEN NOT MATCHED THEN INSERT ({shown}) VALUES ({values})"
    )


def _merge_rows(engine: Engine, node: Node, delta: Delta, baseline: int) -> str:
    """Rows with duplicates: all copies of a row that loses some are deleted, and those that stay are put back.

    So just as many copies go as the delta says, in one commit and without a row identifier.
    """
    columns = names(node.stored)
    shown = quoted_list(columns)
    wanted = f"SELECT {shown}, count(*) AS __gone FROM ({_deleted(node, delta)}) GROUP BY {shown}"
    near = _near(engine, node, delta, columns[:1])
    present = (
        f"SELECT {', '.join(f'w.{quoted(c)} AS {quoted(c)}' for c in columns)}, w.__gone, "
        f"count(t.__here) AS __present FROM ({wanted}) AS w LEFT JOIN "
        f"(SELECT *, 1 AS __here FROM ({tables.select(node.path, baseline, node.stored)})) AS t "
        f"ON {same('w', 't', node.stored)}{near} "
        f"GROUP BY {', '.join(f'w.{quoted(c)}' for c in columns)}, w.__gone"
    )
    missing = missing_row(node, "__present - __gone")
    kept = f"CASE WHEN __present < __gone THEN {missing} ELSE __present > __gone END"
    staying = (
        f"SELECT {shown}, 'I' AS __op FROM (SELECT * FROM ({present}) WHERE {kept}) "
        f"LATERAL VIEW explode(sequence(1, __present - __gone)) AS __copy"
    )
    source = (
        f"SELECT {shown}, 'D' AS __op FROM ({wanted}) UNION ALL "
        f"SELECT {shown}, 'I' AS __op FROM ({_inserted(node, delta)}) UNION ALL {staying}"
    )
    values = ", ".join(f"s.{quoted(name)}" for name in columns)
    return (
        f"MERGE INTO delta.{quoted(node.path)} AS t USING ({source}) AS s\n"
        f"ON s.__op = 'D' AND {same('t', 's', node.stored)}{near}\n"
        f"WHEN MATCHED THEN DELETE\n"
        f"WHEN NOT MATCHED AND s.__op = 'I' THEN INSERT ({shown}) VALUES ({values})"
    )
