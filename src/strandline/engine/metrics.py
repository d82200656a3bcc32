"""What the engine counted of a step: jobs, rows and bytes read after skipping, bytes shuffled and written.

Classic Spark keeps these numbers for its own user interface, whether that is shown or not. A Spark Connect server does
not hand them out; then nothing is known.
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
    bytes_read: int | None = None
    shuffle_bytes: int | None = None
    bytes_written: int | None = None


def read_metrics(session: SparkSession, tag: str, into: Metrics) -> None:
    """What was counted of the jobs with a *tag*, once they are over."""
    java: Any = getattr(session, "_jsparkSession", None)
    if java is not None:
        with contextlib.suppress(Exception):  # another version may count otherwise; no step fails for its numbers
            into.jobs, into.rows_read, into.bytes_read, into.shuffle_bytes, into.bytes_written = _counted(java, tag)


def _counted(java: Any, tag: str) -> tuple[int, int, int, int, int]:
    context = java.sparkContext()
    context.listenerBus().waitUntilEmpty(_PATIENCE)
    store, tracker = context.statusStore(), context.statusTracker()
    jobs = list(tracker.getJobIdsForTag(tag))
    stages = {stage for job in jobs for stage in _numbers(store.job(job).stageIds().mkString(","))}
    found = [store.lastStageAttempt(stage) for stage in sorted(stages)]
    return (
        len(jobs),
        sum(stage.inputRecords() for stage in found),
        sum(stage.inputBytes() for stage in found),
        sum(stage.shuffleWriteBytes() for stage in found),
        sum(stage.outputBytes() for stage in found),
    )


def _numbers(text: str) -> list[int]:
    return [int(number) for number in text.split(",") if number]
