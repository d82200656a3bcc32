"""What the small server answers."""

from __future__ import annotations

import urllib.error
import urllib.request
from datetime import UTC, datetime, timedelta

import pytest
from prometheus_client.parser import text_string_to_metric_families

from strandline import StrandlineError
from strandline.propagate.behind import Behind, SourceBehind, ViewBehind
from strandline.reasons import Reason
from strandline.sql.schedule import Schedule
from strandline.watch.health import FAILING_SECONDS, SILENT_SECONDS, Health
from strandline.watch.metrics import Metrics
from strandline.watch.server import serving

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


class Clock:
    """A clock that stands still until it is turned."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def asked(port: int, path: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def test_health_is_lost_when_all_fails_for_long_or_nothing_moves() -> None:
    clock = Clock()
    health = Health(clock)
    with serving("127.0.0.1", 0, Metrics().registry, health) as port:
        assert asked(port, "/healthz") == (200, "ok\n")
        health.failed("refresh", "SOURCE_FAILED")
        clock.at = FAILING_SECONDS + 1
        health.turned()
        health.failed("refresh", "CATALOG_BUSY")
        assert asked(port, "/healthz") == (503, "refresh fails for 301 s: CATALOG_BUSY\n")
        health.succeeded("refresh")
        assert asked(port, "/healthz")[0] == 200
        clock.at += SILENT_SECONDS + 1
        assert asked(port, "/healthz") == (503, "no turn for 301 s\n")
        health.works()
        assert asked(port, "/healthz")[0] == 200
        assert asked(port, "/")[0] == 404


def test_a_port_that_is_taken_is_told() -> None:
    with (
        serving("127.0.0.1", 0, Metrics().registry, Health()) as port,
        pytest.raises(StrandlineError, match="METRICS_PORT"),
        serving("127.0.0.1", port, Metrics().registry, Health()),
    ):
        pass


def test_lag_grows_while_nothing_is_done_and_views_that_are_gone_are_not_told_of() -> None:
    now = NOON
    metrics = Metrics(lambda: now)
    late = ViewBehind("late", None, frozenset(), frozenset({"shop"}), True, NOON - timedelta(seconds=7), None, None)
    daily = Schedule(1, "DAY")
    problem = Reason("SOURCE_UNREACHABLE")
    stuck = ViewBehind("stuck", daily, frozenset(), frozenset({"shop", "lake"}), False, None, problem, None)
    source = SourceBehind("shop", True, 4096, None)
    metrics.stand(Behind(3, NOON, (late, stuck), (source,), (), False, None))
    now += timedelta(seconds=5)
    with serving("127.0.0.1", 0, metrics.registry, Health()) as port:
        found = samples(port)
        assert found["strandline_view_lag_seconds", "late"] == 12
        assert found["strandline_view_lag_seconds", "stuck"] == 0
        assert found["strandline_source_lag_seconds", "shop"] == 12
        assert found["strandline_source_lag_seconds", "lake"] == 0
        assert found["strandline_source_retained_wal_bytes", "shop"] == 4096
        assert found["strandline_view_blocked", "stuck"] == 1
        assert found["strandline_view_schedule_seconds", "stuck"] == 86_400
        assert found["strandline_state",] == 3
        assert found["strandline_state_published_timestamp_seconds",] == NOON.timestamp()
        assert found["strandline_view_blocked", "late"] == 0
        metrics.fail(frozenset({"late"}))
        assert samples(port)["strandline_view_blocked", "late"] == 1
        metrics.stand(Behind(4, NOON, (stuck,), (), (), False, None))
        assert ("strandline_view_lag_seconds", "late") not in samples(port)


def samples(port: int) -> dict[tuple[str, ...], float]:
    status, text = asked(port, "/metrics")
    assert status == 200
    families = text_string_to_metric_families(text)
    return {(s.name, *s.labels.values()): s.value for family in families for s in family.samples}
