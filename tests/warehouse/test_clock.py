"""A clock that jumps: an hour back, a year ahead and back again. Nothing is ordered by it. About 10 seconds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from strandline import Warehouse
from strandline.catalog import Catalog
from strandline.engine.session import Engine
from strandline.project.folder import Project
from tests.catalog.clock import SetClock
from tests.conftest import bag, rows_shown
from tests.warehouse.shop import Shop, assert_verified

pytestmark = pytest.mark.spark

HOUR = 3600
YEAR = 365 * 24 * HOUR


@pytest.fixture
def clock() -> SetClock:
    clock = SetClock()
    clock.now = datetime.now(UTC)
    return clock


@pytest.fixture
def warehouse(tmp_path: Path, engine: Engine, shop: Shop, clock: SetClock) -> Iterator[Warehouse]:
    project = Project.create(tmp_path / "project")
    with Warehouse(project, Engine(engine.spark), Catalog.open(project.catalog_url, clock=clock)) as warehouse:
        shop.declare(warehouse)
        yield warehouse


def test_states_stay_in_order_and_readable_whatever_the_clock_does(
    warehouse: Warehouse, shop: Shop, clock: SetClock
) -> None:
    warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT c_id, count(*) AS n FROM shop.orders GROUP BY c_id")
    start = clock.now
    shown = {1: bag(rows_shown(warehouse, "v"))}
    for jump in (-HOUR, YEAR + HOUR, -YEAR):
        clock.move(jump)
        shop.place_orders_only()
        report = warehouse.refresh()
        assert report.ok and report.state == len(shown) + 1
        shown[report.state] = bag(rows_shown(warehouse, "v"))
    states = warehouse.states()
    assert [state.number for state in states] == [4, 3, 2, 1]
    times = [state.published_at for state in reversed(states)]
    # Set back, a clock repeats the time of the state before, so that a later state is never an earlier one by time.
    assert times == [start, start, start + timedelta(seconds=YEAR), start + timedelta(seconds=YEAR)]
    assert bag(tuple(row) for row in warehouse.read("v", as_of=start).collect()) == shown[2]
    assert bag(tuple(row) for row in warehouse.read("v", as_of=times[-1]).collect()) == shown[4]
    # The clock is right again: upkeep must not take what is less than `keep_states` old, or dated ahead.
    kept = warehouse.maintain()
    assert kept.ok and kept.purged["states"] == 0, kept
    for state, rows in shown.items():
        assert bag(tuple(row) for row in warehouse.read("v", state=state).collect()) == rows
    shop.place_orders_only()
    assert warehouse.refresh().views["v"].strategy != "full"
    assert_verified(warehouse)
    clock.move(8 * 24 * HOUR)
    assert warehouse.maintain().purged["states"] == 2, "states dated ahead stay until the clock has passed them"
    assert [state.number for state in warehouse.states()] == [5, 4, 3]
    assert bag(tuple(row) for row in warehouse.read("v", state=3).collect()) == shown[3]
