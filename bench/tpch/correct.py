"""Whether views hold what their queries give."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from strandline import Warehouse
from strandline.propagate.verify import Verification, verify
from strandline.sql.names import quoted_list


def wrong(warehouse: Warehouse, views: Sequence[str], path: Callable[[str], str] | None) -> dict[str, str]:
    """What is wrong with which views, compared in both directions with what is stored at *path*.

    Without that, and where the two differ, the warehouse's own ``verify`` recomputes over what the view has seen, and
    decides: rows that tie may come out in any order.
    """
    found = {}
    for view in views:
        if path is not None and compared(warehouse, view, f"delta.`{path(view)}`").ok:
            continue
        told = warehouse.verify(view)
        if not told.ok:
            found[view] = f"{told.missing_count} rows missing, {told.extra_count} too many"
    return found


def compared(warehouse: Warehouse, view: str, table: str) -> Verification:
    """The newest state of a view beside a table with the same columns."""
    state = warehouse._published.state()
    entry = warehouse._entry(view, state)
    node = warehouse._published.node(entry)
    columns = quoted_list(column.name for column in node.visible)
    with warehouse._engine.step(view, "compare", small=True):
        recomputed = f"SELECT {columns} FROM {table}"
        stored = node.select(entry.version)
        return verify(warehouse._engine, view, state.number, node.visible, stored, recomputed, node.loose)
