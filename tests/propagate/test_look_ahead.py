"""Changes are taken in before a plan is made with them, and the views are what they would be without that."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import wait
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import Any

import pytest
from deltalake import DeltaTable

from strandline import Warehouse
from strandline.catalog import StepRecord
from strandline.engine.session import Engine
from strandline.ingest.leaf import ingest
from strandline.propagate import look_ahead, planner, recorder, step_maker
from strandline.propagate import steps as carrying_out
from strandline.propagate.look_ahead import Taken
from strandline.propagate.plan import RefreshPlan, Step
from strandline.propagate.progress import Event
from strandline.propagate.report import RefreshReport
from strandline.stopwatch import now, spending
from strandline.store.deltas import Delta
from tests.warehouse.shop import Shop, assert_verified, followed, made_shop

pytestmark = pytest.mark.spark

VIEWS = {
    "big_orders": "SELECT o.o_id, c.name, o.total FROM shop.orders o JOIN shop.customers c ON o.c_id = c.c_id "
    "WHERE o.total > 40",
    "revenue": "SELECT c.region, count(*) AS orders, sum(l.qty * l.price) AS revenue FROM shop.customers c "
    "JOIN shop.orders o ON c.c_id = o.c_id JOIN lake.lines l ON l.o_id = o.o_id GROUP BY c.region",
    "days": "SELECT day, count(*) AS n FROM shop.orders GROUP BY day",
    "overall": "SELECT count(*) AS regions, sum(revenue) AS revenue FROM revenue",
}


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return made_shop(tmp_path_factory.mktemp("lakes"))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, engine: Engine, shop: Shop) -> Iterator[Warehouse]:
    """One for all tests here, each of which leaves it up to date."""
    with followed(tmp_path_factory.mktemp("project"), engine, shop, VIEWS) as warehouse:
        yield warehouse


@pytest.fixture(autouse=True)
def much(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any table counts as much data, and any change as a small one."""
    monkeypatch.setattr(planner, "LITTLE_ROWS", 0)
    monkeypatch.setattr(planner, "FEW_CHANGED", 100.0)


def plan_of(warehouse: Warehouse, report: RefreshReport) -> RefreshPlan:
    """The plan that the catalog has of a refresh."""
    found: Any = warehouse._catalog.refreshes.get(report.refresh_id)
    return RefreshPlan.from_dict(found.plan)


def ingests(plan: RefreshPlan) -> dict[str, Step]:
    return {step.subject: step for step in plan.steps if step.kind == "ingest"}


def recorded(warehouse: Warehouse, report: RefreshReport) -> dict[str, StepRecord]:
    """The ingest steps of a refresh as they ended."""
    steps = warehouse._catalog.refreshes.steps(report.refresh_id)
    return {str(step.view): step for step in steps if step.kind == "ingest"}


def left_over(warehouse: Warehouse) -> list[Path]:
    return list((Path(warehouse._project.warehouse_root) / "deltas").glob("*/*"))


def shown(warehouse: Warehouse, view: str) -> tuple[int, Any]:
    """The version of a view in the newest state, and where that has its orders."""
    entry = warehouse.states()[0].entries[view]
    return entry.version, entry.positions["shop.orders"]


def test_a_plan_is_made_with_changes_that_are_there_and_tells_what_came_of_them(
    warehouse: Warehouse, shop: Shop
) -> None:
    before = DeltaTable(shop.path("orders")).to_pyarrow_table().num_rows
    shop.place_orders(3)
    shop.move()
    shop.reprice()
    report = warehouse.refresh()
    assert report.ok, report.to_dict()
    plan, steps = plan_of(warehouse, report), recorded(warehouse, report)
    assert set(ingests(plan)) == set(steps) == {"shop.orders", "shop.customers", "lake.lines"}
    for leaf, step in ingests(plan).items():
        taken: Any = step.taken
        assert taken is not None, leaf
        assert steps[leaf].status == "done"
        assert steps[leaf].result == taken
        assert steps[leaf].seconds == pytest.approx(taken["seconds"])
        assert taken["seconds"] > 0 and taken["mode"] == step.mode and "measured" in taken
    orders: Any = ingests(plan)["shop.orders"].taken
    now = DeltaTable(shop.path("orders")).to_pyarrow_table().num_rows
    assert (orders["inserted"], orders["deleted"]) == (now - before, 0)
    assert_verified(warehouse)
    assert left_over(warehouse) == []


