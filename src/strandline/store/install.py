"""Installing a delta: the stored unit rows of a step become a new version of a node's table.

Four ways, whichever fits: append what is only inserted; overwrite a tiny table; delete by key and append; MERGE. Each
is set-oriented, and each fails loudly where a row that is to be deleted is not there.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from strandline.algebra.schema import Column, names
from strandline.engine import tables
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.errors import StoreError
from strandline.sql.names import literal, quoted, quoted_list
from strandline.sql.render import SIGN
from strandline.store.deltas import Delta
from strandline.store.node import Node

Method = Literal["none", "append", "overwrite", "delete+append", "merge"]

TINY_ROWS = 100_000
"""Up to here a table is overwritten: cheaper than finding the rows to change."""

FEW_KEYS = 500
"""Up to here keys are deleted by a list of literals, which lets Delta skip files."""

MISSING_ROW = "[DELETE_WITHOUT_ROW]"

_BOUNDED = ("tinyint", "smallint", "int", "bigint", "date", "string")


@dataclass(frozen=True)
class Installed:
    """What an install did."""

    method: Method
    version: int


def method_for(node: Node, delta: Delta, table_rows: int | None) -> Method:
    """How *delta* is to be installed into a table of *table_rows* rows."""
    if delta.rows == 0:
        return "none"
    if delta.deleted == 0:
        return "append"
    if table_rows is not None and table_rows <= TINY_ROWS:
        return "overwrite"
    if _literal_key(node) is not None and delta.deleted <= FEW_KEYS:
        return "delete+append"
    return "merge"


def install(engine: Engine, node: Node, delta: Delta, baseline: int, step_id: str) -> Installed:
    """Bring the node's table from version *baseline* to the next by *delta*."""
    log = DeltaLog(node.path, engine.storage_options)
    method = method_for(node, delta, log.size(baseline).rows if delta.deleted else None)
    if method in ("delete+append", "merge"):
        _mark_deleted_rows(engine, node, log)
    head = log.version()
    match method:
        case "none":
            return Installed("none", baseline)
        case "append":
            engine.write_delta(_inserted(node, delta), node.path, "append", last_commit(step_id))
        case "overwrite":
            engine.write_delta(_whole(node, delta, baseline), node.path, "overwrite", last_commit(step_id))
        case "delete+append":
            _delete_and_append(engine, node, delta, step_id)
        case "merge":
            with engine.committing(last_commit(step_id)):
                engine.run(_merge(engine, node, delta, baseline))
    return Installed(method, committed(log, node, head, 2 if method == "delete+append" and delta.inserted else 1))


def _mark_deleted_rows(engine: Engine, node: Node, log: DeltaLog) -> None:
    """From here on, deleted rows of a table that has grown are marked, instead of files being written anew.

    Small tables do without: their files are read and written without Spark, which knows no marks.
    """
    switch = "delta.enableDeletionVectors"
    if engine.capabilities.deletion_vectors and switch not in log.configuration():
        engine.run(f"ALTER TABLE delta.{quoted(node.path)} SET TBLPROPERTIES ('{switch}' = 'true')")


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
    shown = quoted_list(names(node.stored))
    old = tables.select(node.path, baseline, node.stored)
    signed = f"SELECT *, 1 AS {SIGN} FROM ({old}) UNION ALL {tables.stored_delta(delta.path, node.stored)}"
    missing = _raise(node, f"sum({SIGN})")
    return (
        f"SELECT {shown} FROM (SELECT {shown}, sum({SIGN}) AS __copies FROM ({signed}) GROUP BY {shown} "
        f"HAVING CASE WHEN sum({SIGN}) < 0 THEN {missing} ELSE sum({SIGN}) > 0 END) "
        f"LATERAL VIEW explode(sequence(1, __copies)) AS __copy"
    )


def _raise(node: Node, count: str) -> str:
    """Fail; the text depends on *count*, so that no engine computes the error before it knows whether it is needed."""
    message = f"{MISSING_ROW} {node.name}: the delta deletes a row that the table does not hold; left over: "
    return f"CAST(raise_error({literal(message)} || CAST({count} AS STRING)) AS BOOLEAN)"


def _literal_key(node: Node) -> Column | None:
    """The key of the table, if it is one column whose values can be written as literals."""
    if len(node.key) != 1:
        return None
    column = next(c for c in node.stored if c.name == node.key[0])
    return column if column.type in _BOUNDED else None


