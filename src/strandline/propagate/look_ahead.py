"""Changes are taken in before a plan is made with them, where there is much to plan for.

What a log tells of changes is coarse: which files hold them, and about how many they are. Once they are stored it is
known how many there are, in which ranges each column lies, and which columns they touch at all. Taking them in is what
a refresh begins with in any case: what was taken in here becomes the result of the plan's own steps. If it fails, or
the process ends, nothing has happened yet; files that are left over go at the end of the next refresh.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from typing import Any

from strandline.algebra.schema import Schema
from strandline.ingest.leaf import ingest
from strandline.propagate.context import Context
from strandline.propagate.measured import measured
from strandline.propagate.plan import Step, key_of
from strandline.propagate.progress import Event, Watcher, nobody
from strandline.propagate.recorder import Recorder
from strandline.sources.protocol import Position
from strandline.stopwatch import now, running, spending
from strandline.store import layout
from strandline.store.deltas import Delta

INTERRUPTED_EVERY = 0.5
"""How many seconds apart what is to end is interrupted: between two jobs it does not notice."""


@dataclass(frozen=True)
class Taken:
    """Deltas of leaves that are stored already."""

    results: Mapping[tuple[str, str], Mapping[str, Any]] = field(default_factory=dict)
    """By leaf and position after which they were taken: what came of it."""

    def delta(self, leaf: str, after: Position) -> Delta | None:
        """The delta of a leaf since a position, if it was taken in."""
        found = self.results.get((leaf, key_of(after)))
        return None if found is None else Delta.told_by(found)

    def into(self, step: Step) -> Step:
        """An ingest step, with what came of it if it was done here."""
        found = self.results.get((step.subject, key_of(step.after)))
        return step if found is None else replace(step, taken=dict(found))


def take_in(context: Context, steps: Sequence[tuple[Step, Schema]], watcher: Watcher = nobody) -> Taken:
    """Carry out ingest *steps*, each of some columns; one that fails is left to the plan.

    The plan tells how they ended; *watcher* sees here that they are under way. Their seconds are their own: the thread
    that is to plan waits for them.
    """
    coming = tuple((step.kind, step.subject) for step, _ in steps)
    watcher(Event("planned", "", "", 0, len(steps), steps=coming))
    pool = ThreadPoolExecutor(context.parallel if context.engine.runs_beside else 1, "strandline-look")
    under_way: dict[tuple[str, str], Future[dict[str, Any]]] = {}
    with running("planning") as stopwatch:
        recorder = Recorder(context, stopwatch)
        try:
            for number, (step, columns) in enumerate(steps):
                path = layout.ahead_path(context.root, context.catalog.warehouse_id, number + 1)
                key = (step.subject, key_of(step.after))
                watcher(Event("started", step.kind, step.subject, 0, len(steps)))
                under_way[key] = pool.submit(_ingested, context, step, columns, path, recorder, now())
            with spending("waiting"):
                wait(under_way.values())
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            while not all(future.done() for future in under_way.values()):
                context.engine.interrupt()
                wait(under_way.values(), INTERRUPTED_EVERY)
            raise
        pool.shutdown()
    return Taken({key: future.result() for key, future in under_way.items() if future.exception() is None})


def _ingested(
    context: Context, step: Step, columns: Schema, path: str, recorder: Recorder, ready: float
) -> dict[str, Any]:
    """What came of a step that could begin when it was *ready*."""
    with running("step") as stopwatch:
        try:
            source, table = step.subject.split(".", 1)
            engine = context.engine
            with engine.beside(), engine.step(step.subject, step.kind, **step.run_as) as metrics:
                changes = context.sources[source].changes(table, step.after, step.upto, columns)
                delta = ingest(engine, step.subject, changes, columns, path)
        except BaseException:
            recorder.ended(stopwatch.spans(), None)
            raise
        result = {**delta.noted(), **measured(step, metrics, resumed=False)}
        with spending("metrics"):
            profile = recorder.of_step(step, metrics, result, stopwatch)
    moments = {"ready": ready, "began": stopwatch.began, "ended": now()}
    return {**result, "profile": profile, "moments": moments, "seconds": moments["ended"] - moments["began"]}
