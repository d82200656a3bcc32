"""Medians over repeats, ratios, and the verdict."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.tpch.kept import WHOLE, Repeat, Seconds


@dataclass(frozen=True)
class Spread:
    """The median of some seconds, the least and the most."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f}" if self.low == self.high else f"{self.median:.2f} ({self.low:.2f}–{self.high:.2f})"


def spread(seconds: Iterable[float]) -> Spread:
    found = list(seconds)
    return Spread(statistics.median(found), min(found), max(found))


@dataclass(frozen=True)
class View:
    """What contenders took for a view; None is those that did not run."""

    name: str
    strategy: str
    part: Spread
    """Of the whole refresh."""
    steps: Spread
    """Of the view's own steps, while others ran beside them."""
    ways: Mapping[str, Spread]
    merge: Spread | None
    duckdb: Spread | None

    @property
    def recompute(self) -> float | None:
        """The quickest way of recomputing."""
        return min((way.median for way in self.ways.values()), default=None)

    @property
    def ratio(self) -> float | None:
        """Of the refresh to recomputing: below 1 it is quicker."""
        return None if self.recompute is None else self.part.median / self.recompute


@dataclass(frozen=True)
class Summary:
    """All repeats of one run together."""

    whole: Spread
    views: Sequence[View]
    merge: float
    """Of all pipelines written by hand, with what they share."""
    wrong: Mapping[str, str]
    cpu: float | None
    """Of processors: what recomputing needs, each view in the way that needs least, in times of the refresh."""

    @property
    def recompute(self) -> float:
        """Of all views one after another, each in the quickest way."""
        return sum(view.recompute or 0.0 for view in self.views)

    @property
    def verdict(self) -> str:
        """In one line."""
        right = sum(view.name not in self.wrong for view in self.views)
        told = [f"{right} of {len(self.views)} correct"]
        told += [f"WRONG: {', '.join(self.wrong)}"] if self.wrong else []
        compared = [(view.ratio, view.name) for view in self.views if view.ratio is not None]
        if not compared:
            return f"verdict: whole {self.whole.median:.1f} s, nothing recomputed; {'; '.join(told)}"
        ratio, worst = max(compared)
        times = self.recompute / self.whole.median
        whole = f"{times:.1f}x faster" if times >= 1 else f"{1 / times:.1f}x slower"
        by_cpu = "" if self.cpu is None else f" ({self.cpu:.1f}x by processor time)"
        view = f"worst view {worst} {ratio:.2f}x of its recompute"
        return f"verdict: whole {whole} than recomputing{by_cpu}; {view}; {'; '.join(told)}"


def summarise(repeats: Sequence[Repeat]) -> Summary:
    """Medians of what was measured."""
    names = list(repeats[-1].refresh["views"])
    wrong = {view: told for repeat in repeats for view, told in repeat.wrong.items()}
    whole = spread(repeat.refresh["seconds"] for repeat in repeats)
    merge = statistics.median(sum(repeat.merge.values()) for repeat in repeats)
    return Summary(whole, [_view(repeats, name) for name in names], merge, wrong, _cpu(repeats, names))


def _cpu(repeats: Sequence[Repeat], names: Sequence[str]) -> float | None:
    """What recomputing takes of the processors, as a ratio to the refresh."""
    recomputed = [repeat for repeat in repeats if repeat.recompute and repeat.cpu]
    if not recomputed:
        return None
    ways = recomputed[0].recompute
    least = (min(statistics.median(r.cpu[way][name] for r in recomputed) for way in ways) for name in names)
    return sum(least) / statistics.median(repeat.cpu["refresh"][WHOLE] for repeat in repeats if repeat.cpu)


def _view(repeats: Sequence[Repeat], name: str) -> View:
    own = [repeat.refresh["views"][name] for repeat in repeats]
    ways = {way for repeat in repeats for way in repeat.recompute}
    return View(
        name,
        ", ".join(dict.fromkeys(each["strategy"] for each in own)),
        spread(each["part"] for each in own),
        spread(each["steps"] for each in own),
        {way: spread(r.recompute[way][name] for r in repeats if way in r.recompute) for way in sorted(ways)},
        _of(name, (repeat.merge for repeat in repeats)),
        _of(name, (repeat.duckdb for repeat in repeats)),
    )


def _of(name: str, measured: Iterable[Seconds]) -> Spread | None:
    found = [seconds[name] for seconds in measured if name in seconds]
    return spread(found) if found else None
