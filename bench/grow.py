"""The same number of changed rows in tables of several sizes: what a refresh of the 22 views of TPC-H takes.

A refresh whose work is that of the changes takes the same everywhere; recomputing grows with the tables. From the
environment come SCALES (default 0.1,1), ORDERS (that come, go and change in a repeat, default 150), and what the
benchmark ``tpch`` takes; with CONTENDERS=refresh nothing is recomputed but to compare. One scale follows another, each
with its warm-up; repeats are kept apart from those of ``tpch``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import plot, results
from bench.tpch import measured
from bench.tpch.kept import Repeat, to_dict
from bench.tpch.settings import Settings, from_environment
from bench.tpch.summary import Spread, spread

ORDERS_AT_1 = 1_500_000


@dataclass(frozen=True)
class Size:
    """What was measured at one scale."""

    settings: Settings
    repeats: Sequence[Repeat]

    @property
    def refresh(self) -> Spread:
        return spread(repeat.refresh["seconds"] for repeat in self.repeats)

    @property
    def recompute(self) -> Spread | None:
        """Of all views one after another, each in the way that was the quickest in that repeat; None if none did."""
        ways = [list(repeat.recompute.values()) for repeat in self.repeats if repeat.recompute]
        return spread(sum(min(way[view] for way in each) for view in each[0]) for each in ways) if ways else None

    @property
    def wrong(self) -> dict[str, str]:
        return {view: told for repeat in self.repeats for view, told in repeat.wrong.items()}

    def to_dict(self) -> dict[str, Any]:
        return {
            "settings": self.settings.to_dict(),
            "refresh": asdict(self.refresh),
            "recompute": asdict(self.recompute) if self.recompute else None,
            "wrong": self.wrong,
            "repeats": [to_dict(repeat) for repeat in self.repeats],
        }


def run() -> None:
    orders = int(os.environ.get("ORDERS", 150))
    scales = sorted(float(scale) for scale in os.environ.get("SCALES", "0.1,1").split(","))
    asked = from_environment()
    contenders = tuple(name for name in ("refresh", "recompute") if name in asked.contenders)
    asked = replace(asked, contenders=contenders, label="grow")
    each = [replace(asked, scale=scale, delta=100 * orders / (ORDERS_AT_1 * scale)) for scale in scales]
    sizes = [Size(settings, measured(settings)) for settings in each]
    title = f"TPC-H, {orders:,} orders in, out and updated"
    _show(title, sizes)
    _draw(title, sizes)
    found = {"orders": orders, "scales": {f"{size.settings.scale:g}": size.to_dict() for size in sizes}}
    print(f"written to {results.write('grow', found)}")
    print(verdict(sizes), flush=True)
    if any(size.wrong for size in sizes):
        sys.exit(1)


def _show(title: str, sizes: Sequence[Size]) -> None:
    table = Table(title=f"{title}, seconds: median (least–most)")
    for column in ("scale", "repeats", "refresh", "recompute", "ratio", "wrong"):
        table.add_column(column, justify="right")
    for size in sizes:
        recompute = size.recompute
        compared = (str(recompute), f"{size.refresh.median / recompute.median:.2f}") if recompute else ("", "")
        scale, repeats = f"{size.settings.scale:g}", str(len(size.repeats))
        table.add_row(scale, repeats, str(size.refresh), *compared, ", ".join(size.wrong) or "none")
    Console(width=120).print(table)


def _draw(title: str, sizes: Sequence[Size]) -> None:
    refreshed = [(size.settings.scale, size.refresh.median) for size in sizes]
    recomputed = [(size.settings.scale, size.recompute.median) for size in sizes if size.recompute]
    series = [plot.Series("refresh", refreshed, "line", 0), plot.Series("recompute", recomputed, "line", 1)]
    shown = [one for one in series if one.points]
    plot.write(results.FOLDER / "grow.svg", title, "scale factor", "seconds", shown, log_x=True)


def verdict(sizes: Sequence[Size]) -> str:
    """In one line: the largest beside the smallest, each with its spread."""
    least, most = sizes[0], sizes[-1]
    told = [
        f"{most.settings.scale / least.settings.scale:g}x data, "
        f"{most.refresh.median / least.refresh.median:.1f}x the time of a refresh"
    ]
    if least.recompute and most.recompute:
        told[0] += f", {most.recompute.median / least.recompute.median:.1f}x that of recomputing"
    told += [f"refresh {least.refresh} s, then {most.refresh} s"]
    wrong = sorted({view for size in sizes for view in size.wrong})
    told += [f"WRONG: {', '.join(wrong)}" if wrong else "all views correct"]
    return f"verdict: {'; '.join(told)}"
