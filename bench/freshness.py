"""How fresh views are: from the commit of a row in PostgreSQL to the first published state that shows it.

A bank is written to at a steady rate by one writer, and ``strandline watch`` keeps five views of it up to date in a
process of its own. Which transfers a state shows, the view ``newest`` says. At the end views and copies are compared
with the source. Prints percentiles of the lag and the memory of the process, and writes JSON and plots.

The lag begins right before the writer asks for the commit, so that it holds the commit itself; it ends with the time
that the catalog gives to the state. The process watches until the last commit is shown, within bounds; a commit that no
state shows has no lag, is counted, and fails the run.

From the environment come SECONDS (that are measured, default 120), RATE (changed rows a second, 200), POLL (1) and
MAX_LAG (5), the options of ``watch``.
"""

from __future__ import annotations

import os
import signal
import statistics
import sys
import tempfile
import threading
import time
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg
import yaml
from rich.console import Console
from rich.table import Table

from bench import plot, results
from strandline import Warehouse
from strandline.catalog import StateRecord
from strandline.project.folder import Project
from tests.campaign.bank import ACCOUNTS, VIEWS, Bank
from tests.watch.process import WatchProcess, published

MORE_VIEWS = {
    "newest": "SELECT max(id) AS id, count(*) AS transfers FROM bank.transfers",
    "received": (
        "SELECT a.owner, count(*) AS transfers, sum(t.amount) AS amount FROM bank.transfers AS t "
        "JOIN bank.accounts AS a ON a.id = t.payee GROUP BY a.owner"
    ),
}
ROWS = 3
"""That a transfer changes: two accounts, and itself."""

WARM_UP = 30.0
"""Seconds of the process that are not counted."""

LAST_SHOWN_WITHIN = 60.0
"""Seconds after the writer's end that a state is waited for which shows the last commit."""

TOLD_EVERY = 60
"""So many seconds it is told how far it is."""


@dataclass(frozen=True)
class Commit:
    """A transfer, and the time right before its transaction was to be committed."""

    id: int
    at: float


@dataclass(frozen=True)
class State:
    """When a state was published, and the newest transfer that it shows."""

    at: float
    newest: int


def lags(commits: Sequence[Commit], states: Sequence[State]) -> list[tuple[float, float]]:
    """For each commit that a state shows: its time, and the seconds until the first such state was published."""
    newest = [state.newest for state in states]
    found = ((commit, bisect_left(newest, commit.id)) for commit in commits)
    return [(commit.at, states[place].at - commit.at) for commit, place in found if place < len(states)]


def percentile(values: Sequence[float], percent: int) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]


@dataclass
class Writer:
    """Transfers at a steady rate, within the context."""

    dsn: str
    rows_a_second: float
    commits: list[Commit] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _write(self) -> None:
        due, number = time.monotonic(), 0
        with psycopg.connect(self.dsn) as connection:
            while not self._stop.wait(max(0.0, due - time.monotonic())):
                self.commits.append(self._transfer(connection, number))
                due, number = due + ROWS / self.rows_a_second, number + 1

    def _transfer(self, connection: psycopg.Connection[Any], number: int) -> Commit:
        payer, payee = number * 7 % ACCOUNTS + 1, number * 13 % ACCOUNTS + 1
        for sign, account in ((-1, payer), (1, payee)):
            connection.execute("UPDATE bank.accounts SET balance = balance + %s WHERE id = %s", (sign, account))
        made = connection.execute(
            "INSERT INTO bank.transfers (payer, payee, amount) VALUES (%s, %s, 1) RETURNING id", (payer, payee)
        ).fetchone()
        assert made is not None
        # The server commits before it answers: the time after that would take from the lag what the answer took.
        asked = time.time()
        connection.commit()
        return Commit(made[0], asked)


def run() -> None:
    seconds, rate = float(os.environ.get("SECONDS", 120)), float(os.environ.get("RATE", 200))
    options = ("--poll", os.environ.get("POLL", "1"), "--max-lag", os.environ.get("MAX_LAG", "5"))
    with tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder:
        bank = Bank(Path(folder) / "postgres")
        os.environ["BANK_DSN"] = bank.dsn
        try:
            commits, memory = _watched(Path(folder) / "project", bank, options, seconds, rate)
            states, wrong = _compared(Path(folder) / "project", bank)
        finally:
            bank.close()
    first = memory[0][0] + WARM_UP
    counted = [commit for commit in commits if commit.at >= first]
    found = lags(counted, states)
    unshown = len(counted) - len(found)
    if not found:
        sys.exit(f"verdict: NEVER SHOWN: all {unshown:,} commits")
    _report(found, unshown, [each for each in memory if each[0] >= first], states, wrong, seconds, rate, options)
    if wrong or unshown:
        sys.exit(1)


