"""Seconds of processors: other load on the machine changes them little, where it changes how long something takes."""

from __future__ import annotations

import time
from dataclasses import dataclass
from types import TracebackType
from typing import Self

import psutil


def used() -> float:
    """What this process and those that it started, Spark's among them, have used."""
    own = psutil.Process()
    return float(sum(sum(process.cpu_times()[:2]) for process in (own, *own.children(recursive=True))))


@dataclass
class Stopwatch:
    """Within the context: how long it took, and the seconds of processors that were used."""

    seconds: float = 0.0
    cpu: float = 0.0

    def __enter__(self) -> Self:
        self._began, self._used = time.perf_counter(), used()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.seconds, self.cpu = time.perf_counter() - self._began, used() - self._used
