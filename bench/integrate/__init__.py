"""Base views over sources that are not copied: the papers' formulas, what the simulator counts, what PostgreSQL does.

Recomputation against eager compensation by number of updates and by size of the relations; refresh times by number of
sources, with concurrent updates, with skewed update frequencies, and with groups in parallel. Prints tables, and writes
JSON and a plot of each below ``bench/results``. No Spark.

QUICK=1 takes fewer sizes. STUDIES (compensation, refresh; default both) chooses, and DELAY is a message's time, in
milliseconds (default 50, and 20 if quick).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import results
from bench.integrate import compensation, refreshes
from bench.integrate.measured import Sources
from bench.integrate.study import Figures, Study
from strandline.demo.server import PostgresServer
from strandline.integrate.costs import Parameters

QUICK = os.environ.get("QUICK", "") not in ("", "0")
UPDATES = (2, 4, 6, 10, 30) if QUICK else (2, 4, 6, 8, 10, 12, 18, 24, 28, 30, 36, 48, 60, 78, 96, 102)
MOST_AT_ONCE = 30 if QUICK else 36
ROWS = (100, 400) if QUICK else (4, 8, 12, 20, 40, 100, 200, 400, 1000)
SOURCES = 3 if QUICK else 6
CONCURRENT = (2,) if QUICK else (1, 2, 3)
GROUPS = 2 if QUICK else 3
SKEWS = (2.0,) if QUICK else (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)


def run() -> None:
    wanted = os.environ.get("STUDIES", "compensation,refresh").split(",")
    delay = float(os.environ.get("DELAY", 20 if QUICK else 50)) / 1000
    console = Console(width=170)
    # What a vacuum of its own accord reads would be counted.
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        PostgresServer.start(Path(folder) / "postgres", settings={"autovacuum": "off"}) as server,
    ):
        sources = Sources(server)
        studies: list[Study] = []
        points: dict[str, Figures] = {}
        if "compensation" in wanted:
            p = Parameters()
            studies += compensation.by_updates(p, UPDATES, MOST_AT_ONCE, sources)
            points = compensation.crossovers(p, studies)
            studies += compensation.by_rows(p, ROWS, 6, sources)
        if "refresh" in wanted:
            studies.append(refreshes.by_sources(SOURCES, sources, delay))
            studies += refreshes.c_strobe(min(SOURCES, 5), CONCURRENT, sources, delay / 4)
            studies.append(refreshes.by_skew(SKEWS, 2 * GROUPS, GROUPS, sources, delay))
            studies.append(refreshes.in_parallel(2, GROUPS, sources, delay))
        sources.close()
    for study in studies:
        study.show(console)
    _show_crossovers(console, points)
    found = {study.name: study.to_dict() for study in studies}
    crossings = {name: vars(figures) for name, figures in points.items()}
    file = results.write("integrate", {"studies": found, "crossovers": crossings})
    for study in studies:
        study.draw(results.FOLDER)
    print(f"written to {file}, with a plot of each beside it")


def _show_crossovers(console: Console, points: dict[str, Figures]) -> None:
    if not points:
        return
    table = Table(title="Updates from which on one recomputation is cheaper")
    for column in ("what is counted", "formula", "simulated", "PostgreSQL"):
        table.add_column(column, justify="left" if column.startswith("what") else "right")
    for name, figures in points.items():
        sides = (figures.formula, figures.simulated, figures.postgres)
        table.add_row(name, *("" if side is None else f"{side:.2f}" for side in sides))
    console.print(table)
