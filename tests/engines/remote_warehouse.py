"""A warehouse through Spark Connect: views that are refreshed, and a foreign write that is undone."""

from __future__ import annotations

import gc
import weakref
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from strandline import Warehouse
from tests.campaign import by_spark, sought
from tests.campaign.together import different
from tests.warehouse.shop import VIEWS, Shop, create_views

SOME_VIEWS = {
    "big_orders": VIEWS["big_orders"],
    "by_product": VIEWS["by_product"],
    "firsts": "SELECT c_id, min(day) AS first_day, avg(total) AS mean FROM shop.orders GROUP BY c_id",
    "overall": "SELECT count(*) AS n, sum(total) AS total FROM big_orders",
    "everybody": "SELECT c.name, o.total FROM shop.customers c LEFT JOIN shop.orders o ON o.c_id = c.c_id",
}


def seen(server: str, session: Any, folder: Path) -> dict[str, Any]:
    """Views over the shop through two rounds of changes; what the engine is called and what it did.

    In the second round rows are sought as in large tables, as the server is on this machine.
    """
    shop = Shop(folder / "lakes")
    shop.create()
    before = _partitions(server, session)
    # Of so few rows nothing would be left to the server.
    with by_spark.everything(), Warehouse.open(folder / "project", spark=session) as warehouse:
        shop.declare(warehouse)
        create_views(warehouse, SOME_VIEWS)
        strategies = set()
        seeking: AbstractContextManager[list[str]]
        for changes, seeking in (
            ((shop.place_orders, shop.cancel), nullcontext([])),
            ((shop.reprice, shop.place_orders), sought.everywhere()),
        ):
            for change in changes:
                change()
            with seeking as tables:
                report = warehouse.refresh()
            assert report.ok, {name: view.problem for name, view in report.views.items()}
            strategies |= {view.strategy for view in report.views.values()}
        strategies |= {view.strategy for view in warehouse.refresh().views.values()}
        assert different(warehouse, warehouse.views()) == {}
        assert warehouse.verify("by_product").ok
        made = weakref.ref(warehouse._engine.worker)
        outcome = {
            "engine": warehouse._engine.capabilities.engine,
            "sought": len(tables),
            "marks": warehouse._engine.marks,
            "recovered": undo_foreign_write(warehouse, shop),
            "strategies": sorted(strategies),
            "settings_kept": before == _partitions(server, session),
        }
    gc.collect()
    return {**outcome, "session_kept": made() is not None}


def _partitions(server: str, session: Any) -> str | None:
    """A setting that our own session changes; Sail does not have it."""
    return str(session.conf.get("spark.sql.shuffle.partitions")) if server == "spark" else None


def undo_foreign_write(warehouse: Warehouse, shop: Shop) -> bool:
    """A commit that no step of ours made is undone before the next step."""
    node = warehouse._refreshing.node("by_product")
    warehouse._engine.run(f"DELETE FROM delta.`{node.path}` WHERE product = 'p1'")
    shop.place_orders()
    assert warehouse.refresh().ok
    assert different(warehouse, warehouse.views()) == {}
    return True
