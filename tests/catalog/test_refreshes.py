"""Refreshes and their steps."""

from __future__ import annotations

from datetime import timedelta

import pytest

from strandline.catalog import (
    Catalog,
    Json,
    Lease,
    NewVersion,
    RefreshRecord,
    StepRecord,
)
from strandline.errors import CatalogError
from tests.catalog.clock import START, SetClock

PLAN: Json = {"steps": [{"sql": "MERGE ..."}], "cost": 1.5}


def begin(catalog: Catalog, lease: Lease, id: str = "r1") -> RefreshRecord:
    steps = [(f"{id}/1", "install", "daily"), (f"{id}/2", "install", "weekly"), (f"{id}/3", "publish", None)]
    return catalog.refreshes.begin(id, PLAN, steps, lease)


def step(catalog: Catalog, id: str) -> StepRecord:
    return next(one for one in catalog.refreshes.steps(id.split("/")[0]) if one.id == id)


def code_of(raised: pytest.ExceptionInfo[CatalogError]) -> str:
    return raised.value.code


def test_a_refresh_begins_with_all_steps_pending(catalog: Catalog, lease: Lease) -> None:
    begun = begin(catalog, lease)
    assert begun == RefreshRecord("r1", PLAN, "running", START, None, None, None, lease.owner)
    assert catalog.refreshes.get("r1") == catalog.refreshes.unfinished() == begun
    assert catalog.refreshes.steps("r1") == (
        StepRecord("r1/1", "r1", 1, "install", "daily", "pending", None, None, None, {}, None),
        StepRecord("r1/2", "r1", 2, "install", "weekly", "pending", None, None, None, {}, None),
        StepRecord("r1/3", "r1", 3, "publish", None, "pending", None, None, None, {}, None),
    )


def test_a_second_refresh_waits_until_the_first_is_finished(catalog: Catalog, lease: Lease) -> None:
    begin(catalog, lease)
    with pytest.raises(CatalogError, match="refresh r1") as raised:
        begin(catalog, lease, "r2")
    assert code_of(raised) == "REFRESH_UNFINISHED"
    catalog.refreshes.abandon("r1", lease)
    begin(catalog, lease, "r2")


def test_ids_of_refreshes_and_steps_are_used_once(catalog: Catalog, lease: Lease) -> None:
    begin(catalog, lease)
    catalog.refreshes.abandon("r1", lease)
    with pytest.raises(CatalogError) as raised:
        begin(catalog, lease)
    assert code_of(raised) == "REFRESH_EXISTS"
    with pytest.raises(CatalogError, match="r1/1") as raised:
        catalog.refreshes.begin("r2", PLAN, [("r1/1", "install", None)], lease)
    assert code_of(raised) == "STEP_EXISTS"
    with pytest.raises(CatalogError, match="r2/1") as raised:
        catalog.refreshes.begin("r2", PLAN, [("r2/1", "a", None), ("r2/1", "b", None)], lease)
    assert code_of(raised) == "STEP_EXISTS"
    assert catalog.refreshes.get("r2") is None


def test_what_steps_gave_and_took_is_told_newest_first(catalog: Catalog, lease: Lease) -> None:
    for refresh in ("r1", "r2"):
        begin(catalog, lease, refresh)
        for number in (1, 2):
            catalog.refreshes.step_started(f"{refresh}/{number}", lease)
        catalog.refreshes.step_done(f"{refresh}/1", {"rows": refresh}, 0.5, lease)
        catalog.refreshes.step_failed(f"{refresh}/2", "gone", lease)
        catalog.refreshes.finish(refresh, lease)
    assert catalog.refreshes.measured(10) == (({"rows": "r2"}, 0.5), ({"rows": "r1"}, 0.5))
    assert catalog.refreshes.measured(1) == (({"rows": "r2"}, 0.5),)


def test_a_finished_step_and_its_version_are_recorded_together(catalog: Catalog, lease: Lease, clock: SetClock) -> None:
    begin(catalog, lease)
    catalog.refreshes.step_started("r1/1", lease)
    clock.move(2)
    version = NewVersion(7, 12, {"shop.orders": 3}, {"shop.orders": {"lsn": 9}})
    catalog.refreshes.step_done("r1/1", {"rows": 5}, 1.75, lease, version)
    assert step(catalog, "r1/1") == StepRecord(
        "r1/1",
        "r1",
        1,
        "install",
        "daily",
        "done",
        START,
        START + timedelta(seconds=2),
        1.75,
        {"rows": 5},
        None,
    )
    baseline = catalog.versions.baseline(7)
    assert baseline is not None
    assert (baseline.version, baseline.step_id, baseline.positions) == (
        12,
        "r1/1",
        {"shop.orders": {"lsn": 9}},
    )


def test_a_version_that_cannot_be_recorded_leaves_its_step_running(catalog: Catalog, lease: Lease) -> None:
    begin(catalog, lease)
    catalog.versions.record(7, 11, {}, {}, "r1/1")
    catalog.refreshes.step_started("r1/1", lease)
    with pytest.raises(CatalogError) as raised:
        catalog.refreshes.step_done("r1/1", {}, 1.0, lease, NewVersion(7, 12, {}, {}))
    assert code_of(raised) == "VERSION_CONFLICT"
    assert step(catalog, "r1/1").status == "running"


