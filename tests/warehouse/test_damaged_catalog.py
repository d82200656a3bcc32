"""A warehouse whose catalog was damaged says so, by every command, and changes nothing. About 5 seconds."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from strandline import Warehouse
from strandline.errors import CatalogError
from strandline.propagate.progress import Event
from tests.warehouse.shop import Shop
from tests.warehouse.test_noop import everything_below

pytestmark = pytest.mark.spark

Use = Callable[[], object]


def test_no_command_builds_on_a_damaged_row(warehouse: Warehouse, shop: Shop, tmp_path: Path) -> None:
    warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT c_id, count(*) AS n FROM shop.orders GROUP BY c_id")
    warehouse.sql("CREATE MATERIALIZED VIEW w AS SELECT max(n) AS n FROM v")
    shop.place_orders_only()

    def interrupt(event: Event) -> None:
        if (event.what, event.step, event.subject) == ("started", "install", "v"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        warehouse.refresh(watcher=interrupt)
    everything: list[Use] = [
        warehouse.refresh,
        warehouse.maintain,
        lambda: warehouse.sql("CREATE MATERIALIZED VIEW x AS SELECT 1 AS one"),
    ]
    looking: list[Use] = [warehouse.plan, warehouse.status, lambda: warehouse.read("v"), lambda: warehouse.verify("v")]
    damages: list[tuple[str, str, list[Use]]] = [
        ("UPDATE refreshes SET plan = '{\"id\": '", "in its table refreshes, row seq", everything),
        ("UPDATE refreshes SET plan = '{\"steps\": []}'", "the plan of the refresh that is not finished", everything),
        ("UPDATE refreshes SET plan = replace(plan, 'install', 'instal')", "'instal' is no kind of step", everything),
        ("DELETE FROM steps WHERE id LIKE '%-002'", "in its table steps, row ", everything),
        ("UPDATE views SET definition = '{}' WHERE name = 'v'", "the definition in row 1 (the view v)", looking),
        ("UPDATE views SET kind = 'table' WHERE name = 'v'", "row 1 (the table v)", [*everything, *looking]),
        ("DELETE FROM views WHERE name = 'v'", "is missing", [*everything, *looking[:2]]),
        ("DELETE FROM view_versions WHERE view_id = 1", "view_versions, the row of view 1 (v)", everything),
        ("UPDATE state_entries SET positions = '7'", "in its table state_entries, row number", [*everything, *looking]),
    ]
    file = tmp_path / "project" / ".strandline" / "catalog.db"
    for statement, told, uses in damages:
        with closing(sqlite3.connect(file)) as connection, closing(sqlite3.connect(":memory:")) as backup:
            connection.backup(backup)
            connection.execute(statement)
            connection.commit()
            before = everything_below(tmp_path / "project" / "warehouse")
            for use in uses:
                with pytest.raises(CatalogError, match="CATALOG_DAMAGED") as raised:
                    use()
                assert told in raised.value.message, (statement, raised.value)
            assert everything_below(tmp_path / "project" / "warehouse") == before, statement
            backup.backup(connection)
    assert warehouse.refresh().ok
    assert warehouse.verify("v").ok and warehouse.verify("w").ok
