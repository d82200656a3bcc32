"""Where the seconds of a thread go: each is counted once, for the innermost work that is under way.

A stopwatch belongs to the thread that runs it, and knows what threads that worked for it did. Whoever does something
that takes time says so with :func:`spending`; where no stopwatch runs, that does nothing.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple

Work = Literal[
    "own",
    "catalog",
    "log",
    "files",
    "seeking",
    "columns",
    "commit",
    "spark",
    "committing",
    "starting",
    "waiting",
    "metrics",
]
"""``own`` is our own computing: plans, SQL text, choices. ``log`` is that of a Delta table, read without Spark;
``files`` are those of stored deltas; ``seeking`` is for rows of large tables by few keys, ``columns`` is computing with
few rows, both without Spark; ``commit`` is one without Spark. ``spark`` is a call of Spark, ``committing`` one that
commits too."""

_EPOCH = time.time() - time.monotonic()


def now() -> float:
    """Seconds since the epoch, comparable with those of Spark's driver, by a clock that is never set."""
    return _EPOCH + time.monotonic()


class Span(NamedTuple):
    """A stretch of time in one thread."""

    phase: str
    work: str
    start: float
    end: float


class Stopwatch:
    """The spans of a thread, one after another and without gaps, and those of threads that worked for it meanwhile."""

    def __init__(self, phase: str) -> None:
        self.began = self._since = now()
        self._spans: list[Span] = []
        self._others: list[Sequence[Span]] = []
        self._under_way: list[tuple[str, str]] = [(phase, "own")]

    def spans(self) -> list[Span]:
        """What there was up to now."""
        self._close(now())
        return list(self._spans)

    def beside(self, spans: Sequence[Span]) -> None:
        """What another thread did for this one; that thread says so itself, once it is done."""
        self._others.append(spans)

    def others(self) -> list[Sequence[Span]]:
        """What other threads did up to now."""
        return list(self._others)

    def restart(self) -> None:
        """Forget what there was up to now."""
        self._close(now())
        self._spans.clear()
        self._others.clear()
        self.began = self._since

    def begin(self, phase: str | None, work: Work) -> None:
        """Something begins within what is under way; without a *phase* it belongs to the same one."""
        self._close(now())
        self._under_way.append((phase or self._under_way[-1][0], work))

    def end(self) -> None:
        """What was begun last ends."""
        self._close(now())
        self._under_way.pop()

    def _close(self, moment: float) -> None:
        phase, work = self._under_way[-1]
        last = self._spans[-1] if self._spans else None
        if last is not None and (last.phase, last.work) == (phase, work):
            self._spans[-1] = last._replace(end=moment)
        elif moment > self._since:
            self._spans.append(Span(phase, work, self._since, moment))
        self._since = moment


_RUNNING: ContextVar[Stopwatch | None] = ContextVar("running", default=None)


@contextmanager
def running(phase: str) -> Iterator[Stopwatch]:
    """Within, a stopwatch runs in this thread: a new one, or the one that runs already."""
    found = _RUNNING.get()
    if found is not None:
        yield found
        return
    made = Stopwatch(phase)
    token = _RUNNING.set(made)
    try:
        yield made
    finally:
        _RUNNING.reset(token)


@contextmanager
def spending(work: Work, phase: str | None = None) -> Iterator[None]:
    """Within, the seconds of this thread go to *work*."""
    stopwatch = _RUNNING.get()
    if stopwatch is None:
        yield
        return
    stopwatch.begin(phase, work)
    try:
        yield
    finally:
        stopwatch.end()
