"""Which views are due, by a clock that the tests turn: no warehouse, no waiting."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.watch.schedule import IDLE_SECONDS, RESERVE, SAFETY, Pace, Scheduler, Seen, intervals

PACE = Pace(poll=5, max_lag=30, longest_wait=60)
CHANGED = Seen(changed=True)
FRESH = Seen()


def test_after_a_quiet_time_changes_are_taken_in_at_once() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"a": FRESH, "b": FRESH})
    assert scheduler.due(0) == []
    scheduler.look(5, {"a": CHANGED, "b": FRESH})
    assert scheduler.due(5) == ["a"]


def test_under_steady_writes_changes_wait_for_each_other_within_the_bound() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"a": CHANGED, "b": FRESH})
    scheduler.refreshed(0, 4, ["a"], [])
    assert scheduler.spacing == (1 - RESERVE) * 30 - 5 - SAFETY * 4
    scheduler.look(5, {"a": CHANGED, "b": CHANGED})
    assert scheduler.due(5) == scheduler.due(12) == []
    assert scheduler.due(13) == ["a", "b"]


@settings(max_examples=200)
@given(
    st.floats(0.5, 10),
    st.floats(20, 120),
    st.lists(st.floats(0.8, 1.0), min_size=3, max_size=30),
    st.floats(0.1, 1),
)
def test_no_change_is_published_later_than_the_bound_says(
    poll: float, max_lag: float, lengths: list[float], load: float
) -> None:
    """Writes come all the time; a refresh takes in what is there when it begins, and takes up to its usual length."""
    pace = Pace(poll, max_lag)
    usual = load * (max_lag - poll) / (1 + SAFETY)
    scheduler = Scheduler(pace)
    now, oldest, published = 0.0, 0.0, []
    scheduler.look(now, {"v": CHANGED})
    for length in lengths:
        while scheduler.due(now) == []:
            now += poll
            scheduler.look(now, {"v": Seen(changed=True, waiting=now - oldest)})
        began, now = now, now + usual * length
        published.append(now - oldest)
        oldest = began
        scheduler.refreshed(began, now, ["v"], [])
        scheduler.look(now, {"v": CHANGED})
    # Before the first refresh nobody knows how long one takes.
    assert max(published) <= max_lag


def test_a_refresh_that_takes_too_long_is_followed_by_the_next_at_once() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"a": CHANGED})
    scheduler.refreshed(0, 40, ["a"], [])
    scheduler.look(40, {"a": CHANGED})
    assert scheduler.spacing == 0 and scheduler.due(40) == ["a"]


def test_one_slow_refresh_is_forgotten_by_and_by() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"a": CHANGED})
    scheduler.refreshed(0, 100, ["a"], [])
    for turn in range(1, 20):
        scheduler.refreshed(turn * 1000, turn * 1000 + 2, ["a"], [])
    assert scheduler.spacing == pytest.approx((1 - RESERVE) * 30 - 5 - SAFETY * 2, abs=0.5)


def test_a_schedule_is_kept_by_its_interval_and_not_by_changes() -> None:
    scheduler = Scheduler(PACE)
    hourly = Seen(every=3600, changed=True, idle=600)
    scheduler.look(0, {"h": hourly})
    assert scheduler.due(0) == scheduler.due(2999) == []
    assert scheduler.due(3000) == ["h"]
    scheduler.refreshed(3001, 3010, ["h"], [])
    scheduler.look(3011, {"h": hourly})
    assert scheduler.due(6599) == [] and scheduler.due(6600) == ["h"]


def test_a_view_that_was_never_filled_is_due_at_once() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(7, {"h": Seen(every=3600)})
    assert scheduler.due(7) == ["h"]


def test_intervals_that_were_missed_are_not_made_up_for() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"m": Seen(every=60, idle=0)})
    scheduler.refreshed(600, 601, ["m"], [])
    assert scheduler.due(659) == [] and scheduler.due(660) == ["m"]


def test_another_schedule_counts_from_the_last_refresh() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"v": Seen(every=3600, idle=0)})
    scheduler.look(100, {"v": Seen(every=60, idle=100)})
    assert scheduler.due(100) == ["v"]


def test_what_is_due_together_is_refreshed_together() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"a": CHANGED, "h": Seen(every=20, idle=0), "k": Seen(every=20, idle=0), "b": FRESH})
    scheduler.refreshed(0, 1, ["a"], [])
    scheduler.look(20, {"a": CHANGED, "h": Seen(every=20, idle=0), "k": Seen(every=20, idle=0), "b": FRESH})
    assert scheduler.due(20) == ["a", "h", "k"]


def test_a_view_that_failed_waits_longer_each_time_and_not_for_ever() -> None:
    scheduler = Scheduler(PACE)
    now, waits = 0.0, []
    for _ in range(7):
        scheduler.look(now, {"a": CHANGED, "b": CHANGED})
        scheduler.refreshed(now, now, ["a", "b"], ["a"])
        waits.append(scheduler.retry_in(now, "a"))
        now += waits[-1]
    assert waits == [5, 10, 20, 40, 60, 60, 60]
    assert scheduler.retry_in(now, "b") == 0
    scheduler.look(now, {"a": CHANGED})
    assert "a" in scheduler.due(now + 60)
    scheduler.refreshed(now, now, ["a"], [])
    scheduler.refreshed(now, now, ["a"], ["a"])
    assert scheduler.retry_in(now, "a") == 5


def test_a_scheduled_view_that_failed_is_tried_before_its_next_time() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"h": Seen(every=3600)})
    scheduler.refreshed(0, 1, ["h"], ["h"])
    assert scheduler.due(5) == [] and scheduler.due(6) == ["h"]


def test_a_view_whose_source_is_down_is_left_alone_until_it_is_back() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"a": Seen(changed=True, blocked=True), "h": Seen(every=60, blocked=True)})
    assert scheduler.due(1000) == []
    scheduler.look(1001, {"a": CHANGED, "h": Seen(every=60)})
    assert scheduler.due(1001) == ["a", "h"]


def test_views_that_are_gone_are_forgotten() -> None:
    scheduler = Scheduler(PACE)
    for number in range(1000):
        scheduler.look(number, {f"v{number}": CHANGED})
        scheduler.refreshed(number, number, [f"v{number}"], [f"v{number}"])
    scheduler.look(1000, {"last": CHANGED})
    assert list(scheduler._views) == ["last"]


def test_a_log_that_goes_on_without_us_is_taken_in_once_a_minute() -> None:
    scheduler = Scheduler(PACE)
    assert not scheduler.capture_due(0, ["shop"])
    assert not scheduler.capture_due(IDLE_SECONDS - 1, ["shop"])
    assert scheduler.capture_due(IDLE_SECONDS, ["shop"])
    scheduler.captured()
    assert not scheduler.capture_due(IDLE_SECONDS + 1, ["shop"])
    scheduler.refreshed(100, 101, ["a"], [], ["shop"])
    assert not scheduler.capture_due(159, ["shop"]) and scheduler.capture_due(160, ["shop"])
    assert not scheduler.capture_due(500, [])


def test_upkeep_is_done_by_its_own_interval_whoever_did_it_last() -> None:
    day = 86_400.0
    scheduler = Scheduler(PACE)
    assert scheduler.upkeep_due(0, None)
    scheduler.upkeep_done(10, ok=True)
    assert not scheduler.upkeep_due(day, day - 10) and scheduler.upkeep_due(day + 10, day)
    assert not scheduler.upkeep_due(day + 10, 5)
    scheduler.upkeep_done(day + 10, ok=False)
    assert not scheduler.upkeep_due(day + 3_609, 2 * day) and scheduler.upkeep_due(day + 3_610, 2 * day)
    later = Scheduler(PACE)
    assert not later.upkeep_due(0, day - 100) and later.upkeep_due(100, day)
    assert not Scheduler(Pace(maintain_every=None)).upkeep_due(1e9, None)


def test_a_failed_view_that_has_nothing_to_take_in_any_more_does_not_fail() -> None:
    scheduler = Scheduler(PACE)
    scheduler.look(0, {"a": CHANGED, "b": Seen(every=60)})
    scheduler.refreshed(0, 1, ["a", "b"], ["a", "b"])
    assert scheduler.failing == {"a", "b"}
    scheduler.look(5, {"a": FRESH, "b": Seen(every=60)})
    assert scheduler.failing == {"b"}
    scheduler.look(6, {"a": CHANGED, "b": Seen(every=60)})
    assert scheduler.due(40) == ["a", "b"]
    scheduler.refreshed(40, 41, ["a", "b"], [])
    assert scheduler.failing == set()


def test_a_view_over_scheduled_ones_takes_on_the_shortest_schedule() -> None:
    own = {"hourly": 3600.0, "daily": 86_400.0, "over": None, "own": 60.0, "free": None}
    over = {"hourly": (), "daily": (), "over": ("hourly", "daily"), "own": ("hourly",), "free": ()}
    assert intervals(own, over) == {**own, "over": 3600.0}
