"""Line plots as SVG: axes with round numbers, linear or logarithmic, and a legend."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape

Style = Literal["line", "dots", "crosses", "dashes"]
Point = tuple[float, float]

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 76, 230, 44, 56
COLOURS = ("#1b6ca8", "#d1495b", "#2e8b57", "#8a5a9e", "#b8860b", "#444444")


@dataclass(frozen=True)
class Series:
    """Points under one label; series of one *colour* (a number) belong together."""

    label: str
    points: Sequence[Point]
    style: Style = "line"
    colour: int = 0


@dataclass(frozen=True)
class _Axis:
    """From values to places on the page."""

    low: float
    high: float
    start: float
    end: float
    log: bool

    def place(self, value: float) -> float:
        low, high, at = (self._scaled(each) for each in (self.low, self.high, value))
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            return [10.0**power for power in powers]
        rough = (self.high - self.low) / 6
        size = 10.0 ** math.floor(math.log10(rough))
        step = next(step for step in (size, 2 * size, 5 * size, 10 * size) if step >= rough)
        return [step * n for n in range(math.ceil(self.low / step), math.floor(self.high / step + 1e-9) + 1)]

    def _scaled(self, value: float) -> float:
        return math.log10(value) if self.log else value


def write(
    file: Path,
    title: str,
    x: str,
    y: str,
    series: Sequence[Series],
    *,
    log_x: bool = False,
    log_y: bool = False,
) -> None:
    """Draw *series* into *file*; *x* and *y* name the axes."""
    across = _axis([px for each in series for px, _ in each.points], LEFT, WIDTH - RIGHT, log_x)
    up = _axis([py for each in series for _, py in each.points], HEIGHT - BOTTOM, TOP, log_y)
    parts = [*_frame(title, x, y, across, up)]
    for number, each in enumerate(series):
        parts += _drawn(each, across, up)
        parts += _legend(each, TOP + 8 + 18 * number)
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="12">'
    background = f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>'
    file.write_text("\n".join([head, background, *parts, "</svg>"]) + "\n", encoding="utf-8")


def _axis(values: Sequence[float], start: float, end: float, log: bool) -> _Axis:
    if log:
        low, high = min(value for value in values if value > 0), max(values)
        first = math.floor(math.log10(low))
        return _Axis(10.0**first, 10.0 ** max(math.ceil(math.log10(high)), first + 1), start, end, log)
    return _Axis(0.0, max(values) * 1.05, start, end, log)


def _frame(title: str, x: str, y: str, across: _Axis, up: _Axis) -> Iterable[str]:
    yield _text(LEFT, 24, title, "start", 'font-size="15" font-weight="bold"')
    yield _text((across.start + across.end) / 2, HEIGHT - 14, x, "middle")
    yield _text(16, (up.start + up.end) / 2, y, "middle", f'transform="rotate(-90 16 {(up.start + up.end) / 2:.1f})"')
    for tick in across.ticks():
        at = across.place(tick)
        yield _line((at, up.start), (at, up.end), "#e4e4e4")
        yield _text(at, up.start + 18, f"{tick:,.10g}", "middle")
    for tick in up.ticks():
        at = up.place(tick)
        yield _line((across.start, at), (across.end, at), "#e4e4e4")
        yield _text(across.start - 8, at + 4, f"{tick:,.10g}", "end")
    yield _line((across.start, up.start), (across.end, up.start), "#333333")
    yield _line((across.start, up.start), (across.start, up.end), "#333333")


def _drawn(series: Series, across: _Axis, up: _Axis) -> Iterable[str]:
    shown = [point for point in series.points if not (up.log and point[1] <= 0)]
    places = [(across.place(px), up.place(py)) for px, py in shown]
    colour = COLOURS[series.colour % len(COLOURS)]
    if series.style in _MARKS:
        yield from (_MARKS[series.style](place, colour) for place in places)
        return
    dashes = ' stroke-dasharray="6 4"' if series.style == "dashes" else ""
    listed = " ".join(f"{px:.1f},{py:.1f}" for px, py in places)
    yield f'<polyline points="{listed}" fill="none" stroke="{colour}" stroke-width="2"{dashes}/>'


def _legend(series: Series, y: float) -> Iterable[str]:
    left = WIDTH - RIGHT + 14
    colour = COLOURS[series.colour % len(COLOURS)]
    if series.style in _MARKS:
        yield _MARKS[series.style]((left + 12, y), colour)
    else:
        dashes = ' stroke-dasharray="6 4"' if series.style == "dashes" else ""
        yield _line((left, y), (left + 24, y), colour, f' stroke-width="2"{dashes}')
    yield _text(left + 32, y + 4, series.label, "start")


def _dot(place: Point, colour: str) -> str:
    return f'<circle cx="{place[0]:.1f}" cy="{place[1]:.1f}" r="4" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _cross(place: Point, colour: str) -> str:
    x, y = place
    path = f"M{x - 4:.1f} {y - 4:.1f}L{x + 4:.1f} {y + 4:.1f}M{x - 4:.1f} {y + 4:.1f}L{x + 4:.1f} {y - 4:.1f}"
    return f'<path d="{path}" stroke="{colour}" stroke-width="1.5"/>'


_MARKS: dict[Style, Callable[[Point, str], str]] = {"dots": _dot, "crosses": _cross}


def _line(start: Point, end: Point, colour: str, more: str = "") -> str:
    ends = f'x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}"'
    return f'<line {ends} stroke="{colour}"{more}/>'


def _text(x: float, y: float, words: str, anchor: str, more: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" {more}>{escape(words)}</text>'
