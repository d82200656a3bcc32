"""Steps at the same time, faults that pass, groups that move whole, and refreshes that are cut short on purpose."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from strandline import StrandlineError, Warehouse
from strandline.propagate.progress import Event
from strandline.propagate.report import RefreshReport
from strandline.propagate.steps import Steps
from tests.conftest import bag, rows_shown
from tests.warehouse.shop import VIEWS, Shop, assert_verified

pytestmark = pytest.mark.spark

PER_CUSTOMER = "SELECT c_id, count(*) AS n, sum(total) AS t FROM shop.orders GROUP BY c_id"
PER_DAY = "SELECT day, count(*) AS n FROM shop.orders GROUP BY day"
INVERSE = "SELECT o_id, 1 / total AS inverse FROM shop.orders"


def shown(warehouse: Warehouse, view: str) -> object:
    return bag(rows_shown(warehouse, view))


def configure(warehouse: Warehouse, text: str) -> Warehouse:
    """The same warehouse, with more in its strandline.yml."""
    folder: Path = warehouse._project.folder
    spark = warehouse._engine.spark
    warehouse.close()
    with (folder / "strandline.yml").open("a", encoding="utf-8") as file:
        file.write(f"\n{text}\n")
    return Warehouse.open(folder, spark=spark)


def around(
    monkeypatch: pytest.MonkeyPatch, before: Callable[[str, str], None] = lambda kind, subject: None
) -> list[tuple[str, str, float, float]]:
    """Calls *before* ahead of every step, and notes when each began and ended."""
    ran: list[tuple[str, str, float, float]] = []
    carry_out = Steps.carry_out

    def watched(self: Steps, step: object, *, resumed: bool) -> object:
        began = time.monotonic()
        before(step.kind, step.subject)  # type: ignore[attr-defined]
        try:
            return carry_out(self, step, resumed=resumed)  # type: ignore[arg-type]
        finally:
            ran.append((step.kind, step.subject, began, time.monotonic()))  # type: ignore[attr-defined]

    monkeypatch.setattr(Steps, "carry_out", watched)
    return ran


def test_independent_steps_run_at_the_same_time_and_dependent_ones_do_not(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("big_orders", "products", "revenue", "regions"):
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS {VIEWS[name]}")
    shop.place_orders()
    met = threading.Barrier(2, timeout=60)
    first = ["big_orders", "products"]

    def meet(kind: str, subject: str) -> None:
        if kind == "compute" and subject in first:
            met.wait()  # Neither goes on before the other has begun.

    ran = around(monkeypatch, meet)
    assert warehouse.refresh().ok
    ends = {(kind, subject): end for kind, subject, _, end in ran}
    for kind, subject, began, _ in ran:
        if kind == "compute" and subject == "regions":
            assert all(end < began for (k, s), end in ends.items() if k == "install" and s in ("revenue", "big_orders"))
    assert_verified(warehouse)


def test_one_failing_view_stops_only_what_depends_on_it(warehouse: Warehouse, shop: Shop) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW inverse AS {INVERSE}")
    warehouse.sql("CREATE MATERIALIZED VIEW above AS SELECT count(*) AS n FROM inverse WHERE inverse > 0")
    warehouse.sql(f"CREATE MATERIALIZED VIEW days AS {PER_DAY}")
    before = {name: shown(warehouse, name) for name in ("inverse", "above")}
    shop.place_order(total="0.00")
    told: list[Event] = []
    report = warehouse.refresh(watcher=told.append)
    assert not report.ok and report.views["days"].problem is None
    assert "DIVIDE_BY_ZERO" in str(report.views["inverse"].problem)
    assert str(report.views["above"].problem).startswith("INPUT_FAILED: inverse")
    assert {name: shown(warehouse, name) for name in before} == before
    assert warehouse.verify("days").ok
    # Why a view is left alone is told once, however many steps it had.
    details = {(event.step, event.subject): event.detail for event in told if event.what == "skipped"}
    assert details["install", "inverse"] == details["install", "above"] == ""
    assert details["compute", "above"].startswith("INPUT_FAILED: inverse")


def test_a_fault_that_may_pass_is_tried_again_and_told(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW days AS {PER_DAY}")
    shop.place_orders_only()
    monkeypatch.setattr("strandline.propagate.executor.BACK_OFF", (0.01, 0.02, 0.03))
    left = [2]

    def flaky(kind: str, subject: str) -> None:
        if kind == "install" and left[0]:
            left[0] -= 1
            raise RuntimeError("java.net.SocketException: Connection reset")

    around(monkeypatch, flaky)
    events: list[Event] = []
    report = warehouse.refresh(watcher=events.append)
    assert report.ok and report.views["days"].retried == 2
    retried = [event for event in events if event.what == "retried"]
    assert [event.step for event in retried] == ["install", "install"]
    assert "Connection reset" in retried[0].detail
    assert warehouse.verify("days").ok


def test_a_fault_that_stays_is_given_up_after_a_few_attempts(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW days AS {PER_DAY}")
    shop.place_orders_only()
    monkeypatch.setattr("strandline.propagate.executor.BACK_OFF", (0.01, 0.02))
    tries = []

    def broken(kind: str, subject: str) -> None:
        if kind == "install":
            tries.append(subject)
            raise RuntimeError("java.io.IOException: Connection reset by peer")

    with monkeypatch.context() as patched:
        around(patched, broken)
        report = warehouse.refresh()
    assert len(tries) == 3 and "Connection reset" in str(report.views["days"].problem)
    assert warehouse.refresh().ok and warehouse.verify("days").ok


def test_a_group_moves_whole_or_not_at_all(warehouse: Warehouse, shop: Shop) -> None:
    with configure(warehouse, "groups:\n  orders: [inverse, Customers]") as warehouse:
        warehouse.sql(f"CREATE MATERIALIZED VIEW inverse AS {INVERSE}")
        warehouse.sql(f"CREATE MATERIALIZED VIEW customers AS {PER_CUSTOMER}")
        warehouse.sql(f"CREATE MATERIALIZED VIEW days AS {PER_DAY}")
        shop.place_orders_only()
        assert {"inverse", "customers"} <= set(warehouse.refresh("customers").views)
        positions = {n: warehouse.states()[0].entries[n].positions for n in ("inverse", "customers")}
        assert positions["inverse"] == positions["customers"]
        before = {name: shown(warehouse, name) for name in ("inverse", "customers")}

        shop.place_order(total="0.00")
        report = warehouse.refresh()
        assert str(report.views["customers"].problem).startswith("GROUP_HELD: inverse")
        assert report.views["days"].problem is None and warehouse.verify("days").ok
        assert {name: shown(warehouse, name) for name in before} == before
        assert warehouse.verify("customers").ok

        # Whatever else is refreshed, the group stays where it is.
        shop.place_orders_only()
        warehouse.refresh("days")
        assert {name: shown(warehouse, name) for name in before} == before

        shop.delete_orders(total="0.00")
        assert warehouse.refresh().ok
        assert_verified(warehouse)
        positions = {n: warehouse.states()[0].entries[n].positions for n in ("inverse", "customers")}
        assert positions["inverse"] == positions["customers"] and shown(warehouse, "customers") != before["customers"]


def test_a_view_that_was_held_back_is_shown_once_its_group_lets_it(warehouse: Warehouse, shop: Shop) -> None:
    with configure(warehouse, "groups:\n  orders: [inverse, customers]") as warehouse:
        warehouse.sql(f"CREATE MATERIALIZED VIEW inverse AS {INVERSE}")
        warehouse.sql(f"CREATE MATERIALIZED VIEW customers AS {PER_CUSTOMER}")
        shop.place_order(total="0.00")
        warehouse.refresh()
        warehouse.drop("inverse")
        report = warehouse.refresh()
        assert report.ok and warehouse.status().views[0].fresh
        assert_verified(warehouse)


def interrupted_at(step: str, subject: str = "") -> Callable[[Event], None]:
    def watch(event: Event) -> None:
        if event.what == "done" and event.step == step and subject in ("", event.subject):
            raise KeyboardInterrupt

    return watch


def test_a_refresh_that_was_cut_short_is_resumed_and_nothing_new_begun(warehouse: Warehouse, shop: Shop) -> None:
    assert warehouse.resume() is None
    warehouse.sql(f"CREATE MATERIALIZED VIEW days AS {PER_DAY}")
    warehouse.sql(f"CREATE MATERIALIZED VIEW customers AS {PER_CUSTOMER}")
    shop.place_orders_only()
    with pytest.raises(KeyboardInterrupt):
        warehouse.refresh(watcher=interrupted_at("install"))
    unfinished = warehouse.status().unfinished
    shop.place_orders_only()
    report = warehouse.resume()
    assert isinstance(report, RefreshReport) and report.refresh_id == unfinished
    assert warehouse.status().unfinished is None
    assert not any(view.fresh for view in warehouse.status().views)
    assert_verified(warehouse)
    assert warehouse.refresh().ok
    assert_verified(warehouse)


def test_what_a_step_begins_after_ctrl_c_is_ended_too(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW days AS {PER_DAY}")
    warehouse.sql(f"CREATE MATERIALIZED VIEW customers AS {PER_CUSTOMER}")
    shop.place_orders_only()
    stopped = threading.Event()

    def long(kind: str, subject: str) -> None:
        if (kind, subject) == ("compute", "days"):
            assert stopped.wait(30)
            time.sleep(1)
            warehouse._engine.rows("SELECT count(*) FROM range(100000000000000) WHERE id % 7 = 8")

    def watch(event: Event) -> None:
        if (event.what, event.subject) == ("started", "customers"):
            stopped.set()
            raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        around(patched, long)
        warehouse.refresh(watcher=watch)
    assert warehouse.refresh().ok
    assert_verified(warehouse)


def test_a_restart_gives_up_the_old_plan_and_plans_anew(warehouse: Warehouse, shop: Shop) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW days AS {PER_DAY}")
    warehouse.sql(f"CREATE MATERIALIZED VIEW customers AS {PER_CUSTOMER}")
    shop.place_orders_only()
    with pytest.raises(KeyboardInterrupt):
        warehouse.refresh(watcher=interrupted_at("compute"))
    unfinished = warehouse.status().unfinished
    assert unfinished is not None
    shop.place_orders_only()
    report = warehouse.refresh(restart=True)
    assert report.ok and report.resumed is None and report.refresh_id != unfinished
    given_up = warehouse._catalog.refreshes.get(unfinished)
    assert given_up is not None and given_up.status == "abandoned"
    assert all(view.fresh for view in warehouse.status().views)
    assert not list((Path(warehouse._project.warehouse_root) / "deltas").glob("*"))
    assert_verified(warehouse)


def test_a_plan_is_stale_once_a_refresh_that_was_given_up_has_written(warehouse: Warehouse, shop: Shop) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW customers REFRESH POLICY INCREMENTAL AS {PER_CUSTOMER}")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW spent REFRESH POLICY INCREMENTAL AS "
        "SELECT c.c_id, c.t, sum(l.qty) AS qty FROM customers c JOIN lake.lines l ON l.o_id = c.c_id GROUP BY ALL"
    )
    shop.repeat_lines()
    plan = warehouse.plan()
    assert (plan.node("customers").strategy, plan.node("spent").strategy) == ("none", "incremental")
    shop.place_orders_only()
    with pytest.raises(KeyboardInterrupt):
        warehouse.refresh("customers", watcher=interrupted_at("install"))
    assert warehouse.states()[0].number == plan.base_state
    with pytest.raises(StrandlineError, match=r"STALE_PLAN\] customers changed since"):
        warehouse.refresh(plan, restart=True)
    assert warehouse.refresh().ok
    assert_verified(warehouse)


def test_a_view_is_in_one_group_at_most(warehouse: Warehouse) -> None:
    with pytest.raises(StrandlineError, match="one group"):
        configure(warehouse, "groups:\n  one: [v]\n  two: [V, w]")
