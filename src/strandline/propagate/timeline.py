"""What threads did when, and what of the wall clock each kind of work took.

A call of Spark is divided by the jobs that ran in it: while one runs the work is *jobs*, else the driver's own. In a
call that commits to a Delta table, what comes after the last job that wrote is the *commit*. Where the engine tells
nothing of its jobs, all of it is *spark*.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from strandline.engine.metrics import Job
from strandline.stopwatch import Span

PARTS = (
    "starting", "planning", "building", "driver", "jobs", "spark", "seeking", "columns", "commit", "log", "files",
    "catalog", "publish", "metrics", "other",
)  # fmt: skip
"""The kinds of work that the wall clock of a refresh is made of."""

_CALLS = ("spark", "committing")


def divided(spans: Iterable[Span], jobs: Sequence[Job] | None) -> list[Span]:
    """*spans* of a step, with calls of Spark divided by the *jobs* of the step; None is not known."""
    found: list[Span] = []
    for span in spans:
        if span.work not in _CALLS:
            found.append(span)
        elif jobs is None:
            found.append(span._replace(work="spark"))
        else:
            found += _by_jobs(span, jobs)
    return found


def _by_jobs(span: Span, jobs: Sequence[Job]) -> Iterator[Span]:
    inside = [job for job in jobs if job.end > span.start and job.start < span.end]
    writing = [job.end for job in inside if job.writes] if span.work == "committing" else []
    upto = min(max(writing), span.end) if writing else span.end
    at = span.start
    for start, end in _merged(inside):
        start, end = max(start, at), min(end, upto)
        if start < end:
            yield from _parts(span, (("driver", at, start), ("jobs", start, end)))
            at = end
    yield from _parts(span, (("driver", at, upto), ("commit", upto, span.end)))


def _parts(span: Span, parts: Iterable[tuple[str, float, float]]) -> Iterator[Span]:
    return (Span(span.phase, work, start, end) for work, start, end in parts if start < end)


def _merged(jobs: Iterable[Job]) -> Iterator[tuple[float, float]]:
    """The stretches in which a job ran."""
    current: tuple[float, float] | None = None
    for job in sorted(jobs, key=lambda job: job.start):
        if current is not None and job.start <= current[1]:
            current = (current[0], max(current[1], job.end))
        else:
            if current is not None:
                yield current
            current = (job.start, job.end)
    if current is not None:
        yield current


def seconds(spans: Iterable[Span]) -> dict[str, float]:
    """The seconds of one thread by the kind of work."""
    found = dict.fromkeys(PARTS, 0.0)
    for span in spans:
        part = part_of(span)
        if part is not None:
            found[part] += span.end - span.start
    return {part: spent for part, spent in found.items() if spent}


def shared(threads: Iterable[Iterable[Span]], start: float, end: float) -> dict[str, float]:
    """The seconds between *start* and *end* by the kind of work; they add up to all of them.

    Of a second in which several threads work, each has its share; one in which none does is *other*.
    """
    moments: list[tuple[float, int, str]] = [(start, 0, ""), (end, 0, "")]
    for span in (span for thread in threads for span in thread):
        part = part_of(span)
        if part is not None and span.end > start and span.start < end:
            moments += [(max(span.start, start), 1, part), (min(span.end, end), -1, part)]
    under_way: Counter[str] = Counter()
    found = dict.fromkeys(PARTS, 0.0)
    before = start
    for moment, change, part in sorted(moments):
        working = under_way.total()
        for each, count in under_way.items():
            found[each] += (moment - before) * count / working if working else 0.0
        found["other"] += 0.0 if working else moment - before
        before = moment
        if change:
            under_way[part] += change
    return {part: spent for part, spent in found.items() if spent}


def part_of(span: Span) -> str | None:
    """The kind of work that a span is; None for waiting, which is none."""
    if span.work == "waiting":
        return None
    if span.work == "starting":
        return "starting"
    if span.phase in ("planning", "publish"):
        return span.phase
    if span.phase == "step":
        return "building" if span.work == "own" else span.work
    return span.work if span.work in ("catalog", "metrics") else "other"
