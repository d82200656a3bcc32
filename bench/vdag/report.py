"""What was measured as tables, plots and JSON, beside what the metric predicts and what the literature reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import plot
from bench.vdag.measure import Measured

Found = Mapping[str, Measured]
"""Contenders of one experiment, by label."""


@dataclass(frozen=True)
class Floor:
    """What an empty term and an empty commit take, in seconds."""

    term: float
    commit: float


def show(console: Console, title: str, found: Found, base: str) -> None:
    """One experiment; ratios are to *base*."""
    own = found[base]
    table = Table(title=title, caption=f"ratios are to {base}; seconds are medians", caption_justify="left")
    table.add_column("strategy")
    figures = ("terms", "stages", "rows", "predicted", "seconds", "from", "to", "ratio")
    for column in (*figures, "Comps", "ratio", "Insts", "CPU", "ratio", "of Comps", "ratio"):
        table.add_column(column, justify="right")
    for label, each in found.items():
        low, high = each.spread
        table.add_row(
            label, str(each.runs[0].terms), str(len(each.contender.stages)), f"{each.contender.work:,.0f}",
            f"{each.contender.work / own.contender.work:.3f}", f"{each.seconds:.1f}", f"{low:.1f}", f"{high:.1f}",
            f"{each.seconds / own.seconds:.2f}", f"{each.computing:.1f}", f"{each.computing / own.computing:.2f}",
            f"{each.installing:.1f}", f"{each.cpu:.1f}", f"{each.cpu / own.cpu:.2f}", f"{each.comps_cpu:.1f}",
            f"{each.comps_cpu / own.comps_cpu:.2f}",
        )  # fmt: skip
    console.print(table)


@dataclass(frozen=True)
class Ratio:
    """Two contenders of an experiment, and what the literature reports of them."""

    experiment: str
    above: str
    below: str
    reported: str

    def to_dict(self, found: Found) -> dict[str, Any]:
        above, below = found[self.above], found[self.below]
        return {
            "experiment": self.experiment,
            "ratio": f"{self.above} / {self.below}",
            "reported": self.reported,
            "predicted": above.contender.work / below.contender.work,
            "seconds": above.seconds / below.seconds,
            "computing": above.computing / below.computing,
            "CPU": above.cpu / below.cpu,
            "CPU of Comps": above.comps_cpu / below.comps_cpu,
        }


def show_ratios(console: Console, ratios: Sequence[Mapping[str, Any]]) -> None:
    """Ratios beside those of the literature."""
    table = Table(title="beside what is reported")
    for column in ratios[0]:
        table.add_column(column, justify="left" if column in ("experiment", "ratio") else "right")
    for ratio in ratios:
        table.add_row(*(f"{value:.2f}" if isinstance(value, float) else str(value) for value in ratio.values()))
    console.print(table)


def draw_ratios(file: Path, title: str, found: Found, base: str) -> None:
    """For each contender whose steps run one by one the ratio that is predicted, and above it those measured."""
    own = found[base]
    shown = [each for each in found.values() if each.contender.threads == 1]
    whole = [(each.contender.work / own.contender.work, each.cpu / own.cpu) for each in shown]
    comps = [(each.contender.work / own.contender.work, each.comps_cpu / own.comps_cpu) for each in shown]
    most = max(x for x, _ in whole)
    series = [
        plot.Series("as predicted", [(0, 0), (most, most)], "dashes", 5),
        plot.Series("Comps, measured", comps, "dots", 0),
        plot.Series("Comps and Insts, measured", whole, "crosses", 1),
    ]
    plot.write(file, title, f"predicted work, as a ratio to {base}", "processor time, as a ratio", series)


def draw_rates(file: Path, title: str, found: Mapping[int, Found], base: str) -> None:
    """For each change rate the processor seconds of Comps, as ratios to *base*."""
    series = []
    for colour, label in enumerate(next(iter(found.values()))):
        measured = [(rate, each[label].comps_cpu / each[base].comps_cpu) for rate, each in found.items()]
        predicted = [(rate, each[label].contender.work / each[base].contender.work) for rate, each in found.items()]
        series.append(plot.Series(f"{label}, measured", measured, "line", colour))
        series.append(plot.Series(f"{label}, predicted", predicted, "dashes", colour))
    plot.write(file, title, "rows deleted, percent", f"processor time of Comps, as a ratio to {base}", series)