def test_what_was_taken_in_is_part_of_history_and_profile(warehouse: Warehouse, shop: Shop) -> None:
    shop.place_orders(2)
    report = warehouse.refresh("days")
    (compute,) = [h.step for h in warehouse.history("days") if h.refresh.id == report.refresh_id][-1:]
    assert compute.kind == "compute" and compute.result["rows_in"] == 2
    (newest, *_) = warehouse._catalog.refreshes.history("shop.orders", 10)
    assert newest.refresh.id == report.refresh_id and newest.step.result["inserted"] == 2
    assert warehouse.profile(report.refresh_id[:8]).to_dict()
    assert warehouse.refresh().ok
    assert_verified(warehouse)


def test_taking_in_ahead_is_profiled_as_what_it_is(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_maker, "SMALL_BYTES", 0)
    shop.place_orders(2)
    shop.move()
    planned: list[float] = []
    plan_made = planner.Planner.plan

    def plan(self: planner.Planner, *arguments: Any) -> RefreshPlan:
        planned.append(now())
        return plan_made(self, *arguments)

    monkeypatch.setattr(planner.Planner, "plan", plan)
    called = now()
    report = warehouse.refresh()
    assert report.ok, report.to_dict()
    profile, steps = warehouse.profile(report.refresh_id), recorded(warehouse, report)
    ahead = {step.subject: step for step in profile.steps if step.kind == "ingest"}
    assert set(ahead) == set(steps) == {"shop.orders", "shop.customers", "lake.lines"}
    assert {step.kind for step in profile.steps[: len(ahead)]} == {"ingest"}, "they come first"
    for name, step in ahead.items():
        assert step.start is not None and step.start + step.elapsed < planned[-1] - called, "it ended before planning"
        assert sum(step.seconds.values()) == pytest.approx(step.elapsed, abs=0.3)
        assert step.seconds["metrics"] > 0 and step.seconds.keys() & {"files", "driver", "jobs", "spark"}
        assert step.read is not None and {table.table for table in step.read} <= {name}
        assert step.wrote == () and step.waited_for_steps == 0 and step.recording < step.elapsed + 5
        started = steps[name].started_at
        assert started is not None
        assert (started - profile.started_at).total_seconds() == pytest.approx(step.start, abs=0.5)
    assert ahead["lake.lines"].files is not None and ahead["lake.lines"].measured["files_read"] > 0
    later = [step for step in profile.steps if step.kind != "ingest" and step.start is not None]
    assert min(step.start for step in later if step.start is not None) > planned[-1] - called
    assert sum(profile.parts.values()) == pytest.approx(profile.seconds, abs=0.02)
    assert sum(profile.planning.values()) == pytest.approx(profile.parts["planning"], abs=0.1)
    assert "waiting" not in profile.planning
    spent = max(step.start + step.elapsed for step in ahead.values() if step.start is not None)
    spent -= min(step.start for step in ahead.values() if step.start is not None)
    before = min(step.start for step in later if step.start is not None)
    assert profile.parts["planning"] < before - spent + 0.1, "planning is what is left of what came before"


