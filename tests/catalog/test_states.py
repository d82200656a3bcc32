"""Published states."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from strandline.catalog import Catalog, Lease, StateEntry, StateRecord
from strandline.errors import CatalogError
from tests.catalog.clock import START, SetClock

DAILY = StateEntry("daily", 1, 12, {"shop.orders": {"lsn": 9}})
WEEKLY = StateEntry("weekly", 2, 4, {"shop.orders": {"lsn": 5}}, "SOURCE_SCHEMA_CHANGED")


def test_before_the_first_publication_there_is_no_state(catalog: Catalog) -> None:
    assert catalog.states.newest() is None
    assert catalog.states.all() == ()
    assert catalog.states.as_of(START) is None


def test_publishing_makes_the_next_state_and_finishes_its_refresh(catalog: Catalog, lease: Lease) -> None:
    catalog.refreshes.begin("r1", None, [], lease)
    first = catalog.states.publish("r1", [DAILY, WEEKLY], lease)
    assert first == StateRecord(1, START, "r1", {"daily": DAILY, "weekly": WEEKLY})
    assert catalog.states.newest() == catalog.states.get(1) == first
    refresh = catalog.refreshes.get("r1")
    assert refresh is not None
    assert (refresh.status, refresh.state, refresh.finished_at) == ("done", 1, START)
    second = catalog.states.publish(None, [], lease)
    assert second == StateRecord(2, START, None, {})
    assert catalog.states.newest() == second
    assert catalog.states.all() == (second, first)
    assert catalog.states.all(1) == (second,)
    assert catalog.states.get(3) is None


def test_a_state_is_published_whole_or_not_at_all(catalog: Catalog, lease: Lease) -> None:
    catalog.refreshes.begin("r1", None, [("s1", "publish", None)], lease)
    with pytest.raises(CatalogError, match="daily is in it more than once") as raised:
        catalog.states.publish("r1", [WEEKLY, DAILY, DAILY], lease)
    assert raised.value.code == "STATE_INVALID"
    assert catalog.states.newest() is None
    assert catalog.states.referenced_versions(2) == ()
    unfinished = catalog.refreshes.unfinished()
    assert unfinished is not None
    assert (unfinished.id, unfinished.state) == ("r1", None)
    assert catalog.states.publish("r1", [WEEKLY, DAILY], lease).number == 1


def test_an_unknown_refresh_publishes_nothing(catalog: Catalog, lease: Lease) -> None:
    with pytest.raises(CatalogError) as raised:
        catalog.states.publish("r9", [DAILY], lease)
    assert raised.value.code == "REFRESH_UNKNOWN"
    assert catalog.states.newest() is None


def test_as_of_is_the_newest_state_published_by_then(catalog: Catalog, lease: Lease, clock: SetClock) -> None:
    for _ in range(3):
        catalog.states.publish(None, [DAILY], lease)
        clock.move(60)

    def number(seconds: float) -> int | None:
        found = catalog.states.as_of(START + timedelta(seconds=seconds))
        return found.number if found else None

    assert [number(at) for at in (-0.001, 0, 59.999, 60, 1000)] == [None, 1, 1, 2, 3]


def test_a_clock_that_is_set_back_does_not_hide_a_state(catalog: Catalog, lease: Lease, clock: SetClock) -> None:
    catalog.states.publish(None, [DAILY], lease)
    clock.move(-3600)
    later = catalog.states.publish(None, [WEEKLY], lease)
    assert later.published_at == START
    assert catalog.states.as_of(START) == later


def test_a_moment_needs_a_time_zone(catalog: Catalog) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        catalog.states.as_of(datetime(2024, 5, 1))


def test_the_versions_that_states_show_are_known(catalog: Catalog, lease: Lease) -> None:
    for version in (3, 1, 3, 20):
        catalog.states.publish(None, [StateEntry("daily", 1, version, {}), WEEKLY], lease)
    assert catalog.states.referenced_versions(1) == (1, 3, 20)
    assert catalog.states.referenced_versions(2) == (4,)
    assert catalog.states.referenced_versions(3) == ()
