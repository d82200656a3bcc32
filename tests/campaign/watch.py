"""A process that watches a bank under steady writes, while source, catalog and the process itself are killed.

``python -m tests.campaign.watch [SECONDS] [SEED]``: the catalog is on a second PostgreSQL. Ten times or so
something is killed. At the end lag, memory and what was told are printed, and everything is compared with the source.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import psutil
import yaml

from strandline import Warehouse
from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.project.folder import Project
from tests.campaign.bank import VIEWS, Bank, money_held
from tests.watch.process import Told, WatchProcess

MAX_LAG = 30.0
OPTIONS = ("--poll", "2", "--max-lag", str(MAX_LAG), "--maintain-every", "1 minute")
SETTINGS = {"spark.driver.memory": "1g", "spark.driver.extraJavaOptions": "-XX:+UseSerialGC"}
AFTER_KILL = 45.0
"""What is published so soon after something was killed may be late."""


@dataclass
class Seen:
    """What was seen of all processes."""

    told: list[Told] = field(default_factory=list)
    memory: list[tuple[float, float, float]] = field(default_factory=list)
    """Seconds since the start of a process, and its megabytes, without and with Spark."""
    killed: list[tuple[float, str]] = field(default_factory=list)


def watch(folder: Path, seconds: float, seed: int) -> str:
    """Watch for so long; what was seen, in a few lines."""
    chance, seen = random.Random(seed), Seen()
    with PostgresServer.start(folder / "catalog") as catalog:
        bank = Bank(folder / "postgres", seed, pause=0.02)
        os.environ["BANK_DSN"] = bank.dsn
        os.environ["PGPASSWORD"] = catalog.password
        try:
            _declare(folder / "project", catalog, bank)
            with bank:
                _under_writes(folder / "project", bank, catalog, chance, seconds, seen)
            return "\n".join([*_summary(seen), _checked(folder / "project", bank)])
        finally:
            bank.close()


def _declare(project: Path, catalog: PostgresServer, bank: Bank) -> None:
    Project.create(project)
    url = f"postgresql+psycopg://{SUPERUSER}@127.0.0.1:{catalog.port}/postgres"
    config = {"name": "bank", "catalog": url, "keep_states": "1 hour", "spark": {"settings": SETTINGS}}
    (project / "strandline.yml").write_text(yaml.safe_dump(config))
    (project / "sources").mkdir(exist_ok=True)
    (project / "sources" / "bank.yml").write_text(yaml.safe_dump(bank.declaration))
    for name, query in VIEWS.items():
        schedule = "SCHEDULE EVERY 1 MINUTE " if name == "rich" else ""
        (project / "views" / f"{name}.sql").write_text(f"CREATE MATERIALIZED VIEW {name} {schedule}AS {query}")


def _under_writes(
    project: Path, bank: Bank, catalog: PostgresServer, chance: random.Random, seconds: float, seen: Seen
) -> None:
    end, process = time.monotonic() + seconds, WatchProcess(project, *OPTIONS)
    started = time.monotonic()
    kills: dict[str, Callable[[], None]] = {
        "source": lambda: _down(bank.server, chance),
        "catalog": lambda: _down(catalog, chance),
    }
    pause = max(20.0, seconds / 10)
    next_kill, order = started + pause, ["source", "catalog", "process"]
    while time.monotonic() < end:
        time.sleep(1)
        _sample(process, started, seen)
        assert process.process.poll() is None, (process.caught_up()[-5:], process.errors())
        if time.monotonic() >= next_kill and end - time.monotonic() > pause:
            what = order[len(seen.killed) % len(order)]
            seen.killed.append((time.time(), what))
            if what == "process":
                process.process.kill()
                process.process.wait()
                seen.told += process.caught_up()
                process, started = WatchProcess(project, *OPTIONS), time.monotonic()
            else:
                kills[what]()
            next_kill = time.monotonic() + pause
    status = process.end(signal.SIGTERM, 120)
    assert status == 0, (status, process.told[-5:], process.errors())
    seen.told += process.told


def _down(server: PostgresServer, chance: random.Random) -> None:
    server.kill()
    time.sleep(chance.uniform(1, 8))
    server.restart()


def _sample(watched: WatchProcess, started: float, seen: Seen) -> None:
    try:
        seen.memory.append((time.monotonic() - started, *watched.memory()))
    except psutil.Error:
        return


def _summary(seen: Seen) -> list[str]:
    states = [told for told in seen.told if told["event"] == "published" and told.get("lag") is not None]
    assert states, seen.told[-20:]
    calm = [told["lag"] for told in states if not _disturbed(told, seen)]
    counted = Counter(told["event"] for told in seen.told)
    killed = Counter(what for _, what in seen.killed)
    return [
        f"{counted['published']} states published; told: {dict(counted)}; killed: {dict(killed)}",
        f"lag when published, undisturbed ({len(calm)}): {_percentiles(calm)}",
        f"lag when published, all ({len(states)}): {_percentiles([told['lag'] for told in states])}",
        f"seconds of a refresh: {_percentiles([told['seconds'] for told in states])}",
        _memory(seen),
    ]


def _disturbed(told: Told, seen: Seen) -> bool:
    """Whether something was killed, or a process was new, while changes of a state were waiting."""
    at = _unix(told)
    starts = [_unix(event) for event in seen.told if event["event"] == "started"]
    return any(0 <= at - moment <= AFTER_KILL for moment in [*starts, *(when for when, _ in seen.killed)])


def _unix(told: Told) -> float:
    return datetime.fromisoformat(told["time"]).timestamp()


def _percentiles(values: Sequence[float]) -> str:
    ordered = sorted(values)
    shown = {f"p{p}": ordered[min(len(ordered) - 1, len(ordered) * p // 100)] for p in (50, 90, 99) if ordered}
    told = [f"{name} {value:.1f} s" for name, value in shown.items()]
    return ", ".join([*told, f"max {max(ordered, default=0):.1f} s"])


def _memory(seen: Seen) -> str:
    """Of the last process: its size after its first minute, and at the end."""
    last = len(seen.memory) - next((n for n, s in enumerate(reversed(seen.memory)) if s[0] < 2), 0) - 1
    run = [sample for sample in seen.memory[max(last, 0) :] if sample[0] > 60] or seen.memory[-1:]
    third = max(1, len(run) // 3)
    early, late = run[:third], run[-third:]

    def mean(samples: list[tuple[float, float, float]], place: int) -> float:
        return sum(sample[place] for sample in samples) / len(samples)

    return (
        f"memory of the last process over {run[-1][0] - run[0][0]:.0f} s: "
        f"{mean(early, 1):.0f} to {mean(late, 1):.0f} MB, with Spark {mean(early, 2):.0f} to {mean(late, 2):.0f} MB"
    )


def _checked(project: Path, bank: Bank) -> str:
    with Warehouse.open(project) as warehouse:
        assert warehouse.refresh(wait=60).ok
        states = money_held(warehouse, bank)
    return f"{bank.transfers:,} transfers; the total held in {states} states; views and copies equal the source"


if __name__ == "__main__":
    length = float(sys.argv[1]) if len(sys.argv) > 1 else 600.0
    with tempfile.TemporaryDirectory(prefix="strandline-watch-") as found:
        print(watch(Path(found), length, int(sys.argv[2]) if len(sys.argv) > 2 else 1))