def test_what_fails_ahead_has_its_seconds_too(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.place_orders_only(2)

    def slow(*_: Any) -> Delta:
        with spending("seeking"):
            sleep(0.3)
        raise OSError("no room for the delta")

    monkeypatch.setattr(look_ahead, "ingest", slow)
    report = warehouse.refresh()
    assert report.ok
    profile = warehouse.profile(report.refresh_id)
    assert profile.parts["seeking"] >= 0.3
    assert sum(profile.parts.values()) == pytest.approx(profile.seconds, abs=0.02)
    (again,) = [step for step in profile.steps if step.kind == "ingest"]
    assert again.start is not None and again.start > 0.3


def test_what_was_read_is_left_open_where_it_cannot_be_told(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(step_maker, "SMALL_BYTES", 0)
    shop.place_orders(2)

    def untold(*_: Any) -> Any:
        raise OSError("the log is away")

    monkeypatch.setattr(recorder.Recorder, "_files_of", untold)
    report = warehouse.refresh()
    assert report.ok
    steps = warehouse.profile(report.refresh_id).to_dict()["steps"]
    assert [step["read"] for step in steps if step["subject"] == "lake.lines"] == [None]


def test_views_that_have_seen_other_positions_take_in_each_their_own(warehouse: Warehouse, shop: Shop) -> None:
    shop.place_orders_only(1)
    assert warehouse.refresh("days").ok
    shop.place_orders_only(2)
    report = warehouse.refresh()
    steps = warehouse._catalog.refreshes.steps(report.refresh_id)
    found = sorted(int(str(s.result["inserted"])) for s in steps if (s.kind, s.view) == ("ingest", "shop.orders"))
    assert found == [2, 3]
    assert_verified(warehouse)


def test_a_view_that_reads_no_changed_column_has_nothing_to_compute_and_moves_on(
    warehouse: Warehouse, shop: Shop
) -> None:
    _, before = shown(warehouse, "days")
    DeltaTable(shop.path("orders")).update(updates={"total": "total + 50"}, predicate="o_id < 4")
    report = warehouse.refresh()
    node = plan_of(warehouse, report).node("days")
    assert (node.strategy, node.terms, node.estimated_rows) == ("incremental", 0, 0)
    assert node.reason.code == "CHANGES"
    assert "none of them touches a column that it reads" in str(node.reason)
    assert plan_of(warehouse, report).node("big_orders").terms > 0
    days = report.views["days"]
    assert (days.install, days.rows_inserted, days.rows_deleted, days.problem) == ("none", 0, 0, None)
    _, after = shown(warehouse, "days")
    assert after != before
    assert after == shown(warehouse, "big_orders")[1] == warehouse._sources["shop"].position("orders")
    assert warehouse.plan().empty
    assert_verified(warehouse)


def test_a_view_above_one_that_nothing_touches_stays_right(warehouse: Warehouse, shop: Shop) -> None:
    DeltaTable(shop.path("orders")).update(updates={"weight": "weight + 1"}, predicate="o_id < 9")
    report = warehouse.refresh()
    plan = plan_of(warehouse, report)
    assert {name: plan.node(name).terms for name in VIEWS} == dict.fromkeys(VIEWS, 0)
    assert {plan.node(name).strategy for name in VIEWS} == {"incremental"}
    assert report.ok and warehouse.plan().empty
    assert_verified(warehouse)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_commit_that_comes_meanwhile_waits_for_the_next_refresh(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    shop.place_orders(2)
    wanted = warehouse._sources["shop"].position("orders")

    def meanwhile(*arguments: Any) -> Taken:
        if when == "before":
            shop.place_orders(3)
        found = look_ahead.take_in(*arguments)
        if when == "after":
            shop.place_orders(3)
        return found

    with monkeypatch.context() as patched:
        patched.setattr("strandline.refreshing.take_in", meanwhile)
        report = warehouse.refresh()
    orders: Any = recorded(warehouse, report)["shop.orders"].result
    assert report.ok and orders["inserted"] == 2
    assert {shown(warehouse, view)[1]["version"] for view in ("big_orders", "days")} == {wanted["version"]}  # type: ignore[index, call-overload]
    assert_verified(warehouse)
    report = warehouse.refresh()
    orders = recorded(warehouse, report)["shop.orders"].result
    assert report.ok and orders["inserted"] == 3
    assert_verified(warehouse)


def broken(leaf_that_fails: str) -> Any:
    def taken_in(engine: Engine, leaf: str, *others: Any) -> Delta:
        if leaf == leaf_that_fails:
            raise OSError("no room for the delta")
        return ingest(engine, leaf, *others)

    return taken_in


def test_what_cannot_be_taken_in_is_left_to_the_plan(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.place_orders(3)
    monkeypatch.setattr(look_ahead, "ingest", broken("shop.orders"))
    report = warehouse.refresh()
    assert report.ok, report.to_dict()
    plan = plan_of(warehouse, report)
    assert {leaf: step.taken is not None for leaf, step in ingests(plan).items()} == {
        "shop.orders": False,
        "lake.lines": True,
    }
    assert {step.status for step in recorded(warehouse, report).values()} == {"done"}
    assert_verified(warehouse)
    assert left_over(warehouse) == []


def test_what_the_plan_cannot_take_in_either_stops_its_views_alone(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.place_orders(2)
    shop.move()
    with monkeypatch.context() as patched:
        patched.setattr(look_ahead, "ingest", broken("lake.lines"))
        patched.setattr(carrying_out, "ingest", broken("lake.lines"))
        report = warehouse.refresh()
    assert {name for name, view in report.views.items() if view.problem} == {"revenue", "overall"}
    assert recorded(warehouse, report)["lake.lines"].status == "failed"
    assert "no room for the delta" in str(recorded(warehouse, report)["lake.lines"].error)
    assert_verified(warehouse)
    assert warehouse.refresh().ok
    assert_verified(warehouse)
    assert left_over(warehouse) == []


def test_a_table_of_which_much_changed_is_left_to_the_plan(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = DeltaTable(shop.path("orders")).to_pyarrow_table().num_rows
    shop.place_orders_only(4)
    for share, taken in ((3.9 / (rows + 4), False), (4.1 / (rows + 4), True)):
        monkeypatch.setattr(planner, "FEW_CHANGED", share)
        found = warehouse._refreshing.planner().to_take_in(tuple(VIEWS))
        assert [step.subject for step, _ in found] == (["shop.orders"] if taken else [])
    monkeypatch.setattr(planner, "FEW_CHANGED", 0.0)
    report = warehouse.refresh()
    assert report.ok
    assert [step.taken for step in ingests(plan_of(warehouse, report)).values()] == [None]
    assert_verified(warehouse)


def test_over_little_data_nothing_is_taken_in_early(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "LITTLE_ROWS", 100_000)
    shop.place_orders(1)
    report = warehouse.refresh()
    assert report.ok
    assert {step.taken for step in ingests(plan_of(warehouse, report)).values()} == {None}
    assert_verified(warehouse)


def test_a_plan_that_is_looked_at_takes_nothing_in(warehouse: Warehouse, shop: Shop) -> None:
    shop.place_orders(1)
    plan = warehouse.plan()
    assert {step.taken for step in ingests(plan).values()} == {None}
    assert left_over(warehouse) == []
    assert warehouse.refresh(plan).ok
    assert_verified(warehouse)


@pytest.mark.parametrize("moment", ["started", "waiting"])
def test_an_interrupted_look_ahead_leaves_no_refresh(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    shop.place_orders_only(2)
    shop.move()
    known, states = warehouse._catalog.refreshes.recent(1)[0].id, len(warehouse.states())
    begun: list[str] = []

    def watcher(event: Event) -> None:
        begun.extend([event.subject] if event.what == "started" else [])
        if moment == "started" and len(begun) == 2:
            raise KeyboardInterrupt

    calls: list[Any] = []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if moment == "waiting" and len(calls) == 1:
            raise KeyboardInterrupt
        return wait(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(look_ahead, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            warehouse.refresh(watcher=watcher)
    assert set(begun) == {"shop.orders", "shop.customers"}
    assert warehouse._catalog.refreshes.recent(1)[0].id == known
    assert warehouse._catalog.refreshes.unfinished() is None
    assert len(warehouse.states()) == states
    report = warehouse.refresh()
    assert report.ok and report.resumed is None
    assert_verified(warehouse)
    monkeypatch.setattr("strandline.upkeep.leftovers.SAFE_AGE", timedelta())
    warehouse.maintain()
    assert left_over(warehouse) == [], "what was stored in vain is cleared by upkeep"


def test_a_refresh_that_stops_after_looking_ahead_is_taken_up_with_what_was_taken_in(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.place_orders(2)

    def stop(*_: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(carrying_out.Steps, "_compute", stop)
        with pytest.raises(KeyboardInterrupt):
            warehouse.refresh()
    with monkeypatch.context() as patched:
        for module in (look_ahead, carrying_out):
            patched.setattr(module, "ingest", broken("shop.orders"))
        report = warehouse.refresh()
    assert report.ok and report.resumed is not None
    profile = warehouse.profile(report.resumed)
    assert sum(profile.parts.values()) == pytest.approx(profile.seconds, abs=0.02)
    assert [step.start for step in profile.steps if step.kind == "ingest"] == [None] * 2, "it began before"
    assert all(step.seconds and step.read is not None for step in profile.steps if step.kind == "ingest")
    assert_verified(warehouse)
    assert left_over(warehouse) == []
