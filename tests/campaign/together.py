"""Many views compared with their recomputation in few Spark jobs.

Rows of a batch of views are collected as texts, and what does not cancel out goes to the warehouse's own ``verify``,
which knows about floats, maps and zeros of either sign. Equal texts mean equal rows, floats within its tolerance; the
converse does not hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline import Warehouse
from strandline.algebra.bag import SignedBag
from strandline.algebra.schema import Column
from strandline.sql.names import quoted_list

BATCH = 8


def different(warehouse: Warehouse, views: Sequence[str]) -> dict[str, str]:
    """The views that do not hold what their query gives, each with a few rows."""
    suspects: list[str] = []
    with warehouse._engine.step("campaign", "compare", small=True):
        for first in range(0, len(views), BATCH):
            suspects += _suspects(warehouse, views[first : first + BATCH])
    return {name: text for name in suspects if (text := _verified(warehouse, name))}


def _suspects(warehouse: Warehouse, views: Sequence[str]) -> list[str]:
    published = warehouse._published
    state, context = published.state(), warehouse._refreshing.context()
    parts = []
    for place, name in enumerate(views):
        entry = warehouse._entry(name, state)
        node = published.node(entry)
        recomputed = context.as_written(node, published.seen(node, entry.version))
        # By number: names may be odd.
        columns = quoted_list(f"c{number}" for number in range(len(node.visible)))
        texts = ", ".join(_text(f"c{number}", column) for number, column in enumerate(node.visible))
        row = f"to_json(struct({texts}), map('timestampFormat', 'yyyy-MM-dd HH:mm:ss.SSSSSS'))"
        for sign, rows in ((1, node.select(entry.version)), (-1, recomputed)):
            parts.append(f"SELECT {place} AS place, {row} AS row, {sign} AS sign FROM ({rows}) AS v({columns})")
    net = SignedBag(((place, row), sign) for place, row, sign in warehouse._engine.rows(" UNION ALL ".join(parts)))
    wrong = {place for place, _ in net}
    return [name for place, name in enumerate(views) if place in wrong]


def _text(name: str, column: Column) -> str:
    """A value as it is compared: the last digits of a float depend on the order in which it was summed."""
    return f"format_string('%.9e', {name}) AS {name}" if column.type in ("float", "double") else name


def _verified(warehouse: Warehouse, name: str) -> str:
    found = warehouse.verify(name)
    if found.ok:
        return ""
    return f"lacks {found.missing.limit(5).collect()} and has too many {found.extra.limit(5).collect()}"
