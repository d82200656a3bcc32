"""Strategies for a graph of views, carried out: the experiments with TPC-D (Labio, 3.7) on Spark and Delta tables.

Q3, Q5 and Q10 over six tables, five of which lose a tenth of their rows. All 13 strategies of Q3; MinWorkSingle
against dual-stage for Q3 and Q5; Q3 at several change rates; the whole graph by MinWork, Prune, the reverse order,
dual-stage, and over pinned versions, one step after another and side by side. After every run every view is compared
with its recomputation. Prints tables, and writes JSON and plots below ``bench/results``.

From the environment come SCALE (default 0.1), REPEATS (default 1; medians want 3 or more) and EXPERIMENTS (q3, q5,
rates, whole; default all).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from bench import results
from bench.floor import floors
from bench.vdag import contenders, data, report, tpc_d
from bench.vdag.case import prepared, views_over
from bench.vdag.contenders import DUAL, MIN_WORK, MIN_WORK_SINGLE, PINNED, REVERSE, parallel
from bench.vdag.measure import Contender, in_turns
from bench.vdag.report import Floor, Found, Ratio
from bench.vdag.workers import SETTINGS, Workers
from strandline.engine.session import Engine

PERCENT = 10
RATES = (1, 5, 10, 20, 30)
BEST = contenders.named(tuple(map(frozenset, "LOC")))
"""What MinWorkSingle chooses for Q3."""

RATIOS = (
    Ratio("q3", contenders.named((frozenset("COL"),)), BEST, tpc_d.REPORTED["q3", DUAL]),
    Ratio("q5", DUAL, MIN_WORK_SINGLE, tpc_d.REPORTED["q5", DUAL]),
    Ratio("whole", DUAL, MIN_WORK, tpc_d.REPORTED["whole", DUAL]),
    Ratio("whole", REVERSE, MIN_WORK, tpc_d.REPORTED["whole", REVERSE]),
    Ratio("whole", PINNED, MIN_WORK, ""),
    *(Ratio("whole", parallel(label), label, "") for label in (MIN_WORK, DUAL, PINNED)),
)


def run() -> None:
    scale, repeats = float(os.environ.get("SCALE", 0.1)), int(os.environ.get("REPEATS", 1))
    wanted = os.environ.get("EXPERIMENTS", "q3,q5,rates,whole").split(",")
    engine = Engine(settings={**SETTINGS, "spark.driver.memory": "3g"})
    with (
        tempfile.TemporaryDirectory(prefix="strandline-bench-") as folder,
        Workers(engine, 1) as alone,
        Workers(engine, 2) as two,
    ):
        bench = _Bench(Path(folder), scale, repeats, {1: alone, 2: two})
        bench.warm_up()
        found = {name: bench.experiment(name) for name in wanted if name != "rates"}
        rates = bench.rates() if "rates" in wanted else {}
        floor = Floor(*floors(engine, Path(folder)))
    engine.close()
    _report(scale, repeats, floor, found, rates)


class _Bench:
    """The tables, and what is run over them."""

    def __init__(self, folder: Path, scale: float, repeats: int, workers: Mapping[int, Workers]) -> None:
        self._folder = folder
        self._repeats = repeats
        self._workers = workers
        engine = workers[1].engine
        before = folder / "before"
        keys = data.make_tables(before, scale)
        self._deltas = {rate: data.shrink(before, folder / f"deltas-{rate}", rate, tpc_d.SHRINKING) for rate in RATES}
        self._nodes = views_over(engine, before, keys, tpc_d.QUERIES, small=False)
        self._case = prepared(engine, folder / "after", self._nodes, self._deltas[PERCENT], small=False)

    def warm_up(self) -> None:
        """Have Java compile what all runs use."""
        minimal, *_ = contenders.whole_graph(self._case)
        in_turns(self._workers, self._folder, [minimal, *contenders.single_and_dual(self._case, "Q3")], 1)

    def experiment(self, name: str) -> Found:
        case = self._case
        match name:
            case "q3":
                *others, dual = contenders.every_strategy(case, "Q3")
                return self._measured([*others, dual, contenders.in_one_query(dual)])
            case "q5":
                single, dual = contenders.single_and_dual(case, "Q5")
                return self._measured([single, dual, contenders.in_one_query(dual)])
            case "whole":
                sequences = [*contenders.whole_graph(case), *contenders.without_empty_deltas(case)]
                return self._measured([*sequences, *contenders.side_by_side(case, 2)])
        raise SystemExit(f"no experiment {name}; there are: q3, q5, rates, whole")

    def rates(self) -> dict[int, Found]:
        """Q3 at each change rate."""
        held = (*self._nodes["Q3"].inputs, "Q3")
        nodes = {name: self._nodes[name] for name in held}
        found = {}
        for rate, deltas in self._deltas.items():
            folder, engine = self._folder / f"after-{rate}", self._workers[1].engine
            own = {name: deltas[name] for name in held if name in deltas}
            case = prepared(engine, folder, nodes, own, small=False)
            found[rate] = self._measured(contenders.with_best_two_way(case, "Q3"))
        return found

    def _measured(self, of: Sequence[Contender]) -> Found:
        return in_turns(self._workers, self._folder, of, self._repeats)


def _report(scale: float, repeats: int, floor: Floor, found: Mapping[str, Found], rates: Mapping[int, Found]) -> None:
    console = Console(width=180)
    titles = {
        "q3": "Q3 over C, O, L: all 13 strategies",
        "q5": "Q5 over six tables",
        "whole": "Q3, Q5 and Q10 over six tables",
    }
    bases = {"q3": BEST, "q5": MIN_WORK_SINGLE, "whole": MIN_WORK}
    for name, each in found.items():
        report.show(console, f"{titles[name]}; scale {scale}", each, bases[name])
    for rate, each in rates.items():
        report.show(console, f"Q3, {rate}% of the rows deleted; scale {scale}", each, MIN_WORK_SINGLE)
    ratios = [ratio.to_dict(found[ratio.experiment]) for ratio in RATIOS if ratio.experiment in found]
    if ratios:
        report.show_ratios(console, ratios)
    console.print(f"an empty term takes {floor.term:.2f} s, an empty commit {floor.commit:.2f} s")
    file = results.write(
        "vdag",
        {
            "scale": scale,
            "repeats": repeats,
            "floor": {"term": floor.term, "commit": floor.commit},
            "experiments": {name: _listed(each) for name, each in found.items()},
            "rates": {rate: _listed(each) for rate, each in rates.items()},
            "ratios": ratios,
        },
    )
    for name in ("q3", "whole"):
        if name in found:
            report.draw_ratios(results.FOLDER / f"vdag-{name}.svg", titles[name], found[name], bases[name])
    if rates:
        report.draw_rates(results.FOLDER / "vdag-rates.svg", "Q3 at several change rates", rates, MIN_WORK_SINGLE)
    print(f"written to {file}")


def _listed(found: Found) -> dict[str, Any]:
    return {label: each.to_dict() for label, each in found.items()}
