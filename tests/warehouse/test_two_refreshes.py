"""Two refreshes at once in one process: one goes first, and the other waits or is told who does. About 10 seconds."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from strandline import StrandlineError, Warehouse
from strandline.engine.session import Engine
from strandline.propagate.progress import Event
from tests.warehouse.shop import Shop, assert_verified

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("shared", [True, False], ids=["one object", "two objects"])
def test_of_two_refreshes_one_is_told_who_is_first_and_one_that_waits_follows(
    warehouse: Warehouse, shop: Shop, tmp_path: Path, engine: Engine, shared: bool
) -> None:
    warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT c_id, count(*) AS n FROM shop.orders GROUP BY c_id")
    shop.place_orders_only()
    other = warehouse if shared else Warehouse.open(tmp_path / "project", spark=engine.spark)
    inside, go_on = threading.Event(), threading.Event()

    def hold(event: Event) -> None:
        if (event.what, event.step) == ("started", "install"):
            inside.set()
            assert go_on.wait(60)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(lambda: warehouse.refresh(watcher=hold))
        assert inside.wait(60)
        with pytest.raises(StrandlineError, match="WAREHOUSE_BUSY") as busy:
            other.refresh()
        assert f"process {os.getpid()}" in str(busy.value) and "for refresh since" in str(busy.value)
        shop.place_orders_only()
        second = pool.submit(lambda: other.refresh(wait=60))
        go_on.set()
        assert first.result(60).ok
        report = second.result(60)
    assert report.ok and report.resumed is None
    assert report.state == 3, "what came meanwhile is in a state of its own"
    assert_verified(other)
    if not shared:
        other.close()
