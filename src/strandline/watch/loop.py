"""The loop: it looks at the sources, has what is due refreshed, and tells how that went.

Whatever fails is tried again: a source or a catalog that restarts, another process that holds the lock. Only a Spark
that is gone ends the loop, because a new one needs a new process.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TypeVar

from strandline.catalog.moments import utc_now
from strandline.errors import EngineError, StrandlineError
from strandline.propagate.behind import Behind
from strandline.propagate.progress import Event
from strandline.propagate.report import RefreshReport
from strandline.warehouse import Warehouse
from strandline.watch.health import Health
from strandline.watch.log import Log
from strandline.watch.metrics import Metrics
from strandline.watch.schedule import Pace, Scheduler, Seen, intervals
from strandline.watch.stopping import Stop, Stopped

T = TypeVar("T")

_CODE = re.compile(r"\[?([A-Z][A-Z0-9_]+)\b")


@dataclass
class Watch:
    """One warehouse being watched: the views *names* and what they read, or all."""

    warehouse: Warehouse
    names: Sequence[str]
    pace: Pace
    stop: Stop
    log: Log
    metrics: Metrics = field(default_factory=Metrics)
    health: Health = field(default_factory=Health)
    clock: Callable[[], float] = time.monotonic
    now: Callable[[], datetime] = utc_now

    def __post_init__(self) -> None:
        self._scheduler = Scheduler(self.pace)
        self._troubles: dict[str, float] = {}
        self._looks_failed = 0

    def run(self) -> None:
        """Turn until it is time to stop."""
        cut = ""
        try:
            while self.stop.requested is None:
                began = self.clock()
                pause = self.turn()
                self.stop.wait(began + pause - self.clock())
        except Stopped:
            cut = "; the refresh under way is finished by the next one"
        self.log.tell("stopping", reason=f"{self.stop.requested}{cut}")

    def turn(self) -> float:
        """Look, and do what is due; seconds from its beginning to that of the next turn."""
        self.health.turned()
        found = self._tried("look", self._look)
        if found is None:
            self._looks_failed += 1
            return min(self.pace.after_failures(self._looks_failed), self.pace.max_lag)
        self._looks_failed = 0
        due = self._scheduler.due(self.clock())
        if due:
            self._refresh(due, found)
        ahead = [source.name for source in found.sources if source.ahead]
        capture = self._scheduler.capture_due(self.clock(), ahead)
        if capture and not due:
            self._tried("capture", self._capture)
        age = None if found.maintained_at is None else (self.now() - found.maintained_at).total_seconds()
        upkeep = self.stop.requested is None and self._scheduler.upkeep_due(self.clock(), age)
        if upkeep:
            self._keep_up()
        failing = self._scheduler.failing
        self.metrics.fail(failing)
        wanted = {"refresh": bool(due or failing), "capture": capture, "maintain": self._scheduler.upkeep_wanted(age)}
        self._forget({**wanted, "lock": bool(due or capture or upkeep)})
        if not self._troubles and not failing:
            self.metrics.success.set(self.now().timestamp())
        return self.pace.poll

    # Looking

    def _look(self) -> Behind:
        found = self.warehouse.behind(*self.names)
        self.metrics.stand(found)
        for source in found.sources:
            self._trouble(f"source {source.name}", source.problem)
        for view in found.views:
            self._trouble(f"view {view.name}", None if view.problem is None else str(view.problem))
        self._scheduler.look(self.clock(), self._seen(found))
        return found

    def _seen(self, found: Behind) -> dict[str, Seen]:
        own = {view.name: None if view.schedule is None else float(view.schedule.seconds) for view in found.views}
        every = intervals(own, {view.name: sorted(view.over) for view in found.views})
        seen = {}
        for view in found.views:
            waiting = None if view.since is None else (self.now() - view.since).total_seconds()
            idle = None if view.refreshed_at is None else (self.now() - view.refreshed_at).total_seconds()
            changed, blocked = view.changed or found.unfinished, view.problem is not None
            seen[view.name] = Seen(every[view.name], changed, waiting, blocked, idle)
        wanted = {name.lower() for name in self.names}
        seen |= {name: Seen(changed=True) for name in found.pending if not wanted or name.lower() in wanted}
        return seen

    # Doing

    def _refresh(self, due: Sequence[str], found: Behind) -> None:
        self._check_engine()
        self.health.works()
        began, since = self.clock(), self._since(due, found)
        report = self._tried("refresh", lambda: self.warehouse.refresh(*due, watcher=self._between_steps))
        if report is None:
            if "lock" not in self._troubles:
                self._scheduler.refreshed(began, self.clock(), due, due)
            return
        failed = [name for name in due if name in report.views and report.views[name].problem is not None]
        sources = {source for view in found.views if view.name in due for source in view.sources}
        self._scheduler.refreshed(began, self.clock(), due, failed, sources)
        self._tell(report, found, since, due)
        if failed:
            self._check_engine()

    def _since(self, due: Sequence[str], found: Behind) -> dict[str, datetime]:
        """When the oldest change that each view is about to show was committed, or else noticed."""
        now = self.now()
        waited = {name: self._scheduler.waited(self.clock(), name) for name in due}
        noticed = {name: now - timedelta(seconds=seconds) for name, seconds in waited.items() if seconds is not None}
        return {**noticed, **{view.name: view.since for view in found.views if view.since is not None}}

    def _tell(self, report: RefreshReport, found: Behind, since: dict[str, datetime], due: Collection[str]) -> None:
        now = self.now()
        lags = {name: (now - began).total_seconds() for name, began in since.items()}
        for name, view in report.views.items():
            if view.problem is not None:
                code = _CODE.match(view.problem)
                self.metrics.failures.labels(code[1] if code else "STEP_FAILED").inc()
                retry = self._scheduler.retry_in(self.clock(), name)
                self.log.tell("failed", view=name, code=code[1] if code else None, reason=view.problem, retry_in=retry)
            elif view.strategy != "none":
                self.log.tell(
                    "refreshed",
                    view=name,
                    state=report.state,
                    strategy=view.strategy,
                    rows_in=view.rows_in,
                    rows_inserted=view.rows_inserted,
                    rows_deleted=view.rows_deleted,
                    seconds=view.seconds,
                    lag=lags.get(name),
                    reason=view.reason.code,
                )
        self.metrics.refreshed(report)
        self.metrics.stand(_caught_up(found, report, now))
        self.metrics.refresh_seconds.observe(report.seconds)
        published = report.state != found.state
        outcome = ("published" if published else "unchanged") if report.ok else "partial" if published else "failed"
        self.metrics.refreshes.labels(outcome).inc()
        scheduled = {view.name for view in found.views if view.schedule is not None}
        moved = [name for name, view in report.views.items() if view.strategy != "none" and view.problem is None]
        lag = max((lags[name] for name in moved if name in lags and name not in scheduled), default=None)
        self.log.tell(
            outcome, state=report.state, views=list(due), seconds=report.seconds, lag=lag, resumed=report.resumed
        )
        if published and lag is not None:
            self.metrics.publication_lag.observe(lag)
            if lag > self.pace.max_lag:
                self.metrics.late.inc()
                self.log.tell("late", state=report.state, lag=lag, reason=f"more than {self.pace.max_lag:g} s")

    def _capture(self) -> bool:
        taken = self.warehouse.capture()
        self._scheduler.captured()
        transactions = sum(captured.transactions for captured in taken.values())
        if transactions:
            self.log.tell("captured", sources=sorted(taken), transactions=transactions)
        return True

    def _keep_up(self) -> None:
        done = self._tried("maintain", self._maintain)
        if "lock" not in self._troubles:
            self._scheduler.upkeep_done(self.clock(), ok=done is not None)

    def _maintain(self) -> bool:
        self.health.works()
        report = self.warehouse.maintain(watcher=self._between_steps)
        self.metrics.upkeep.labels("done" if report.ok else "failed").inc()
        problems = "; ".join(f"{name}: {why}" for name, why in report.problems.items())
        self.log.tell("maintained", seconds=report.seconds, bytes_freed=report.bytes_freed, reason=problems or None)
        return True

    def _between_steps(self, event: Event) -> None:
        """A step begins or has ended: the place to stop. What is left to be published is published."""
        if self.stop.signalled and event.what == "started" and event.step != "publish":
            raise Stopped

    # Troubles

    def _tried(self, what: str, action: Callable[[], T]) -> T | None:
        """What *action* gives; None if it fails, or has to wait for another process."""
        try:
            found = action()
        except Exception as error:
            code = error.code if isinstance(error, StrandlineError) else "UNEXPECTED"
            said = error.message if isinstance(error, StrandlineError) else f"{type(error).__name__}: {error}"[:1000]
            if code == "WAREHOUSE_BUSY":
                self._trouble("lock", said)
                return None
            self.metrics.failures.labels(code).inc()
            if what == "refresh":
                self.metrics.refreshes.labels("failed").inc()
            if what != "look":
                self._trouble("lock", None)
            if what in ("look", "refresh"):
                self.health.failed(what, code)
            self._trouble(what, f"{code}: {said}")
            self._check_engine()
            return None
        self.health.succeeded(what)
        self._trouble(what, None)
        if what != "look":
            self._trouble("lock", None)
        return found

    def _trouble(self, what: str, why: str | None) -> None:
        """Tell when something begins to be wrong, and when it is over; not again in between."""
        if why is None:
            since = self._troubles.pop(what, None)
            if since is not None:
                self.log.tell("recovered", what=what, seconds=self.clock() - since)
        elif what not in self._troubles:
            self._troubles[what] = self.clock()
            self.log.tell("waiting" if what == "lock" else "trouble", what=what, reason=why)

    def _forget(self, wanted: Mapping[str, bool]) -> None:
        """What is not wanted any more, as when another process did it, is no trouble."""
        for what in (what for what, still in wanted.items() if not still):
            self.health.succeeded(what)
            self._trouble(what, None)

    def _check_engine(self) -> None:
        if self.warehouse.engine_lost:
            raise EngineError(
                "SPARK_LOST",
                "the Spark process that this command had started has ended, and a new one needs a new process; "
                "start the command again, or have a supervisor do so.",
            )


def _caught_up(found: Behind, report: RefreshReport, now: datetime) -> Behind:
    """What a look found, after a refresh: until the next one tells more."""
    done = {name for name, view in report.views.items() if view.problem is None}
    views = tuple(replace(view, changed=False, since=None) if view.name in done else view for view in found.views)
    at = found.published_at if report.state == found.state else now
    return replace(found, state=report.state, published_at=at, views=views)
