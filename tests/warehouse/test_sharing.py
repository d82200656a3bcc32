"""Joins that several views hold: their delta is computed once, and the views are what they would be without that."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from strandline import Warehouse
from strandline.engine.session import Engine
from strandline.propagate.plan import RefreshPlan, Step
from strandline.propagate.report import RefreshReport
from strandline.propagate.steps import Steps
from tests.warehouse.shop import Shop, assert_verified, followed, made_shop

pytestmark = pytest.mark.spark

VIEWS = {
    "revenue": "SELECT c.region, count(*) AS n, sum(l.qty * l.price) AS revenue FROM shop.customers c "
    "JOIN shop.orders o ON c.c_id = o.c_id JOIN lake.lines l ON l.o_id = o.o_id GROUP BY c.region",
    "per_day": "SELECT x.day, sum(y.qty) AS qty FROM lake.lines y JOIN shop.orders x ON x.o_id = y.o_id "
    "WHERE y.qty > 1 GROUP BY x.day",
    "per_product": "SELECT l.product, max(o.total) AS most, count(*) AS n FROM shop.orders o, lake.lines l "
    "WHERE o.o_id = l.o_id AND o.total > 20 GROUP BY l.product",
    "listed": "SELECT o.o_id, o.c_id, l.product FROM shop.orders o JOIN lake.lines l ON l.o_id = o.o_id "
    "WHERE l.qty < 4",
    "per_customer": "SELECT o.c_id, avg(l.price) AS price FROM shop.orders o JOIN lake.lines l ON l.o_id = o.o_id "
    "GROUP BY o.c_id",
    "heavy": "SELECT l.product, o.weight FROM lake.lines l JOIN shop.orders o ON o.o_id = l.o_id AND o.weight > 50",
    "in_all": "SELECT count(*) AS n, sum(o.total) AS total FROM lake.lines l JOIN shop.orders o ON l.o_id = o.o_id",
}
"""Enough that a step more is worth it, also for little data."""
JOIN = "lake.lines ⋈ shop.orders"


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return made_shop(tmp_path_factory.mktemp("lakes"))


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory, engine: Engine, shop: Shop) -> Iterator[Warehouse]:
    """One for all tests, each of which leaves it up to date. Costs stay fixed: of little data sharing saves little."""
    with (
        mock.patch("strandline.propagate.executor.calibrate"),
        followed(tmp_path_factory.mktemp("project"), engine, shop, VIEWS) as warehouse,
    ):
        yield warehouse


def shared_in(warehouse: Warehouse, report: RefreshReport) -> dict[str, str]:
    """How the steps of a refresh on shared joins ended."""
    steps = warehouse._catalog.refreshes.steps(report.refresh_id)
    return {str(step.view): step.status for step in steps if step.kind == "share"}


def test_views_share_the_delta_of_a_join_and_stay_right(warehouse: Warehouse, shop: Shop) -> None:
    shared = 0
    for _ in range(3):
        shop.place_orders(2)
        shop.change()
        plan = warehouse.plan()
        shared += len(plan.shared)
        assert RefreshPlan.from_dict(plan.to_dict()).shared == plan.shared
        report = warehouse.refresh()
        assert report.ok, report.to_dict()
        assert shared_in(warehouse, report) == {each.name: "done" for each in plan.shared}
        assert_verified(warehouse)
    assert shared >= 3, "both tables changed each time"


def test_explain_names_who_shares_what(warehouse: Warehouse, shop: Shop) -> None:
    shop.place_orders(3)
    plan = warehouse.plan()
    (shared,) = plan.shared
    assert shared.name == JOIN and set(shared.readers) == set(VIEWS)
    assert set(shared.changed) == {"shop.orders", "lake.lines"}
    text = plan.explain()
    assert f"shared: {JOIN}, for " in text and text.count(f"shares the delta of: {JOIN}") == len(VIEWS)
    place = {(step.kind, step.subject): number for number, step in enumerate(plan.steps)}
    assert place[("ingest", "lake.lines")] < place[("share", JOIN)] < min(place[("compute", name)] for name in VIEWS)
    assert f"delta of {JOIN}" in plan.sql["per_day"] and "delta of shop.orders" not in plan.sql["per_day"]
    assert "delta of shop.orders" in plan.sql[JOIN] and "delta of lake.lines" in plan.sql[JOIN]
    assert warehouse.refresh().ok


def test_a_view_that_has_seen_less_does_not_share(warehouse: Warehouse, shop: Shop) -> None:
    shop.place_orders(2)
    assert warehouse.refresh(*(name for name in VIEWS if name != "listed")).ok
    shop.place_orders(2)
    (shared,) = warehouse.plan().shared
    assert set(shared.readers) == set(VIEWS) - {"listed"}
    assert warehouse.refresh().ok
    assert_verified(warehouse)


def test_views_are_computed_each_for_itself_where_sharing_fails(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.place_orders(3)
    share = Steps._share

    def broken(self: Steps, step: object, path: str) -> object:
        raise OSError("no room for the shared delta")

    monkeypatch.setattr(Steps, "_share", broken)
    report = warehouse.refresh()
    assert report.ok and shared_in(warehouse, report) == {JOIN: "failed"}
    assert_verified(warehouse)
    monkeypatch.setattr(Steps, "_share", share)
    shop.place_orders(1)
    assert shared_in(warehouse, warehouse.refresh()) == {JOIN: "done"}


def test_a_shared_delta_without_rows_is_not_read(warehouse: Warehouse, shop: Shop) -> None:
    shop.place_orders_only(2)  # Nothing in them: they meet no line.
    plan = warehouse.plan()
    report = warehouse.refresh()
    assert report.ok and shared_in(warehouse, report) == {each.name: "done" for each in plan.shared}
    assert all((view.rows_inserted, view.rows_deleted) == (0, 0) for view in report.views.values())
    assert_verified(warehouse)


def test_a_shared_delta_is_there_after_a_crash(
    warehouse: Warehouse, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.place_orders(2)
    did: list[str] = []
    share, compute = Steps._share, Steps._compute

    def noted(self: Steps, step: Step, path: str) -> dict[str, object]:
        did.append(step.subject)
        return share(self, step, path)

    def interrupted(self: Steps, step: Step, path: str) -> dict[str, object]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Steps, "_share", noted)
    monkeypatch.setattr(Steps, "_compute", interrupted)
    with pytest.raises(KeyboardInterrupt):
        warehouse.refresh()
    monkeypatch.setattr(Steps, "_compute", compute)
    report = warehouse.refresh()
    assert report.ok and report.resumed is not None
    assert did == [JOIN], "it was computed before the crash, and read after it"
    assert_verified(warehouse)
