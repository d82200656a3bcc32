"""What the engine counted of a step: its jobs and when they ran, what they read of which files, shuffled and wrote.

Classic Spark keeps these numbers for its own user interface, whether that is shown or not. A Spark Connect server does
not hand them out; then nothing is known. Jobs are found by a tag that the thread of a step has for itself: those of a
commit to a Delta table carry it too, though not all of them belong to the step's session. What was read of files is
counted by the scans in the plans that Spark carried out; the bytes are those of the files, whatever columns were read.
"""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote, urlsplit

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PATIENCE = 50
"""Milliseconds to wait until Spark has counted what is over."""

_TAGS = count(1)

_LOCATION = re.compile(r"Location: \w+(?:\(\d+ paths?\))?\[([^,\]]*)")
_OF_THE_LOG = "Delta: "
"""How descriptions of what Delta itself runs to find its files begin."""

_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


class Job(NamedTuple):
    """When a job ran, in seconds since the epoch, and whether it wrote files."""

    start: float
    end: float
    writes: bool


class Scanned(NamedTuple):
    """What one scan read: *path* is its folder, or its first file."""

    path: str
    files: int
    bytes: int
    rows: int


@dataclass
class Metrics:
    """Numbers of a step, None where the engine does not tell.

    What is read and written without Spark, as little data is, is not among them; but scans are, of whoever made them.
    """

    first: bool = False
    """Whether the engine was fresh: its first step takes longer than others."""
    jobs: int | None = None
    tasks: int | None = None
    executor_seconds: float | None = None
    """The seconds that tasks ran, all together, and below those in which a processor was at work for them."""
    processor_seconds: float | None = None
    rows_read: int | None = None
    files_read: int | None = None
    bytes_read: int | None = None
    shuffle_bytes: int | None = None
    bytes_written: int | None = None
    ran: tuple[Job, ...] | None = None
    scans: tuple[Scanned, ...] = ()
    tables: tuple[tuple[str, int], ...] = ()
    """The tables read, with the versions they were pinned at."""


def mark(session: SparkSession) -> str | None:
    """From here on, jobs of this thread can be told from others; by what tag, or None where the engine has none."""
    tag = f"strandline-step-{next(_TAGS)}"
    with contextlib.suppress(Exception):
        session.sparkContext.addJobTag(tag)
        return tag
    return None


def unmark(session: SparkSession, tag: str | None) -> None:
    """The end of what :func:`mark` began."""
    if tag is not None:
        with contextlib.suppress(Exception):
            session.sparkContext.removeJobTag(tag)


def read_metrics(session: SparkSession, tag: str | None, into: Metrics) -> None:
    """What was counted of the jobs with *tag*."""
    if tag is None:
        return
    java: Any = getattr(session, "_jsparkSession", None)
    with contextlib.suppress(Exception):  # other steps may keep it busy; what is over is mostly counted all the same
        java.sparkContext().listenerBus().waitUntilEmpty(_PATIENCE)
    with contextlib.suppress(Exception):  # another version may count otherwise; no step fails for its numbers
        told = _Told(session, java)
        jobs = [told.job(number) for number in told.jobs(tag)]
        _count(told, [job for job, _ in jobs], into)
        asked = {plan for job, plan in jobs if plan is not None and _OF_THE_LOG not in (job["description"] or "")}
        into.scans = tuple(scan for plan in sorted(asked) for scan in scans_of(*told.plan(plan)))
        into.files_read, into.bytes_read = (sum(getattr(s, name) for s in into.scans) for name in ("files", "bytes"))


class _Told:
    """What the stores of Spark's user interface tell, each thing fetched as one text: calls are what takes time."""

    def __init__(self, session: SparkSession, java: Any) -> None:
        self._mapper = _mapper(session.sparkContext._jvm)
        self._context, self._plans = java.sparkContext(), java.sharedState().statusStore()
        self._jobs = self._context.statusStore()

    def jobs(self, tag: str) -> list[int]:
        """The numbers of the jobs with *tag*, in order."""
        return sorted(self._read(self._context.statusTracker().getJobIdsForTag(tag)))

    def job(self, number: int) -> tuple[dict[str, Any], int | None]:
        """A job, and the number of the plan that it belongs to."""
        job, plan = self._read(self._jobs.jobWithAssociatedSql(number))
        return job, plan

    def stage(self, number: int) -> dict[str, Any] | None:
        """A stage of a job; None if it never ran."""
        with contextlib.suppress(Exception):
            return dict(self._read(self._jobs.lastStageAttempt(number)))
        return None

    def plan(self, number: int) -> tuple[list[dict[str, Any]], dict[str, str]]:
        """The nodes of a plan, and the values of their metrics."""
        nodes = self._read(self._plans.planGraph(number).allNodes())
        return nodes, self._read(self._plans.executionMetrics(number))

    def _read(self, found: Any) -> Any:
        return json.loads(self._mapper.writeValueAsString(found))


@lru_cache(maxsize=1)
def _mapper(jvm: Any) -> Any:
    """What writes Spark's own objects as JSON, as its user interface does."""
    mapper = jvm.com.fasterxml.jackson.databind.ObjectMapper()
    mapper.registerModule(jvm.com.fasterxml.jackson.module.scala.DefaultScalaModule())
    return mapper


def _count(told: _Told, jobs: list[dict[str, Any]], into: Metrics) -> None:
    stages: dict[int, dict[str, Any]] = {}
    ran: list[Job] = []
    for job in jobs:
        new = [stage for stage in job["stageIds"] if stage not in stages]
        stages |= {stage: found for stage in new if (found := told.stage(stage)) is not None}
        start, end = job["submissionTime"], job["completionTime"]
        if start is not None and end is not None:
            ran.append(
                Job(start / 1000, end / 1000, any(stages[stage]["outputBytes"] for stage in new if stage in stages))
            )

    def total(name: str) -> int:
        return sum(stage[name] for stage in stages.values())

    into.jobs, into.ran, into.tasks = len(jobs), tuple(ran), total("numCompleteTasks")
    into.executor_seconds = round(total("executorRunTime") / 1e3, 3)
    into.processor_seconds = round(total("executorCpuTime") / 1e9, 3)
    into.rows_read, into.shuffle_bytes = total("inputRecords"), total("shuffleWriteBytes")
    into.bytes_written = total("outputBytes")


def scans_of(nodes: Iterable[dict[str, Any]], values: dict[str, str]) -> Iterator[Scanned]:
    """The scans of files among the *nodes* of a plan; *values* are the metrics, as texts, by their numbers."""
    for node in nodes:
        told = {metric["name"]: values.get(str(metric["accumulatorId"])) for metric in node["metrics"]}
        place = _LOCATION.search(node["desc"])
        files = told.get("number of files read")
        if place is not None and files is not None and "/_delta_log" not in place[1]:
            rows = told.get("number of output rows")
            yield Scanned(_path(place[1]), _whole(files), _size(told.get("size of files read")), _whole(rows))


def _path(location: str) -> str:
    """A location as paths of tables are written here."""
    parts = urlsplit(location)
    return unquote(parts.path) if parts.scheme in ("", "file") else location


def _whole(text: str | None) -> int:
    return int((text or "0").replace(",", ""))


def _size(text: str | None) -> int:
    """``12.5 MiB``; a metric of several tasks has their sum in the line after the heading."""
    number, unit = (text or "0 B").splitlines()[-1].split("(")[0].split()[:2]
    return int(float(number.replace(",", "")) * _SIZES[unit])
