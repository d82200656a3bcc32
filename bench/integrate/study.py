"""A study: for each curve and each place on it the formula, what the simulator counts, and what PostgreSQL measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import plot


@dataclass(frozen=True)
class Figures:
    """One quantity from three sides; None where there is nothing to say."""

    formula: float | None = None
    simulated: float | None = None
    postgres: float | None = None


SIDES = {"formula": "line", "simulated": "dots", "postgres": "crosses"}
Curve = Mapping[float, Figures]


@dataclass(frozen=True)
class Study:
    """Curves by label over *x*."""

    name: str
    title: str
    x: str
    y: str
    curves: Mapping[str, Curve]
    note: str
    log_x: bool = False
    log_y: bool = False

    def show(self, console: Console) -> None:
        table = Table(title=self.title, caption=self.note, caption_justify="left")
        table.add_column(self.x, justify="right")
        sides = [(label, side) for label in self.curves for side in SIDES if self._has(label, side)]
        for label, side in sides:
            table.add_column(f"{label}\n{'PostgreSQL' if side == 'postgres' else side}", justify="right")
        for x in sorted({x for curve in self.curves.values() for x in curve}):
            values = [getattr(self.curves[label].get(x, Figures()), side) for label, side in sides]
            table.add_row(f"{x:g}", *("" if value is None else _number(value) for value in values))
        console.print(table)

    def draw(self, folder: Path) -> None:
        series = []
        for colour, label in enumerate(self.curves):
            for side, style in SIDES.items():
                if points := self.points(label, side):
                    shown = "PostgreSQL" if side == "postgres" else side
                    series.append(plot.Series(f"{label}, {shown}", points, style, colour))  # type: ignore[arg-type]
        file = folder / f"integrate-{self.name}.svg"
        plot.write(file, self.title, self.x, self.y, series, log_x=self.log_x, log_y=self.log_y)

    def points(self, label: str, side: str) -> list[tuple[float, float]]:
        """One side of a curve, from left to right."""
        found = [(x, getattr(figures, side)) for x, figures in sorted(self.curves[label].items())]
        return [(x, y) for x, y in found if y is not None]

    def to_dict(self) -> dict[str, Any]:
        return {
            label: [
                {"x": x, **{side: getattr(figures, side) for side in SIDES}} for x, figures in sorted(curve.items())
            ]
            for label, curve in self.curves.items()
        }

    def _has(self, label: str, side: str) -> bool:
        return bool(self.points(label, side))


def crossover(study: Study, side: str, label: str, baseline: str) -> float | None:
    """Where a curve that begins at nothing reaches another, between the points that there are; None if it does not."""
    base = dict(study.points(baseline, side))
    gaps = [(x, y - base[x]) for x, y in study.points(label, side) if x in base]
    begin = [(0.0, -base[x]) for x, _ in gaps[:1]]
    for (x, gap), (next_x, next_gap) in pairwise([*begin, *gaps]):
        if gap < 0 <= next_gap:
            return x + (next_x - x) * -gap / (next_gap - gap)
    return None


def _number(value: float) -> str:
    return f"{value:,.0f}" if value == round(value) or value >= 1000 else f"{value:,.2f}"
