"""One project on a standalone cluster of real processes, its catalog on PostgreSQL, with two drivers at once.

About 60 seconds, most of them the start of Java processes. ``make campaign-cluster`` does more.
"""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from strandline.catalog import Catalog
from tests.cluster.drivers import driver
from tests.cluster.project import SOME_VIEWS, catalog_url, clustered
from tests.cluster.standalone import standalone
from tests.warehouse.shop import Shop

pytestmark = [pytest.mark.spark, pytest.mark.postgres, pytest.mark.kill]


def test_a_worker_and_then_a_driver_die_and_nothing_is_lost(tmp_path: Path, database: str) -> None:
    catalog = catalog_url(database)
    shop = Shop(tmp_path / "lakes")
    shop.create()
    with standalone(tmp_path) as (cluster, workers):
        project = clustered(tmp_path / "project", cluster.url, catalog)
        with driver(project, tmp_path / "first.log") as first, driver(project, tmp_path / "second.log") as second:
            first.ask("create", lakes=str(shop.folder), views=SOME_VIEWS)
            assert first.ask("executors")["count"] == 2
            second.tell("read", view="by_product")

            # A worker goes down, with its executors, in the middle of a refresh.
            shop.place_orders()
            shop.cancel()
            report = first.ask("refresh", kill=workers[1].pid)
            assert report["ok"], report
            cluster.wait_for_workers(1)
            assert second.answer()["rows"]
            assert first.ask("verify") == {"different": []}

            # A driver is killed while it holds the lock; until then the other one may read, but not refresh.
            java = first.ask("executors")["java"][0]
            shop.repeat_lines()
            before = second.ask("read", view="by_product")
            first.tell("refresh", hold=True)
            assert "holds" in first.answer()
            busy = second.ask("refresh")["error"]
            assert "WAREHOUSE_BUSY" in busy and str(first.process.pid) in busy
            assert second.ask("read", view="by_product") == before
            second.tell("refresh", wait=60)
            first.process.kill()
            taken_over = second.answer()
            assert taken_over["ok"] and taken_over["resumed"], taken_over
            assert not psutil.pid_exists(java["pid"]), "the Spark of the dead driver could still commit"
            assert second.ask("verify") == {"different": []}
            assert second.ask("read", view="by_product") != before
            assert second.ask("read", view="by_product", state=report["state"]) == before
    with Catalog.open(catalog) as opened:
        assert opened.refreshes.unfinished() is None
        numbers = [state.number for state in opened.states.all()]
        assert numbers == list(range(len(numbers), 0, -1)), "each state followed the one before"
        assert not list((project / "warehouse" / "deltas").glob("*"))
