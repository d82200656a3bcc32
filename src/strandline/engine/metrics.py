"""What the engine counted of a step: jobs, rows read after skipping, bytes shuffled and written.

Classic Spark keeps these numbers for its own user interface, whether that is shown or not. A Spark Connect server does
not hand them out; then nothing is known. Neither is it of a step that commits to a Delta table through Spark: a part of
what that runs is not counted with the session. Bytes read are not told: what Spark counts of them is far too low.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = 50
"""Milliseconds to wait until Spark has counted what is over."""


@dataclass
class Metrics:
    """Numbers of a step, None where the engine does not tell.

    What is read and written without Spark, as little data is, is not among them.
    """

    first: bool = False
    """Whether the engine was fresh: its first step takes longer than others."""
    jobs: int | None = None
    rows_read: int | None = None
    shuffle_bytes: int | None = None
    bytes_written: int | None = None


def jobs_of(session: SparkSession) -> frozenset[int]:
    """The jobs that a session has run so far; none where the engine does not tell."""
    with contextlib.suppress(Exception):
        return _jobs(session)
    return frozenset()


def read_metrics(session: SparkSession, earlier: frozenset[int], into: Metrics) -> None:
    """What was counted of the jobs of *session* since *earlier*: of one step, which has the session alone."""
    java: Any = getattr(session, "_jsparkSession", None)
    with contextlib.suppress(Exception):  # another version may count otherwise; no step fails for its numbers
        java.sparkContext().listenerBus().waitUntilEmpty(_PATIENCE)
        found = _counted(java.sparkContext().statusStore(), _jobs(session) - earlier)
        into.jobs, into.rows_read, into.shuffle_bytes, into.bytes_written = found


def _jobs(session: Any) -> frozenset[int]:
    java = session._jsparkSession
    # All jobs of a session have this tag.
    found = java.sparkContext().statusTracker().getJobIdsForTag(f"spark-session-{java.sessionUUID()}")
    # In one piece: number by number they would be asked of Java, and a session that lives has run hundreds.
    return frozenset(_numbers(session._jvm.java.util.Arrays.toString(found).strip("[]")))


def _counted(store: Any, jobs: frozenset[int]) -> tuple[int, int, int, int]:
    stages = {stage for job in jobs for stage in _numbers(store.job(job).stageIds().mkString(","))}
    found = [store.lastStageAttempt(stage) for stage in sorted(stages)]
    return (
        len(jobs),
        sum(stage.inputRecords() for stage in found),
        sum(stage.shuffleWriteBytes() for stage in found),
        sum(stage.outputBytes() for stage in found),
    )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]