def _watched(
    project: Path, bank: Bank, options: Sequence[str], seconds: float, rate: float
) -> tuple[list[Commit], list[tuple[float, float, float]]]:
    """Commits; and times with the megabytes of the process that watches, without and with Spark."""
    _declare(project, bank)
    memory = []
    with WatchProcess(project, *options) as process:
        process.until(published, 300)
        with Warehouse.open(project) as warehouse:
            # Reading starts a Spark here: now, and not while the last commits are waited for.
            _newest(warehouse, warehouse.states()[0])
            with Writer(bank.dsn, rate) as writer:
                began = time.monotonic()
                end = began + WARM_UP + seconds
                while (now := time.monotonic()) < end:
                    memory.append((time.time(), *process.memory()))
                    if len(memory) % TOLD_EVERY == 0:
                        _, alone, whole = memory[-1]
                        written = f"{len(writer.commits):,} commits"
                        told = f"{written}; {alone:,.0f} MB, with Spark {whole:,.0f} MB"
                        print(f"{now - began:6.0f} s  {told}", flush=True)
                    time.sleep(1)
            _wait_until_shown(warehouse, writer.commits[-1])
        status = process.end(signal.SIGTERM, 120)
        assert status == 0, process.errors()
    return writer.commits, memory


def _wait_until_shown(warehouse: Warehouse, commit: Commit) -> None:
    """Return once the newest state shows *commit*, or enough was waited."""
    end = time.monotonic() + LAST_SHOWN_WITHIN
    while _newest(warehouse, warehouse.states()[0]) < commit.id and time.monotonic() < end:
        time.sleep(1)


def _newest(warehouse: Warehouse, state: StateRecord) -> int:
    """The newest transfer that a state shows; 0 if none."""
    if "newest" not in state.entries:
        return 0
    [(newest, _)] = warehouse.read("newest", state=state.number).collect()
    return newest or 0


def _declare(project: Path, bank: Bank) -> None:
    Project.create(project)
    (project / "sources").mkdir(exist_ok=True)
    (project / "sources" / "bank.yml").write_text(yaml.safe_dump(bank.declaration), encoding="utf-8")
    for name, query in {**VIEWS, **MORE_VIEWS}.items():
        text = f"CREATE MATERIALIZED VIEW {name} AS {query}"
        (project / "views" / f"{name}.sql").write_text(text, encoding="utf-8")


def _compared(project: Path, bank: Bank) -> tuple[list[State], list[str]]:
    """The states with what they show, and what differs from the source or from its recomputation."""
    with Warehouse.open(project) as warehouse:
        listed = reversed(warehouse.states())
        states = [State(state.published_at.timestamp(), _newest(warehouse, state)) for state in listed]
        assert warehouse.refresh().ok
        wrong = [name for name in warehouse.views() if not warehouse.verify(name).ok]
        wrong += [table for table in warehouse.copies() if not warehouse.verify_source(table).ok]
    return states, wrong


def _report(
    found: Sequence[tuple[float, float]],
    unshown: int,
    memory: Sequence[tuple[float, float, float]],
    states: Sequence[State],
    wrong: Sequence[str],
    seconds: float,
    rate: float,
    options: Sequence[str],
) -> None:
    lag = [each for _, each in found]
    told = {f"p{percent}": percentile(lag, percent) for percent in (50, 95, 99)} | {"most": max(lag)}
    third = max(1, len(memory) // 3)
    parts = memory[:third], memory[third:-third] or memory, memory[-third:]
    alone, whole = ([round(statistics.mean(each[place] for each in part)) for part in parts] for place in (1, 2))
    table = Table(title=f"{rate:g} rows a second for {seconds:g} s, five views, `watch {' '.join(options)}`")
    for column in ("commits", "never shown", "states", *(f"lag, {name}" for name in told)):
        table.add_column(column, justify="right")
    commits = len(lag) + unshown
    cells = [f"{commits:,}", f"{unshown:,}", f"{len(states):,}", *(f"{value:.2f} s" for value in told.values())]
    megabytes = (
        f"{', '.join(f'{each:,}' for each in whole)} MB, {', '.join(f'{each:,}' for each in alone)} MB of it Python"
    )
    table.add_row(*cells)
    Console(width=150).print(table)
    began = memory[0][0]
    plots = {
        "lag": ("seconds from commit to published", [plot.Series("lag", [(at - began, each) for at, each in found])]),
        "memory": (
            "megabytes",
            [
                plot.Series("with Spark", [(at - began, each) for at, _, each in memory], "line", 0),
                plot.Series("Python alone", [(at - began, each) for at, each, _ in memory], "line", 1),
            ],
        ),
    }
    for name, (unit, series) in plots.items():
        file = results.FOLDER / f"freshness-{name}.svg"
        results.FOLDER.mkdir(exist_ok=True)
        plot.write(file, f"{rate:g} rows a second", "seconds", unit, series)
    summary = {
        "rate": rate, "seconds": seconds, "options": list(options), "lag": told, "states": len(states),
        "memory": whole, "memory_of_python": alone, "wrong": list(wrong), "commits": commits,
        "never_shown": unshown,
    }  # fmt: skip
    print(f"written to {results.write('freshness', summary)}")
    shown = f"all {commits:,} commits shown" if not unshown else f"NEVER SHOWN: {unshown:,} of {commits:,} commits"
    right = "views and copies correct" if not wrong else f"WRONG: {', '.join(wrong)}"
    print(
        f"verdict: lag p50 {told['p50']:.1f} s, p95 {told['p95']:.1f} s; "
        f"memory in thirds of the time {megabytes}; {shown}; {right}",
        flush=True,
    )
