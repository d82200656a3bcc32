"""Contenders run in turns, several times each: medians of what they took, and how far the runs lie apart."""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

from bench.vdag.case import Case
from bench.vdag.execution import Run, Stages, carried_out
from bench.vdag.workers import Workers

_NUMBERS = count(1)


@dataclass(frozen=True)
class Contender:
    """A strategy as it is carried out over a case, and its work under the linear metric."""

    label: str
    case: Case
    stages: Stages
    work: float
    threads: int = 1
    one_query: bool = False
    """Whether the terms of a Comp are one query."""


@dataclass
class Measured:
    """The runs of a contender, and the load of the machine when each ended."""

    contender: Contender
    runs: list[Run] = field(default_factory=list)
    load: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        return statistics.median(run.seconds for run in self.runs)

    @property
    def computing(self) -> float:
        return statistics.median(run.computing for run in self.runs)

    @property
    def installing(self) -> float:
        return statistics.median(run.installing for run in self.runs)

    @property
    def cpu(self) -> float:
        return statistics.median(run.cpu for run in self.runs)

    @property
    def comps_cpu(self) -> float:
        return statistics.median(run.comps_cpu for run in self.runs)

    @property
    def spread(self) -> tuple[float, float]:
        """The quickest and the slowest run."""
        seconds = [run.seconds for run in self.runs]
        return min(seconds), max(seconds)

    def to_dict(self) -> dict[str, Any]:
        return {
            "work": self.contender.work,
            "terms": self.runs[0].terms,
            "stages": len(self.contender.stages),
            "threads": self.contender.threads,
            "seconds": [round(run.seconds, 2) for run in self.runs],
            "computing": [round(run.computing, 2) for run in self.runs],
            "installing": [round(run.installing, 2) for run in self.runs],
            "cpu": [round(run.cpu, 2) for run in self.runs],
            "comps_cpu": [round(run.comps_cpu, 2) for run in self.runs],
            "load": [round(load, 1) for load in self.load],
        }


def in_turns(
    workers: Mapping[int, Workers], folder: Path, contenders: Sequence[Contender], repeats: int
) -> dict[str, Measured]:
    """Each of *contenders* so many times, in turns; the order of a turn is that of the last one, rotated.

    *workers* are by number of threads. A run that ends in a wrong state ends everything.
    """
    found = {contender.label: Measured(contender) for contender in contenders}
    for repeat in range(repeats):
        for contender in _rotated(contenders, repeat):
            run = carried_out(
                workers[contender.threads],
                contender.case,
                folder / f"run-{next(_NUMBERS)}",
                contender.stages,
                one_query=contender.one_query,
                small=False,
            )
            if run.wrong:
                raise AssertionError(f"{contender.label}: wrong after the strategy: {', '.join(run.wrong)}")
            found[contender.label].runs.append(run)
            found[contender.label].load.append(os.getloadavg()[0])
            print(f"{contender.label}: {_written(run)}, right", flush=True)
    return found


def _written(run: Run) -> str:
    return (
        f"{run.seconds:.1f} s (Comps {run.computing:.1f}, Insts {run.installing:.1f}), "
        f"processors {run.cpu:.1f} s (Comps {run.comps_cpu:.1f}), {run.terms} terms"
    )


def _rotated(contenders: Sequence[Contender], by: int) -> Iterable[Contender]:
    place = by % len(contenders)
    return (*contenders[place:], *contenders[:place])
