"""What Prometheus reads: counters of what was done, and how far views and sources are behind at the time it asks.

Names, units and types follow Prometheus' own advice; moments are told as Unix times, so that ages are for the asker to
compute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from strandline.catalog.moments import utc_now
from strandline.propagate.behind import Behind
from strandline.propagate.report import RefreshReport

SECONDS = (0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 120, 300, 600, 1_800, 3_600)


class Metrics:
    """The metrics of one watching process."""

    def __init__(self, clock: Callable[[], datetime] = utc_now) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self._standing = _Standing(clock)
        self.registry.register(self._standing)
        self.refreshes = self._counter("refreshes", "Refreshes, by how they ended.", "outcome")
        self.refresh_seconds = self._histogram("refresh_seconds", "How long refreshes took.")
        self.publication_lag = self._histogram(
            "publication_lag_seconds",
            "Age of the oldest change that a published state was the first to show; of views without a schedule.",
        )
        self.rows_in = self._counter("view_rows_in", "Changed rows that a view took in.", "view")
        self.rows_inserted = self._counter("view_rows_inserted", "Rows inserted into a view's table.", "view")
        self.rows_deleted = self._counter("view_rows_deleted", "Rows deleted from a view's table.", "view")
        self.moves = self._counter("view_refreshes", "Refreshes that moved a view.", "view", "strategy")
        self.failures = self._counter("failures", "What failed, by the code of the error.", "code")
        self.late = self._counter("late_states", "States published later than the bound on lag.")
        self.upkeep = self._counter("maintenance_runs", "Runs of upkeep, by how they ended.", "outcome")
        self.success = Gauge(
            "strandline_last_success_timestamp_seconds",
            "When a turn last ended with nothing wrong.",
            registry=self.registry,
        )

    def _counter(self, name: str, said: str, *labels: str) -> Counter:
        return Counter(f"strandline_{name}", said, labels, registry=self.registry)

    def _histogram(self, name: str, said: str) -> Histogram:
        return Histogram(f"strandline_{name}", said, buckets=SECONDS, registry=self.registry)

    def stand(self, found: Behind) -> None:
        """Where views and sources stand, until this is told again."""
        self._standing.found = found

    def fail(self, views: frozenset[str]) -> None:
        """Which views failed when they were last tried, until this is told again."""
        self._standing.failing = views

    def refreshed(self, report: RefreshReport) -> None:
        """What a refresh did to each view."""
        for name, view in report.views.items():
            if view.strategy != "none" and view.problem is None:
                self.moves.labels(name, view.strategy).inc()
                self.rows_in.labels(name).inc(view.rows_in)
                self.rows_inserted.labels(name).inc(view.rows_inserted)
                self.rows_deleted.labels(name).inc(view.rows_deleted)


class _Standing(Collector):
    """How far everything is behind: computed when it is asked for, so that lag grows while nothing is done."""

    def __init__(self, clock: Callable[[], datetime]) -> None:
        self.found: Behind | None = None
        self.failing: frozenset[str] = frozenset()
        self._clock = clock

    def collect(self) -> Iterable[Metric]:
        state = GaugeMetricFamily("strandline_state", "Number of the newest published state.")
        published = GaugeMetricFamily(
            "strandline_state_published_timestamp_seconds", "When the newest state was published."
        )
        lag = GaugeMetricFamily(
            "strandline_view_lag_seconds", "Age of the oldest change that a view does not show.", labels=["view"]
        )
        problem = GaugeMetricFamily(
            "strandline_view_blocked", "1 if a view keeps its last state because of a problem.", labels=["view"]
        )
        every = GaugeMetricFamily("strandline_view_schedule_seconds", "The interval of a schedule.", labels=["view"])
        source_lag = GaugeMetricFamily(
            "strandline_source_lag_seconds", "The largest lag of the views over a source.", labels=["source"]
        )
        up = GaugeMetricFamily("strandline_source_up", "1 if a source with a log answers.", labels=["source"])
        retained = GaugeMetricFamily(
            "strandline_source_retained_wal_bytes", "How much of its log a source keeps for us.", labels=["source"]
        )
        families = (state, published, lag, problem, every, source_lag, up, retained)
        if self.found is not None:
            self._fill(self.found, *families)
        return families

    def _fill(
        self,
        found: Behind,
        state: GaugeMetricFamily,
        published: GaugeMetricFamily,
        lag: GaugeMetricFamily,
        problem: GaugeMetricFamily,
        every: GaugeMetricFamily,
        source_lag: GaugeMetricFamily,
        up: GaugeMetricFamily,
        retained: GaugeMetricFamily,
    ) -> None:
        if found.state is not None and found.published_at is not None:
            state.add_metric([], found.state)
            published.add_metric([], found.published_at.timestamp())
        now = self._clock()
        over: dict[str, float] = {}
        for view in found.views:
            behind = 0.0 if view.since is None else max(0.0, (now - view.since).total_seconds())
            lag.add_metric([view.name], behind)
            problem.add_metric([view.name], view.problem is not None or view.name in self.failing)
            if view.schedule is not None:
                every.add_metric([view.name], view.schedule.seconds)
            over.update({name: max(behind, over.get(name, 0.0)) for name in view.sources})
        for name, behind in sorted(over.items()):
            source_lag.add_metric([name], behind)
        for source in found.sources:
            up.add_metric([source.name], source.problem is None)
            if source.retained_bytes is not None:
                retained.add_metric([source.name], source.retained_bytes)
