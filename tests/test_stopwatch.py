"""A thread's seconds, each counted once."""

from __future__ import annotations

from threading import Thread

import pytest

from strandline import stopwatch
from strandline.stopwatch import Span, Stopwatch, running, spending


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which goes on by a second whenever somebody looks."""
    time = [0.0]

    def now() -> float:
        time[0] += 1
        return time[0]

    monkeypatch.setattr(stopwatch, "now", now)
    return time


def test_a_second_counts_for_the_innermost_work(clock: list[float]) -> None:
    with running("planning") as watch:
        with spending("catalog"), spending("log"):
            pass
        with spending("own", "publish"):
            pass
    assert watch.spans() == [
        Span("planning", "own", 1, 2),
        Span("planning", "catalog", 2, 3),
        Span("planning", "log", 3, 4),
        Span("planning", "catalog", 4, 5),
        Span("planning", "own", 5, 6),
        Span("publish", "own", 6, 7),
        Span("planning", "own", 7, 8),
    ]


def test_the_same_work_again_is_one_span(clock: list[float]) -> None:
    watch = Stopwatch("step")
    watch.begin(None, "own")
    watch.end()
    assert watch.spans() == [Span("step", "own", 1, 4)]


def test_a_stopwatch_that_starts_again_forgets(clock: list[float]) -> None:
    watch = Stopwatch("step")
    watch.beside([Span("step", "log", 0, 1)])
    assert watch.others() == [[Span("step", "log", 0, 1)]]
    watch.restart()
    assert (watch.began, watch.spans(), watch.others()) == (2, [Span("step", "own", 2, 3)], [])


def test_one_that_runs_is_used_by_all_in_its_thread_and_by_no_other() -> None:
    seen: list[Stopwatch] = []

    def other() -> None:
        with running("step") as watch:
            seen.append(watch)

    with running("planning") as outer:
        with running("steps") as inner:
            assert inner is outer
        thread = Thread(target=other)
        thread.start()
        thread.join()
    assert seen[0] is not outer
    with running("planning") as later:
        assert later is not outer


def test_without_a_stopwatch_nothing_is_counted() -> None:
    with spending("catalog"):
        pass
