"""TPC-H refreshed against recomputing: the 22 queries as views, a part of the tables changes, contenders take turns.

Each repeat changes the tables (see ``lake``), and then runs, in an order that rotates: a refresh of the warehouse; the
22 queries recomputed on the same Spark into Delta tables, with Spark's settings and with ours; MERGE pipelines written
by hand for some of them; the 22 in DuckDB. Every view is compared with its recomputation. Tables, views and finished
repeats are kept below ``bench/results``, so that a run goes on where another one ended.

From the environment come SF (default 0.1), DELTA (percent, default 0.1), REPEATS (3), SCATTERED, UPDATES (1),
FOREIGN_KEYS (1: declared), POLICY (AUTO), ENGINE (spark or sail), RECOMPUTES (in how many repeats, default all),
WARM_UP (repeats before the counted ones, 1), CONTENDERS (refresh,recompute,merge,duckdb), MEMORY (of Spark's driver,
4g), PARALLEL (so many steps of a refresh at a time), QUERIES (default all), WORK (where tables and views are kept) and
FRESH (1 measures again what is finished).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Any

from rich.console import Console

from bench import results
from bench.tpch import correct, duck, floors, kept, report
from bench.tpch.kept import WHOLE, Repeat
from bench.tpch.lake import Lake, Rows, Versions
from bench.tpch.merge import PIPELINES, Pipelines
from bench.tpch.ours import open_warehouse, refreshed
from bench.tpch.recompute import Recomputes
from bench.tpch.settings import Settings, from_environment
from bench.tpch.summary import summarise
from strandline.engine.session import Engine
from tests.campaign.tpch.following import queries
from tests.engines.servers import sail


def run() -> None:
    settings = from_environment()
    repeats = measured(settings)
    summary = summarise(repeats)
    report.show(Console(width=170), settings, repeats, summary)
    file = report.draw(settings, summary)
    print(f"written to {report.place(settings)} and {file}")
    print(summary.verdict, flush=True)
    if summary.wrong:
        sys.exit(1)


def measured(settings: Settings) -> list[Repeat]:
    """As many repeats as are asked for; those that are kept of the same code and settings are not run again."""
    under = {"code": results.code(), **settings.told}
    repeats = [] if os.environ.get("FRESH") else kept.read(report.place(settings), under)
    if repeats:
        print(f"{len(repeats)} of {settings.repeats} repeats were measured before, the last one at {repeats[-1].began}")
    if len(repeats) >= settings.repeats:
        return repeats
    with _engine(settings) as spark:
        return Run(settings, spark, repeats, under).to_the_end()


@contextmanager
def _engine(settings: Settings) -> Iterator[Any]:
    """The session that all contenders on Spark share."""
    if settings.engine == "sail":
        with sail() as spark:
            yield spark
        return
    engine = Engine(settings={"spark.driver.memory": settings.memory})
    yield engine.spark
    engine.close()


class Run:
    """Tables, views and contenders, until there are as many repeats as were asked for."""

    def __init__(
        self, settings: Settings, spark: Any, repeats: Sequence[Repeat], under: Mapping[str, Any] | None = None
    ) -> None:
        """*repeats* are there already; others are measured *under* this code and these settings."""
        self._under = dict(under or {})
        self._began = time.monotonic()
        self._settings = settings
        self._spark = spark
        self._repeats = list(repeats)
        self._views = [view for view in queries() if not settings.queries or view.name in settings.queries]
        self._lake = Lake(settings.lake, settings.scale)
        self._say("tables are there")
        self._warehouse = open_warehouse(settings, self._lake, self._views, spark)
        folder = str(settings.folder / "recomputed")
        self._recomputes = Recomputes(spark, self._lake, folder, classic=settings.engine == "spark")
        # Sail does not read change feeds.
        merging = settings.engine == "spark" and "merge" in settings.contenders
        names = [view.name for view in self._views if view.name in PIPELINES]
        merged = settings.folder / "merged"
        self._pipelines = Pipelines(spark, self._lake, merged, names) if merging and names else None

    def to_the_end(self) -> list[Repeat]:
        with self._warehouse:
            found = refreshed(self._warehouse)
            self._say(f"views are filled, or follow what came last: {found['seconds']:.1f} s")
            self._fixed = floors.fixed(self._spark, self._settings.folder)
            for _ in range(self._settings.warm_up):
                self._repeat(-1)
                self._say("warmed up")
            while len(self._repeats) < self._settings.repeats:
                self._repeats.append(self._repeat(len(self._repeats)))
                report.keep(self._settings, self._spark_settings(), self._repeats)
                self._say(f"repeat {len(self._repeats)} of {self._settings.repeats}")
        return self._repeats

    def _repeat(self, turn: int) -> Repeat:
        noted = {"load": os.getloadavg()[0], "began": f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC", "under": self._under}
        before = self._lake.versions()
        changed = self._lake.change(self._settings)
        after = self._lake.versions()
        contenders = self._contenders(before, after, turn)
        order = [name for name in self._settings.contenders if name in contenders]
        first, found = max(turn, 0) % len(order), dict[str, Any]()
        for name in (*order[first:], *order[:first]):
            began = time.monotonic()
            found[name] = contenders[name]()
            self._say(f"  {name}: {time.monotonic() - began:.1f} s")
        wrong = self._wrong(found) if turn >= 0 else {}
        read = floors.reading(self._lake, before, after)
        self._lake.tidy()
        return _repeat(changed, found, floors={**self._fixed, **read}, wrong=wrong, **noted)

    def _wrong(self, found: Mapping[str, Any]) -> dict[str, str]:
        """Views and pipelines that do not hold what recomputing gives."""
        path = self._recomputes.path if "recompute" in found else None
        wrong = correct.wrong(self._warehouse, self._lake, self._views, path)
        self._say(f"  compared: {len(self._views) - len(wrong)} of {len(self._views)} correct")
        return wrong | (self._wrong_pipelines() if "merge" in found else {})

    def _wrong_pipelines(self) -> dict[str, str]:
        assert self._pipelines is not None
        rows = {name: self._pipelines.rows(name) for name in self._pipelines.names}
        views = {view.name: view for view in self._views}
        told = {name: correct.problem(self._warehouse, self._lake, views[name], rows[name]) for name in rows}
        return {f"MERGE of {name}": problem for name, problem in told.items() if problem is not None}

    def _contenders(self, before: Versions, after: Versions, turn: int) -> dict[str, Callable[[], Any]]:
        """What runs in this repeat. A warm-up, with turn -1, recomputes too, unless that is to be done seldom."""
        found: dict[str, Callable[[], Any]] = {"refresh": lambda: refreshed(self._warehouse)}
        if self._settings.recomputes is None or 0 <= turn < self._settings.recomputes:
            found["recompute"] = lambda: self._recomputes.all(self._views, turn)
        if self._pipelines is not None:
            self._pipelines.prepare(before)
            found["merge"] = partial(self._pipelines.follow, before, after)
        found["duckdb"] = lambda: duck.recomputed(self._lake, self._views, self._settings.folder)
        return {name: contender for name, contender in found.items() if name in self._settings.contenders}

    def _spark_settings(self) -> dict[str, str]:
        if self._settings.engine != "spark":
            return {}
        return {name: value for name, value in self._spark.sparkContext.getConf().getAll() if _telling(name)}

    def _say(self, text: str) -> None:
        print(f"{time.monotonic() - self._began:6.0f} s  {text}", flush=True)


def _repeat(changed: Rows, found: Mapping[str, Any], **more: Any) -> Repeat:
    """What contenders took, seconds and those of processors apart."""
    watches = {**found.get("recompute", {}), **{name: found.get(name, {}) for name in ("merge", "duckdb")}}
    seconds = {name: {view: watch.seconds for view, watch in by_view.items()} for name, by_view in watches.items()}
    cpu = {name: {view: watch.cpu for view, watch in by_view.items()} for name, by_view in watches.items()}
    cpu["refresh"] = {WHOLE: found["refresh"]["cpu"]}
    merge, duckdb = seconds.pop("merge"), seconds.pop("duckdb")
    return Repeat(changed, found["refresh"], seconds, merge, duckdb, cpu, **more)


def _telling(name: str) -> bool:
    """Whether a setting of Spark says how it worked, and not where."""
    return name in ("spark.master", "spark.driver.memory", "spark.scheduler.mode") or name.startswith(
        ("spark.sql.shuffle", "spark.sql.adaptive", "spark.databricks")
    )
