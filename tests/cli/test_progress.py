"""How a refresh under way is shown where there is no terminal, and how Ctrl-C ends a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.cli import progress
from strandline.propagate.progress import Event
from strandline.warehouse import Warehouse
from tests.cli.conftest import Invoke

STARTED = Event("started", "ingest", "shop.orders", 0, 3)
DONE = Event("done", "ingest", "shop.orders", 0, 3, 1.234, "+5 -2 rows")
FAILED = Event("failed", "compute", "revenue", 1, 3, 0.5, "[DIVIDE_BY_ZERO] division by zero")
PUBLISHED = Event("done", "publish", "", 2, 3, 0.01)


def test_each_step_that_ended_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress()("refreshing") as watcher:
        for event in (STARTED, DONE, FAILED, PUBLISHED):
            watcher(event)
    assert capsys.readouterr().err.splitlines() == [
        "1/3 reading the changes of shop.orders: done in 1.23 s; +5 -2 rows",
        "2/3 computing the changes of revenue: failed in 0.50 s; [DIVIDE_BY_ZERO] division by zero",
        "3/3 publishing the new state: done in 0.01 s",
    ]


def test_beside_json_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with progress.progress(as_json=True)("refreshing") as watcher:
        watcher(DONE)
    assert capsys.readouterr().err == ""


def test_the_bar_shows_what_is_running_now(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.bar("refreshing") as watcher:
        for event in (STARTED, DONE, FAILED):
            watcher(event)
    shown = capfd.readouterr().err
    assert "[DIVIDE_BY_ZERO]" in shown


def test_ctrl_c_says_how_to_go_on(empty: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Warehouse, "refresh", interrupted)
    result = invoke("refresh", project=empty)
    assert result.exit_code == 130
    assert "`strandline refresh` takes the refresh up again" in result.stderr
