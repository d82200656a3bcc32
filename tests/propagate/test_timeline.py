"""Spans of threads, divided by jobs and added up to the wall clock."""

from __future__ import annotations

import pytest

from strandline.engine.metrics import Job
from strandline.propagate.timeline import divided, seconds, shared
from strandline.stopwatch import Span


def step(work: str, start: float, end: float) -> Span:
    return Span("step", work, start, end)


def test_a_call_of_spark_is_divided_by_its_jobs() -> None:
    jobs = [Job(2, 4, writes=False), Job(3, 5, writes=True), Job(8, 20, writes=False)]
    found = divided([step("own", 0, 1), step("spark", 1, 10)], jobs)
    assert found == [
        step("own", 0, 1),
        step("driver", 1, 2),
        step("jobs", 2, 5),
        step("driver", 5, 8),
        step("jobs", 8, 10),
    ]


def test_what_follows_the_last_job_that_writes_is_the_commit() -> None:
    jobs = [Job(1, 2, writes=True), Job(3, 4, writes=True), Job(5, 6, writes=False)]
    assert seconds(divided([step("committing", 0, 7)], jobs)) == {"driver": 2, "jobs": 2, "commit": 3}
    assert seconds(divided([step("spark", 0, 7)], jobs)) == {"driver": 4, "jobs": 3}


def test_a_call_that_writes_nothing_has_no_commit() -> None:
    assert seconds(divided([step("committing", 0, 3)], [Job(1, 2, writes=False)])) == {"driver": 2, "jobs": 1}


def test_where_no_jobs_are_told_of_all_is_spark() -> None:
    found = divided([step("spark", 0, 1), step("committing", 1, 3), step("log", 3, 4)], None)
    assert seconds(found) == {"spark": 3, "log": 1}


def test_parts_add_up_to_the_wall_clock_and_threads_share_it() -> None:
    runs = [
        Span("planning", "own", 0, 1),
        Span("planning", "log", 1, 2),
        Span("steps", "own", 2, 2.5),
        Span("steps", "waiting", 2.5, 8),
        Span("steps", "catalog", 8, 9),
        Span("publish", "catalog", 9, 10),
    ]
    first, second = [step("own", 3, 4), step("jobs", 4, 8)], [step("driver", 4, 6)]
    found = shared([runs, first, second], 0, 11)
    assert sum(found.values()) == pytest.approx(11)
    assert found == pytest.approx(
        {"planning": 2, "building": 1, "driver": 1, "jobs": 3, "catalog": 1, "publish": 1, "other": 2}
    )


def test_what_lies_outside_is_cut_off() -> None:
    assert shared([[step("jobs", -5, 3), step("log", 3, 99)]], 0, 4) == {"jobs": 3, "log": 1}
