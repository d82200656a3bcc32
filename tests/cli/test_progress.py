"""How a refresh under way is shown, in a terminal and elsewhere, and how Ctrl-C ends a command."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from rich.console import Console

from strandline.cli import progress
from strandline.cli.live import LiveSteps
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


def test_what_went_wrong_stays_on_the_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    with progress.live("refreshing") as watcher:
        for event in (STARTED, DONE, FAILED):
            watcher(event)
    shown = capfd.readouterr().err
    assert "[DIVIDE_BY_ZERO]" in shown


def test_the_terminal_shows_what_ended_what_runs_and_what_comes() -> None:
    steps = LiveSteps("refreshing", progress.line_of, lambda event: f"{event.step} {event.subject}")
    plan = (("ingest", "shop.orders"), ("compute", "revenue"), ("compute", "daily"), ("install", "revenue"))
    for event in (
        Event("planned", "", "", 0, 5, steps=(*plan, ("publish", ""))),
        STARTED,
        DONE,
        Event("started", "compute", "revenue", 1, 5),
        Event("started", "compute", "daily", 1, 5),
    ):
        steps.take(event)
    console = Console(width=100, file=io.StringIO(), force_terminal=False)
    console.print(steps)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    assert "reading the changes of shop.orders: done" in lines[0]
    assert "1/5" in lines[1]
    assert "compute revenue, 0 s" in lines[2] and "compute daily, 0 s" in lines[3]
    assert lines[4].strip() == "then revenue"


def test_ctrl_c_says_how_to_go_on(empty: Path, invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Warehouse, "refresh", interrupted)
    result = invoke("refresh", project=empty)
    assert result.exit_code == 130
    assert "`strandline refresh` takes the refresh up again" in result.stderr