def test_reporting_a_finished_step_again_changes_nothing(catalog: Catalog, lease: Lease) -> None:
    begin(catalog, lease)
    version = NewVersion(7, 12, {}, {})
    catalog.refreshes.step_done("r1/1", {"rows": 5}, 1.0, lease, version)
    done = step(catalog, "r1/1")
    catalog.refreshes.step_done("r1/1", {"rows": 6}, 2.0, lease, version)
    assert step(catalog, "r1/1") == done
    assert len(catalog.versions.all(7)) == 1


def test_a_finished_step_does_not_start_or_fail_afterwards(catalog: Catalog, lease: Lease) -> None:
    begin(catalog, lease)
    catalog.refreshes.step_done("r1/1", {}, 1.0, lease)
    with pytest.raises(CatalogError) as raised:
        catalog.refreshes.step_started("r1/1", lease)
    assert code_of(raised) == "STEP_DONE"
    with pytest.raises(CatalogError) as raised:
        catalog.refreshes.step_failed("r1/1", "late", lease)
    assert code_of(raised) == "STEP_DONE"


def test_failed_and_skipped_steps_say_why(catalog: Catalog, lease: Lease, clock: SetClock) -> None:
    begin(catalog, lease)
    catalog.refreshes.step_started("r1/1", lease)
    clock.move(3)
    catalog.refreshes.step_failed("r1/1", "division by zero", lease)
    catalog.refreshes.step_skipped("r1/2", "its input daily failed", lease)
    first, second, third = catalog.refreshes.steps("r1")
    assert (first.status, first.error, first.seconds) == ("failed", "division by zero", 3.0)
    assert (second.status, second.error, second.seconds) == ("skipped", "its input daily failed", None)
    assert third.status == "pending"


def test_a_step_may_be_done_over(catalog: Catalog, lease: Lease, clock: SetClock) -> None:
    begin(catalog, lease)
    catalog.refreshes.step_started("r1/1", lease)
    catalog.refreshes.step_failed("r1/1", "connection lost", lease)
    clock.move(10)
    catalog.refreshes.step_started("r1/1", lease)
    again = step(catalog, "r1/1")
    assert (again.status, again.started_at, again.finished_at, again.error) == (
        "running",
        clock.now,
        None,
        None,
    )


def test_a_refresh_that_ends_badly_has_no_step_under_way(catalog: Catalog, lease: Lease) -> None:
    begin(catalog, lease)
    catalog.refreshes.step_done("r1/1", {}, 1.0, lease)
    catalog.refreshes.step_started("r1/2", lease)
    catalog.refreshes.fail("r1", "disk full", lease)
    ended = catalog.refreshes.get("r1")
    assert ended is not None
    assert (ended.status, ended.error, ended.finished_at) == ("failed", "disk full", START)
    assert [one.status for one in catalog.refreshes.steps("r1")] == ["done", "skipped", "skipped"]
    assert catalog.refreshes.unfinished() is None


def test_a_finished_refresh_does_not_go_on(catalog: Catalog, lease: Lease) -> None:
    begin(catalog, lease)
    catalog.refreshes.abandon("r1", lease)
    for attempt in (
        lambda: catalog.refreshes.step_started("r1/1", lease),
        lambda: catalog.refreshes.step_done("r1/1", {}, 1.0, lease, NewVersion(7, 1, {}, {})),
        lambda: catalog.refreshes.fail("r1", "late", lease),
        lambda: catalog.states.publish("r1", [], lease),
    ):
        with pytest.raises(CatalogError, match="abandoned") as raised:
            attempt()
        assert code_of(raised) == "REFRESH_FINISHED"
    assert catalog.versions.baseline(7) is None
    assert catalog.states.newest() is None


def test_unknown_refreshes_and_steps_are_named(catalog: Catalog, lease: Lease) -> None:
    begin(catalog, lease)
    with pytest.raises(CatalogError, match="there are the refreshes r1") as raised:
        catalog.refreshes.fail("r9", "?", lease)
    assert code_of(raised) == "REFRESH_UNKNOWN"
    with pytest.raises(CatalogError, match="there are the steps r1/1, r1/2, r1/3") as raised:
        catalog.refreshes.step_started("r9/1", lease)
    assert code_of(raised) == "STEP_UNKNOWN"


def test_recent_refreshes_and_a_views_history_come_newest_first(
    catalog: Catalog, lease: Lease, clock: SetClock
) -> None:
    for id in ("r1", "r2", "r3"):
        begin(catalog, lease, id)
        catalog.refreshes.abandon(id, lease)
        # Order is by what happened, not by the clock.
        clock.move(-60)
    assert [one.id for one in catalog.refreshes.recent(2)] == ["r3", "r2"]
    history = catalog.refreshes.history("daily", 2)
    assert [(one.step.id, one.refresh.id, one.refresh.status) for one in history] == [
        ("r3/1", "r3", "abandoned"),
        ("r2/1", "r2", "abandoned"),
    ]


def test_what_was_done_before_it_was_written_down_began_then(catalog: Catalog, lease: Lease, clock: SetClock) -> None:
    steps = [("r1/1", "ingest", "shop.orders"), ("r1/2", "ingest", "shop.lines")]
    begun = catalog.refreshes.begin("r1", PLAN, steps, lease, timedelta(seconds=8))
    assert begun.started_at == START - timedelta(seconds=8)
    clock.move(1)
    catalog.refreshes.step_started("r1/1", lease, timedelta(seconds=4))
    assert step(catalog, "r1/1").started_at == START - timedelta(seconds=3)
    clock.move(-10)
    catalog.refreshes.step_started("r1/2", lease, timedelta(seconds=4))
    assert step(catalog, "r1/2").started_at == begun.started_at, "no step begins before its refresh"
