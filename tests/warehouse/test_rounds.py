"""Views stay equal to their recomputation through rounds of random changes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from strandline import Warehouse
from strandline.engine.session import Engine
from tests.warehouse.shop import VIEWS, Shop, assert_verified, create_views

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Iterator[tuple[Warehouse, Shop]]:
    """All views over a shop, which three tests go on changing."""
    folder = tmp_path_factory.mktemp("followed")
    shop = Shop(folder / "lakes")
    shop.create()
    with Warehouse.open(folder / "project", spark=engine.spark) as warehouse:
        shop.declare(warehouse)
        create_views(warehouse)
        assert_verified(warehouse)
        yield warehouse, shop


def test_views_follow_their_sources_through_random_rounds(followed: tuple[Warehouse, Shop]) -> None:
    warehouse, shop = followed
    seen = set()
    for _ in range(3):
        for _ in range(3):
            shop.change()
        report = warehouse.refresh()
        assert report.ok, report.to_dict()
        seen |= {view.strategy for view in report.views.values()}
        assert_verified(warehouse)
    assert {"incremental", "affected"} <= seen
    assert "full" not in seen


def test_tables_are_emptied_and_filled_again(followed: tuple[Warehouse, Shop]) -> None:
    warehouse, shop = followed
    shop.clear()
    assert warehouse.refresh().ok
    assert_verified(warehouse)
    shop.place_orders(8)
    assert warehouse.refresh().ok
    assert_verified(warehouse)


def test_a_part_of_the_graph_is_refreshed_and_the_rest_follows_later(followed: tuple[Warehouse, Shop]) -> None:
    warehouse, shop = followed
    shop.place_orders()
    first = warehouse.refresh("revenue")
    assert set(first.views) == {"revenue"}
    shop.reprice()
    report = warehouse.refresh("overall", "regions")
    assert set(report.views) == {"revenue", "overall", "big_orders", "regions"}
    assert_verified(warehouse)
    warehouse.refresh()
    assert set(warehouse.views()) == set(VIEWS)
    assert_verified(warehouse)


def test_a_compaction_of_a_source_is_no_change(warehouse: Warehouse, shop: Shop) -> None:
    create_views(warehouse, {"big_orders": VIEWS["big_orders"]})
    before = warehouse.states()[0].number
    shop.place_orders()
    warehouse.refresh()
    shop.compact()
    report = warehouse.refresh()
    assert report.state == before + 1
    assert {view.strategy for view in report.views.values()} == {"none"}


def test_insertions_only_merge_minima_without_looking_at_old_rows(warehouse: Warehouse, shop: Shop) -> None:
    create_views(warehouse, {"firsts": "SELECT c_id, min(day) AS d, max(total) AS t FROM shop.orders GROUP BY c_id"})
    shop.place_orders()
    assert warehouse.refresh().views["firsts"].strategy == "incremental"
    assert_verified(warehouse)
    shop.cancel()
    report = warehouse.refresh().views["firsts"]
    assert (report.strategy, report.reason.code) == ("affected", "GROUPS_AFFECTED")
    assert_verified(warehouse)
