"""Threads that carry out steps side by side, each with a session and a scheduler pool of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

from strandline.engine.session import Engine

SETTINGS = {"spark.scheduler.mode": "FAIR"}
"""For the engine: pools share the cores."""

Step = TypeVar("Step")
Outcome = TypeVar("Outcome")


class Workers:
    """So many threads beside *engine*, until they are closed."""

    def __init__(self, engine: Engine, threads: int) -> None:
        self.engine = engine
        self.threads = threads
        self._own = threading.local()
        self._pool = ThreadPoolExecutor(threads, initializer=self._begin)

    def _begin(self) -> None:
        own = Engine(self.engine.spark)
        own.worker.sparkContext.setLocalProperty("spark.scheduler.pool", threading.current_thread().name)
        self._own.engine = own

    def each(self, steps: Iterable[Step], carry_out: Callable[[Step, Engine], Outcome]) -> list[Outcome]:
        """What comes of each of *steps*, begun in this order; all have ended."""
        return list(self._pool.map(lambda step: carry_out(step, self._own.engine), steps))

    def __enter__(self) -> Workers:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._pool.shutdown()
