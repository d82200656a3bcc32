"""A summary delta taken in by the table itself: values are added to the rows of their groups.

So a table of groups is brought up to date where nobody wants explicit changes, and so is one that counts duplicates:
copies of rows, counted, are a summary delta of it.
"""

from __future__ import annotations

from strandline.algebra.differentiate import group_by
from strandline.algebra.plan import COUNT, Backing, Bag, GroupBy, Partial, Scan
from strandline.algebra.schema import names
from strandline.engine import tables
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import NEGATIVE_COUNT, SIGN, merged_partial, render
from strandline.store.deltas import Delta
from strandline.store.matching import failing, missing_row, same
from strandline.store.node import Node


def summary_of(node: Node, delta: Delta) -> str:
    """The rows of a stored delta as a summary delta."""
    if delta.form == "summary":
        return f"SELECT {quoted_list(names(node.stored))} FROM parquet.{quoted(delta.path)}"
    shown = quoted_list(node.key)
    return (
        f"SELECT {shown}, CAST(sum({SIGN}) AS BIGINT) AS {COUNT} FROM parquet.{quoted(delta.path)} "
        f"GROUP BY {shown} HAVING sum({SIGN}) <> 0"
    )


def merge(node: Node, summary: str, bounds: str) -> str:
    """One MERGE: values are added up, a group without rows goes, and a count below zero fails.

    Without keys there is one row, and it stays.
    """
    partials = _group(node).partials
    count, added = f"t.{COUNT} + s.{COUNT}", f"s.{COUNT}"
    gone = f"{count} = 0" if node.key else "false"
    changed = ", ".join(f"t.{quoted(p.name)} = {_merged(p)}" for p in partials)
    shown = quoted_list(names(node.stored))
    by = [column for column in node.stored if column.name in node.key]
    counted = f"CASE WHEN {added} < 0 THEN {_negative(node, added, 'BIGINT')} ELSE {added} END"
    values = ", ".join(counted if name == COUNT else f"s.{quoted(name)}" for name in names(node.stored))
    return (
        f"MERGE INTO delta.{quoted(node.path)} AS t USING ({summary}) AS s\n"
        f"ON {same('t', 's', by) or 'true'}{bounds}\n"
        f"WHEN MATCHED AND CASE WHEN {count} < 0 THEN {_negative(node, count)} ELSE {gone} END THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {changed}\n"
        f"WHEN NOT MATCHED AND {added} <> 0 THEN INSERT ({shown}) VALUES ({values})"
    )


def whole(node: Node, summary: str, baseline: int) -> str:
    """All rows of the table after the summary delta."""
    scans = (Scan(Backing(node.name, baseline), "", node.stored), Scan(Bag("summary"), "", node.stored))
    old = tables.select(node.path, baseline, node.stored)
    rows = render(
        group_by.absorbed(_group(node), *scans), lambda scan: old if isinstance(scan.operand, Backing) else summary
    )
    kept = f"{COUNT} > 0" if node.key else "true"
    return f"SELECT * FROM ({rows}) WHERE CASE WHEN {COUNT} < 0 THEN {_negative(node, COUNT)} ELSE {kept} END"


def _group(node: Node) -> GroupBy:
    assert node.block is not None
    group = node.block.contents
    assert isinstance(group, GroupBy)
    return group


def _merged(partial: Partial) -> str:
    return merged_partial(partial, f"t.{quoted(partial.name)}", f"s.{quoted(partial.name)}")


def _negative(node: Node, count: str, kind: str = "BOOLEAN") -> str:
    """Fail: the delta deletes what is not there."""
    if node.block is not None and node.block.counted:
        return missing_row(node, count, kind)
    return failing(f"{NEGATIVE_COUNT} {node.name}: rows that a group would have: ", count, kind)