def _delete_and_append(engine: Engine, node: Node, delta: Delta, step_id: str) -> None:
    """Two commits; only the second carries the step's id, so a crash between them starts the step again."""
    column = _literal_key(node)
    assert column is not None
    text = f"CAST({quoted(column.name)} AS STRING)"
    keys = [row[0] for row in engine.rows(f"SELECT DISTINCT {text} FROM ({_deleted(node, delta)})")]
    present = [_constant(key, column) for key in keys if key is not None]
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
    if node.key:
        return _merge_keyed(engine, node, delta, node.key)
    return _merge_rows(engine, node, delta, baseline)


def _merge_keyed(engine: Engine, node: Node, delta: Delta, key: tuple[str, ...]) -> str:
    """Rows by key, of a copy or the groups of an aggregate: new values, or none."""
    shown, keys = quoted_list(names(node.stored)), quoted_list(key)
    by = [column for column in node.stored if column.name in key]
    gone = (
        f"SELECT {shown}, 'D' AS __op FROM ({_deleted(node, delta)}) AS d LEFT ANTI JOIN "
        f"(SELECT {keys} FROM ({_inserted(node, delta)})) AS i ON {_same('d', 'i', by)}"
    )
    source = f"SELECT {shown}, 'U' AS __op FROM ({_inserted(node, delta)}) UNION ALL {gone}"
    values = ", ".join(f"s.{quoted(name)}" for name in names(node.stored))
    changed = ", ".join(f"t.{quoted(name)} = s.{quoted(name)}" for name in names(node.stored) if name not in key)
    return (
        f"MERGE INTO delta.{quoted(node.path)} AS t USING ({source}) AS s\n"
        f"ON {_same('t', 's', by)}{_bounds(engine, node, delta, key)}\n"
        f"WHEN MATCHED AND s.__op = 'D' THEN DELETE\n"
        f"{f'WHEN MATCHED THEN UPDATE SET {changed}' if changed else ''}\n"
        f"WHEN NOT MATCHED AND s.__op = 'U' THEN INSERT ({shown}) VALUES ({values})"
    )


def _merge_rows(engine: Engine, node: Node, delta: Delta, baseline: int) -> str:
    """Rows with duplicates: all copies of a row that loses some are deleted, and those that stay are put back.

    So just as many copies go as the delta says, in one commit and without a row identifier.
    """
    columns = names(node.stored)
    shown = quoted_list(columns)
    wanted = f"SELECT {shown}, count(*) AS __gone FROM ({_deleted(node, delta)}) GROUP BY {shown}"
    bounds = _bounds(engine, node, delta, columns[:1], "t")
    present = (
        f"SELECT {', '.join(f'w.{quoted(c)} AS {quoted(c)}' for c in columns)}, w.__gone, "
        f"count(t.__here) AS __present FROM ({wanted}) AS w LEFT JOIN "
        f"(SELECT *, 1 AS __here FROM ({tables.select(node.path, baseline, node.stored)})) AS t "
        f"ON {_same('w', 't', node.stored)}{bounds} "
        f"GROUP BY {', '.join(f'w.{quoted(c)}' for c in columns)}, w.__gone"
    )
    missing = _raise(node, "__present - __gone")
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
        f"ON s.__op = 'D' AND {_same('t', 's', node.stored)}{bounds}\n"
        f"WHEN MATCHED THEN DELETE\n"
        f"WHEN NOT MATCHED AND s.__op = 'I' THEN INSERT ({shown}) VALUES ({values})"
    )


def _same(left: str, right: str, columns: Iterable[Column]) -> str:
    """Rows that are equal, NULL being equal to NULL and a map having its entries in no order."""
    return " AND ".join(f"{_value(left, column)} <=> {_value(right, column)}" for column in columns)


def _value(side: str, column: Column) -> str:
    name = f"{side}.{quoted(column.name)}"
    return f"array_sort(map_entries({name}))" if column.type.startswith("map<") else name


def _bounds(engine: Engine, node: Node, delta: Delta, key: tuple[str, ...], target: str = "t") -> str:
    """Literal bounds of the first key column, so that Delta skips files that cannot match."""
    column = next(c for c in node.stored if c.name == key[0])
    if column.type not in _BOUNDED:
        return ""
    name = quoted(column.name)
    changed = f"{_deleted(node, delta)} UNION ALL {_inserted(node, delta)}"
    ends = f"CAST(min({name}) AS STRING), CAST(max({name}) AS STRING)"
    low, high, nulls = engine.rows(f"SELECT {ends}, count(*) - count({name}) FROM ({changed})")[0]
    if low is None or nulls:
        return ""
    return f" AND {target}.{name} BETWEEN {_constant(low, column)} AND {_constant(high, column)}"


def _constant(value: str, column: Column) -> str:
    """A key value, given as text because Python does not know all dates that Spark does, as a literal of its type."""
    if column.type in ("date", "string"):
        return literal(value) if column.type == "string" else f"DATE {literal(value)}"
    return f"CAST({value} AS {column.type})"
