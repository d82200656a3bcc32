"""Whether views hold what their queries give over the tables as they are now."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from bench.tpch.lake import Lake
from bench.tpch.recompute import over
from strandline import Warehouse
from strandline.propagate.verify import Verification, verify
from strandline.sql.names import quoted_list
from tests.campaign.corpus.definitions import Definition

_LIMIT = re.compile(r"\bLIMIT\s+\d+\s*$")


def wrong(
    warehouse: Warehouse, lake: Lake, views: Sequence[Definition], path: Callable[[str], str] | None
) -> dict[str, str]:
    """What is wrong with which views, compared as bags, in both directions, with what recomputing stored at *path*.

    Without that they are recomputed to be compared.
    """
    found = {}
    for view in views:
        rows = over(view.query, lake) if path is None else f"SELECT * FROM delta.`{path(view.name)}`"
        told = problem(warehouse, lake, view, rows, small=path is not None)
        if told is not None:
            found[view.name] = told
    return found


def problem(warehouse: Warehouse, lake: Lake, view: Definition, rows: str, *, small: bool = True) -> str | None:
    """How a view differs from *rows*; None if it does not, but for rows that tie."""
    told = compared(warehouse, view.name, rows, small=small)
    if told.ok or _ties(warehouse, lake, view, rows):
        return None
    return f"{told.missing_count} rows missing, {told.extra_count} too many"


def compared(
    warehouse: Warehouse, view: str, rows: str, *, small: bool = True, loose: Collection[str] = ()
) -> Verification:
    """The newest state of a view beside *rows*, by all of its columns, or all but those that are *loose*."""
    state = warehouse._published.state()
    entry = warehouse._entry(view, state)
    node = warehouse._published.node(entry)
    columns = quoted_list(column.name for column in node.visible)
    with warehouse._engine.step(view, "compare", small=small):
        recomputed = f"SELECT {columns} FROM ({rows})"
        return verify(
            warehouse._engine, view, state.number, node.visible, node.select(entry.version), recomputed, loose
        )


def _ties(warehouse: Warehouse, lake: Lake, view: Definition, rows: str) -> bool:
    """Whether a view of the first rows in an order differs from others only in which of those that tie it shows.

    Then what it is ordered by is the same, and each of its rows is one that its query gives without the limit.
    """
    query, limits = _LIMIT.subn("", view.query.rstrip())
    if not limits:
        return False
    ordered = compared(warehouse, view.name, rows, small=False, loose=warehouse._refreshing.node(view.name).loose)
    return ordered.ok and not compared(warehouse, view.name, over(query, lake), small=False).extra_count
