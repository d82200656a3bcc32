"""What was measured, as tables, plots and JSON."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import plot, results
from bench.tpch.kept import Repeat, to_dict
from bench.tpch.settings import Settings
from bench.tpch.summary import Spread, Summary, View


def place(settings: Settings) -> Path:
    """Where the repeats of a run are kept."""
    return results.FOLDER / f"{settings.name}.json"


def keep(settings: Settings, spark: dict[str, str], repeats: Sequence[Repeat]) -> None:
    """Write what there is so far."""
    found = {"settings": settings.to_dict(), "spark": spark, "repeats": [to_dict(repeat) for repeat in repeats]}
    results.write(settings.name, found)


def show(console: Console, settings: Settings, repeats: Sequence[Repeat], summary: Summary) -> None:
    """The views, where the time of the refresh went, and the floors."""
    console.print(_views(settings, len(repeats), summary))
    console.print(_where(repeats))
    last = repeats[-1]
    rows = ", ".join(f"{table} {_rows(done)}" for table, done in last.changed.items())
    console.print(f"changed rows of the last repeat: {rows}")
    console.print(f"counted by Spark, where it tells: {_counted(last)}")
    console.print(f"read of tables: {read_of_tables(last)}")
    floors = {name: statistics.median(r.floors[name] for r in repeats if name in r.floors) for name in last.floors}
    words = {
        "job": "an empty Spark job", "commit": "an empty Delta commit", "changes": "reading the changes",
        "touched_files": "reading the files that changes touched",
    }  # fmt: skip
    console.print("floors: " + ", ".join(f"{words[name]} {seconds:.2f} s" for name, seconds in floors.items()))


def _counted(repeat: Repeat) -> str:
    """Of the steps that do not commit through Spark."""
    steps = [step for step in repeat.refresh["steps"] if step.get("jobs") is not None]
    jobs, rows, written = (sum(step[what] or 0 for step in steps) for what in ("jobs", "rows_read", "bytes_written"))
    return f"{len(steps)} steps, {jobs:,} jobs, {rows:,} rows read, {written / 1e6:,.1f} MB written"


def read_of_tables(repeat: Repeat) -> str:
    """How much of their files, beside those that may hold touched keys by their ranges, where these are known.

    Of rows that were sought the bytes are those of the rows that were found, else those of whole files.
    """
    read = [
        table for step in repeat.refresh["steps"] for table in step.get("read", ()) if table.get("of_files") is not None
    ]
    known = [table for table in read if table.get("holding") is not None]
    all_files, files, holding = _sum(read, "files"), _sum(known, "files"), _sum(known, "holding")
    told = f"{all_files:,} files in all scans, {_sum(read, 'bytes') / 1e6:,.1f} MB"
    if not holding:
        return told
    size, least = _sum(known, "bytes"), _sum(known, "holding_bytes")
    times = f"{files / holding:.1f}x and {size / least:.1f}x"
    holders = f"{holding:,} files, {least / 1e6:,.1f} MB may hold touched keys"
    those = f"{files:,} files, {size / 1e6:,.1f} MB; {holders}: {times}"
    return f"{told}; where ranges tell which may hold touched keys {those}"


def _sum(tables: Sequence[Mapping[str, Any]], what: str) -> int:
    return sum(table[what] for table in tables)


def _rows(done: dict[str, int]) -> str:
    signs = {"inserted": "+", "deleted": "-", "updated": "~"}
    return " ".join(f"{signs[what]}{count}" for what, count in done.items())


def _views(settings: Settings, repeats: int, summary: Summary) -> Table:
    spread = "scattered" if settings.scattered else "contiguous"
    table = Table(
        title=f"TPC-H at {settings.scale:g} on {settings.engine}, {settings.delta:g} % changed, {spread} keys, "
        f"median of {repeats}, seconds",
        caption="refresh: the view's part of the whole refresh; steps: its own steps, with others beside them; "
        "ratio: refresh to the quicker recompute",
        caption_justify="left",
    )
    ways = sorted({way for view in summary.views for way in view.ways})
    table.add_column("view")
    table.add_column("strategy")
    for column in ("refresh", "steps", *(f"recompute ({way})" for way in ways), "ratio", "MERGE", "DuckDB"):
        table.add_column(column, justify="right")
    for view in summary.views:
        ratio = "" if view.ratio is None else f"{view.ratio:.2f}"
        recomputed = [_cell(view.ways.get(way)) for way in ways]
        cells = [_cell(view.part), _cell(view.steps), *recomputed, ratio, _cell(view.merge), _cell(view.duckdb)]
        table.add_row(view.name, view.strategy, *cells)
    table.add_section()
    totals = [sum(view.ways[way].median for view in summary.views if way in view.ways) for way in ways]
    ratio = f"{summary.whole.median / summary.recompute:.2f}" if summary.recompute else ""
    beside = [summary.merge, sum(view.duckdb.median for view in summary.views if view.duckdb)]
    cells = [*(f"{total:.2f}" for total in totals), ratio, *(f"{total:.2f}" if total else "" for total in beside)]
    table.add_row("all", "", str(summary.whole), "", *cells)
    return table


def _cell(spread: Spread | None) -> str:
    return "" if spread is None else str(spread)


def _where(repeats: Sequence[Repeat]) -> Table:
    """Of the refresh: kinds of steps, and the time around them."""
    table = Table(title="where the time of the refresh goes: medians; kinds of steps run side by side")
    for column in ("what", "steps", "seconds"):
        table.add_column(column, justify="left" if column == "what" else "right")
    kinds = list(dict.fromkeys(kind for repeat in repeats for kind in repeat.refresh["kinds"]))
    for kind in kinds:
        found = [repeat.refresh["kinds"][kind] for repeat in repeats if kind in repeat.refresh["kinds"]]
        steps, seconds = (statistics.median(each[what] for each in found) for what in ("steps", "seconds"))
        table.add_row(kind, f"{steps:g}", f"{seconds:.2f}")
    table.add_section()
    words = {
        "before": "before the first step: looking and planning", "gaps": "no step running, between steps",
        "alone": "one step running alone", "after": "after the last step: publishing", "seconds": "the whole refresh",
        "cpu": "processors in all",
    }  # fmt: skip
    for name, told in words.items():
        table.add_row(told, "", f"{statistics.median(repeat.refresh[name] for repeat in repeats):.2f}")
    return table


def draw(settings: Settings, summary: Summary) -> Path:
    """Seconds by view, of each contender; where the plot is."""
    series = [
        plot.Series("refresh, its part", _points(summary, lambda view: view.part.median), "dots", 0),
        plot.Series("recompute", _points(summary, lambda view: view.recompute), "crosses", 1),
        plot.Series("MERGE by hand", _points(summary, lambda view: _median(view.merge)), "crosses", 2),
        plot.Series("DuckDB", _points(summary, lambda view: _median(view.duckdb)), "crosses", 3),
    ]
    title = f"TPC-H at {settings.scale:g}, {settings.delta:g} % changed"
    shown = [each for each in series if each.points]
    file = place(settings).with_suffix(".svg")
    plot.write(file, title, "query", "seconds", shown, log_y=True)
    return file


def _points(summary: Summary, seconds: Callable[[View], float | None]) -> list[plot.Point]:
    found = [(int(view.name.removeprefix("q")), seconds(view)) for view in summary.views]
    return [(number, value) for number, value in found if value is not None]


def _median(spread: Spread | None) -> float | None:
    return None if spread is None else spread.median
