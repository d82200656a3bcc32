"""A process that watches a database which is written to, and restarted under it."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import pytest
import yaml

from strandline import Warehouse
from strandline.engine.session import Engine
from tests.campaign.bank import ACCOUNTS, TOTAL, VIEWS, Bank
from tests.conftest import bag, new_project, rows_shown
from tests.watch.process import WatchProcess, moment, published

MAX_LAG = 20.0


def declare(folder: Path, bank: Bank, *views: str) -> None:
    """Write source and views as files: the watching process applies them."""
    (folder / "sources").mkdir(exist_ok=True)
    (folder / "sources" / "bank.yml").write_text(yaml.safe_dump(bank.declaration))
    for name in views:
        (folder / "views" / f"{name}.sql").write_text(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")


@pytest.mark.spark
@pytest.mark.postgres
def test_states_are_published_in_time_through_a_restart_until_it_is_told_to_stop(
    tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """About 40 s: a Spark of its own, two first copies, and some refreshes."""
    folder = tmp_path / "project"
    bank = Bank(tmp_path / "postgres", pause=0.02)
    monkeypatch.setenv("BANK_DSN", bank.dsn)
    new_project(folder)
    declare(folder, bank, "total", "moved")
    options = ("--poll", "0.5", "--max-lag", str(MAX_LAG), "--maintain-every", "never")
    try:
        with bank, WatchProcess(folder, *options) as watch:
            watch.until(published, 120)
            first = watch.until(published, 60)
            bank.server.restart("immediate")
            back = time.time()
            # What was captured before may have been published while the server started.
            second = watch.until(lambda told: published(told) and moment(told) > back, 90)
            assert first["state"] < second["state"]
            for told in (first, second):
                assert 0 < told["lag"] <= MAX_LAG, watch.told
            found = watch.metrics()
            assert found["strandline_state"][()] >= second["state"]
            assert found["strandline_refreshes_total"][("published",)] >= 3
            assert found["strandline_view_rows_in_total"][("moved",)] > 0
            assert found["strandline_source_up"][("bank",)] == 1
            assert found["strandline_source_retained_wal_bytes"][("bank",)] >= 0
            assert 0 <= found["strandline_source_lag_seconds"][("bank",)] <= MAX_LAG
            assert found["strandline_last_success_timestamp_seconds"][()] > back
            assert found["strandline_refresh_seconds_count"][()] >= 3
            assert watch.get("/healthz") == "ok\n"
            assert watch.end(signal.SIGTERM, 60) == 0, watch.errors()
            assert [told["event"] for told in watch.told[-2:]] == ["stopping", "stopped"]
            assert watch.errors() == ""
        with Warehouse.open(folder, spark=engine.spark) as warehouse:
            assert warehouse.refresh().ok
            for name in ("total", "moved"):
                assert bag(rows_shown(warehouse, name)) == bag(bank.answer(name)), name
            shown = rows_shown(warehouse, "total", second["state"])
            assert shown == [(TOTAL, ACCOUNTS)]
    finally:
        bank.close()
