"""The executor: carries out a plan, as many steps at a time as do not wait for each other, and publishes the state.

A step's outcome counts when its catalog row says so; the row is written last. A plan that crashed is carried on here
too: steps that are done are skipped, those that were running are recognised by their commits or done again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from queue import Queue
from threading import Event as Flag
from threading import Thread
from typing import Any

from strandline.catalog import Lease, NewVersion
from strandline.cost.model import FIXED
from strandline.ingest.dumped import DumpedSource
from strandline.integrate.fill import Filling
from strandline.propagate.context import Context
from strandline.propagate.faults import BACK_OFF, message, passing
from strandline.propagate.look_ahead import INTERRUPTED_EVERY
from strandline.propagate.measured import calibrate, measured
from strandline.propagate.plan import RefreshPlan, Step
from strandline.propagate.progress import Event, Watcher, nobody
from strandline.propagate.publish import new_entries, unpublished
from strandline.propagate.recorder import Recorder
from strandline.propagate.report import RefreshReport, ViewReport
from strandline.propagate.schedule import prerequisites
from strandline.propagate.steps import Steps
from strandline.propagate.storage_faults import told_of
from strandline.stopwatch import Stopwatch, now, running, spending
from strandline.store import layout


def execute(context: Context, plan: RefreshPlan, lease: Lease, watcher: Watcher = nobody) -> RefreshReport:
    """Carry out *plan*, which the catalog already knows, from wherever it stands."""
    with running("steps") as stopwatch, spending("own", "steps"):
        return _Run(context, plan, lease, watcher, Recorder(context, stopwatch, plan.nodes, plan.shared)).run()


@dataclass(frozen=True)
class _Outcome:
    """How a step ended: with a result, or an error."""

    step: Step
    seconds: float
    result: Mapping[str, Any]
    version: NewVersion | None = None
    error: BaseException | None = None


@dataclass(frozen=True)
class _Retry:
    """A step is about to be tried again."""

    step: Step
    why: str


class _Run:
    """One plan under way. Everything but the steps themselves happens in the thread that runs it."""

    def __init__(self, context: Context, plan: RefreshPlan, lease: Lease, watcher: Watcher, recorder: Recorder) -> None:
        self._context = context
        self._recorder = recorder
        self._watch = watcher
        self._plan = plan
        self._lease = lease
        self._started = time.monotonic()
        self._filling = Filling(context.catalog, context.engine, context.sources, context.keep_states)
        self._work = Steps(context, plan, lease, self._filling)
        self._failed: dict[str, str] = {}
        self._only_dumps = _only_dumps(context, plan)
        self._moved = self._was_held_back()
        self._ended: set[str] = set()
        self._happened: Queue[_Outcome | _Retry] = Queue()
        self._threads: dict[str, Thread] = {}
        self._stopping = Flag()
        self._reports = {
            n.name: ViewReport(n.strategy, n.reason, problem=str(n.reason) if n.blocked else None) for n in plan.nodes
        }

    def run(self) -> RefreshReport:
        with self._filling:
            try:
                self._steps()
            except BaseException:
                self._stop()
                raise
        if not any(step.kind == "publish" for step in self._plan.steps):
            self._finish()
        options = self._context.engine.storage_options
        layout.drop_deltas(self._context.root, self._plan.id, options)
        layout.drop_ahead(self._context.root, self._context.catalog.warehouse_id, options)
        if any(node.integrated is not None for node in self._plan.nodes):
            layout.drop_integrations(self._context.root, options)
        hidden = {n.name for n in self._plan.nodes if n.hidden}
        newest = self._context.catalog.states.newest()
        calibrate(self._context.catalog, FIXED)
        self._context.catalog.refreshes.profiled(self._plan.id, self._recorder.of_refresh())
        return RefreshReport(
            self._plan.id,
            newest.number if newest else None,
            {name: r for name, r in self._reports.items() if name not in hidden},
            {name: r for name, r in self._reports.items() if name in hidden},
            time.monotonic() - self._started,
        )

    def _was_held_back(self) -> bool:
        """Whether a view that can move now has a version that no state shows yet."""
        held = unpublished(self._context.catalog, self._context.vdag, self._context.groups)
        return any(node.name in held and not node.blocked for node in self._plan.nodes)

    # Which step is next

    def _steps(self) -> None:
        waits_for = prerequisites(self._plan, self._context.vdag)
        resumed = self._take_up_recorded()
        waiting = [step for step in self._plan.steps if step.id not in self._ended]
        coming = tuple((step.kind, step.subject) for step in waiting)
        self._watch(Event("planned", "", "", len(self._ended), len(self._plan.steps), steps=coming))
        most = self._context.parallel if self._context.engine.runs_beside else 1
        while waiting:
            ready = [step for step in waiting if waits_for[step.id] <= self._ended]
            for step in ready:
                if step.taken is None:
                    self._recorder.note("ready", step)
                if len(self._threads) < most or self._unable(step) is not None or step.kind == "publish":
                    waiting.remove(step)
                    self._begin(step, resumed=step.id in resumed)
            if self._threads:
                with spending("waiting"):
                    happened = self._happened.get()
                match happened:
                    case _Outcome() as outcome:
                        self._end(outcome)
                    case _Retry(step, why):
                        self._tell("retried", step, detail=why)

    def _take_up_recorded(self) -> set[str]:
        """Take up what the catalog says was done before a crash; the steps that were running then."""
        running = set()
        records = {record.id: record for record in self._context.catalog.refreshes.steps(self._plan.id)}
        for step in self._plan.steps:
            record = records[step.id]
            if record.status == "done":
                self._ended.add(step.id)
                self._take_up(step, dict(record.result))
            elif record.status in ("failed", "skipped"):
                self._ended.add(step.id)
                self._fail(step, record.error or "failed")
            elif record.status == "running":
                running.add(step.id)
        return running

    def _begin(self, step: Step, *, resumed: bool) -> None:
        cause = self._unable(step)
        if cause is not None:
            self._context.catalog.refreshes.step_skipped(step.id, cause, self._lease)
            told = step.subject in self._failed
            self._fail(step, cause)
            self._ended.add(step.id)
            self._tell("skipped", step, detail="" if told else cause)
            return
        self._tell("started", step)
        if step.taken is not None:
            self._done_before(step, step.taken)
            return
        self._recorder.note("began", step)
        if step.kind == "publish":
            began = time.monotonic()
            with spending("own", "publish"):
                self._publish()
            self._recorder.note("ended", step)
            self._ended.add(step.id)
            self._tell("done", step, time.monotonic() - began)
            return
        self._context.catalog.refreshes.step_started(step.id, self._lease)
        thread = Thread(target=self._carry_out, args=(step, resumed), name=f"strandline-{step.id}", daemon=True)
        self._threads[step.id] = thread
        thread.start()

    def _done_before(self, step: Step, taken: Any) -> None:
        """Write down how a step ended that was carried out before the plan was made, and when it began."""
        ago = timedelta(seconds=max(0.0, now() - taken["moments"]["began"]))
        self._context.catalog.refreshes.step_started(step.id, self._lease, ago)
        self._recorder.note_taken_in(step, taken["moments"])
        try:
            self._work.follow(step)
        except Exception as error:
            self._failing(step, error, taken["seconds"])
            return
        self._record(step, dict(taken), taken["seconds"], None)

    def _end(self, outcome: _Outcome) -> None:
        """Write down how a step ended."""
        step = outcome.step
        self._threads.pop(step.id).join()
        self._recorder.note("ended", step)
        if isinstance(outcome.error, Exception):
            self._failing(step, outcome.error, outcome.seconds)
            return
        if outcome.error is not None:
            raise outcome.error
        self._record(step, {**outcome.result, "seconds": outcome.seconds}, outcome.seconds, outcome.version)

    def _failing(self, step: Step, error: Exception, seconds: float) -> None:
        told = told_of(self._context, error)
        self._context.catalog.refreshes.step_failed(step.id, told, self._lease)
        self._fail(step, told)
        self._ended.add(step.id)
        self._tell("failed", step, seconds, told)

    def _record(self, step: Step, result: dict[str, Any], seconds: float, version: NewVersion | None) -> None:
        self._context.catalog.refreshes.step_done(step.id, result, seconds, self._lease, version)
        self._take_up(step, result)
        self._recorder.note("recorded", step)
        self._ended.add(step.id)
        self._tell("done", step, seconds, f"+{result.get('inserted', 0)} -{result.get('deleted', 0)} rows")

    def _stop(self) -> None:
        """End what is under way; the catalog goes on to say that it runs, so that it is taken up again later."""
        self._stopping.set()
        for thread in self._threads.values():
            while thread.is_alive():
                self._context.engine.interrupt()
                thread.join(INTERRUPTED_EVERY)

    def _tell(self, what: Any, step: Step, seconds: float = 0.0, detail: str = "") -> None:
        place = len(self._ended) - (0 if what in ("started", "retried") else 1)
        self._watch(Event(what, step.kind, step.subject, place, len(self._plan.steps), seconds, detail))

    # In a thread of its own

    def _carry_out(self, step: Step, resumed: bool) -> None:
        began = time.monotonic()
        with running("step") as stopwatch:
            try:
                with self._context.engine.beside():
                    result, version = self._attempted(step, resumed, stopwatch)
                self._happened.put(_Outcome(step, time.monotonic() - began, result, version))
            except BaseException as error:
                self._recorder.ended(stopwatch.spans(), None)
                self._happened.put(_Outcome(step, time.monotonic() - began, {}, error=error))

    def _attempted(self, step: Step, resumed: bool, stopwatch: Stopwatch) -> tuple[dict[str, Any], NewVersion | None]:
        """Do the step, again if what goes wrong may pass; an attempt is taken up like a crashed one."""
        failures: list[str] = []
        for pause in (*BACK_OFF, None):
            again = resumed or bool(failures)
            try:
                with self._context.engine.step(step.subject, step.kind, **step.run_as) as metrics:
                    result, version = self._work.carry_out(step, resumed=again)
                with spending("metrics"):
                    profile = self._recorder.of_step(step, metrics, result, stopwatch)
                result = {**result, **measured(step, metrics, resumed=again), "profile": profile}
                return ({**result, "failed_attempts": failures} if failures else result), version
            except Exception as error:
                if pause is None or not passing(error):
                    raise
                failures.append(message(error))
                self._happened.put(_Retry(step, failures[-1]))
                if self._stopping.wait(pause):
                    raise
        raise AssertionError("the last attempt returns or raises")

    # What failed, and what that means for others

    def _unable(self, step: Step) -> str | None:
        """Why a step cannot be done: what it builds on has failed."""
        if step.kind in ("capture", "publish"):
            return None
        if step.subject in self._failed:
            return self._failed[step.subject]
        if step.kind == "ingest":
            return None
        if step.kind == "share":
            shared = next(each for each in self._plan.shared if each.name == step.subject)
            return self._failed_input(shared.relations)
        node = self._context.vdag.nodes[step.subject]
        if node.copied:
            return self._failed.get(_captured(node.name.split(".", 1)[0]))
        return self._failed_input(node.inputs)

    def _failed_input(self, inputs: Iterable[str]) -> str | None:
        for name in inputs:
            if name in self._failed:
                cause = self._failed[name]
                return cause if cause.startswith("INPUT_FAILED") else f"INPUT_FAILED: {name}: {cause}"
        return None

    def _fail(self, step: Step, told: str) -> None:
        if step.kind == "share":
            # Its readers can do without: they are computed each for itself.
            return
        if step.kind == "capture":
            self._failed[_captured(step.subject)] = told
            return
        self._failed[step.subject] = told
        if step.subject in self._reports:
            self._reports[step.subject].problem = told

    def _take_up(self, step: Step, result: dict[str, Any]) -> None:
        self._work.take_up(step, result)
        self._recorder.made(step, result)
        if step.kind in ("install", "recompute"):
            self._moved = self._moved or result["install"] != "none" or not self._only_dumps
        report = self._reports.get(step.subject)
        if report is not None:
            report.seconds += result.get("seconds", 0.0)
            report.rows_in = result.get("rows_in", report.rows_in)
            report.rows_irrelevant = result.get("irrelevant", report.rows_irrelevant)
            report.how = result.get("how") or report.how
            report.retried += len(result.get("failed_attempts", ()))
            if step.kind in ("load", "install", "recompute"):
                report.install = result["install"]
                report.rows_inserted, report.rows_deleted = result["inserted"], result["deleted"]

    # The end

    def _publish(self) -> None:
        """One catalog transaction makes the versions reached a new state; failed nodes keep what they showed."""
        catalog = self._context.catalog
        if not self._moved:
            self._finish()
            return
        entries = new_entries(self._context, self._reports)
        catalog.states.publish(self._plan.id, entries, self._lease)

    def _finish(self) -> None:
        """The end of a plan that publishes nothing."""
        if self._failed:
            problems = "; ".join(f"{name}: {why}" for name, why in self._failed.items())
            self._context.catalog.refreshes.fail(self._plan.id, problems, self._lease)
        else:
            self._context.catalog.refreshes.finish(self._plan.id, self._lease)


def _only_dumps(context: Context, plan: RefreshPlan) -> bool:
    """Whether dumps are all that moves a plan: if they hold what is there already, no new state is needed."""
    moving = [n for n in plan.nodes if context.vdag.nodes[n.name].copied and n.strategy != "none"]
    dumped = [isinstance(context.sources.get(n.name.split(".", 1)[0]), DumpedSource) for n in moving]
    compared = all(n.strategy == "incremental" for n in moving)
    return bool(moving) and all(dumped) and compared and not any(step.kind == "ingest" for step in plan.steps)


def _captured(source: str) -> str:
    """The capture of a source among what failed; a view may have the source's name."""
    return f"capture {source}"
