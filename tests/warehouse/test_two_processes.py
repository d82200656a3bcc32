"""Two processes on one warehouse: one refreshes at a time, readers never wait, a dead one's lock is taken over."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strandline import StrandlineError, Warehouse
from tests.warehouse.shop import Shop

pytestmark = pytest.mark.spark

_HOLDER = """
import sys, time
from strandline.catalog import Catalog
catalog = Catalog.open(sys.argv[1])
lease = catalog.lock.acquire("refresh")
print("held", flush=True)
time.sleep(600)
"""


@contextmanager
def another_process_refreshing(project: Path) -> Iterator[subprocess.Popen[str]]:
    url = f"sqlite:///{(project / '.strandline' / 'catalog.db').resolve()}"
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER, url], stdout=subprocess.PIPE, text=True)
    try:
        assert holder.stdout is not None and holder.stdout.readline().strip() == "held"
        yield holder
    finally:
        holder.kill()
        holder.wait()


def test_refreshes_exclude_each_other_and_readers_do_not_wait(warehouse: Warehouse, shop: Shop, tmp_path: Path) -> None:
    warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT c_id, count(*) AS n FROM shop.orders GROUP BY c_id")
    shop.place_orders_only()
    with another_process_refreshing(tmp_path / "project") as holder:
        with pytest.raises(StrandlineError, match="WAREHOUSE_BUSY") as caught:
            warehouse.refresh()
        assert str(holder.pid) in str(caught.value)
        with pytest.raises(StrandlineError, match="WAREHOUSE_BUSY"):
            warehouse.sql("CREATE MATERIALIZED VIEW w AS SELECT name FROM shop.customers")
        assert warehouse.views() == ["v"]
        began = time.monotonic()
        assert warehouse.status().views[0].behind == {"shop.orders": 1}
        assert warehouse.plan().node("v").strategy != "none"
        assert warehouse.read("v").count() > 0
        assert time.monotonic() - began < 20
        holder.kill()
        holder.wait()
        assert warehouse.refresh().ok
    assert warehouse.verify("v").ok
