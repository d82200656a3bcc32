"""Captures: what of a copied source is durable, recorded as one."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from strandline.catalog import Catalog, Lease, LoggedTable, Transaction
from strandline.errors import CatalogError

WHEN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.fixture
def lease(catalog: Catalog) -> Lease:
    catalog.sources.put("shop", "postgres", {})
    for table in ("orders", "customers"):
        catalog.leaves.put("shop", table, location=None, columns=(), key=(), position=None)
    return catalog.lock.acquire("test").__enter__()


def transaction(place: int, **summary: int) -> Transaction:
    return Transaction({"log": "a", "place": place}, str(place), WHEN, place, summary)


def test_nothing_is_captured_at_first(catalog: Catalog) -> None:
    assert catalog.captures.get("shop") is None


def test_a_capture_is_recorded_for_all_tables_at_once(catalog: Catalog, lease: Lease) -> None:
    catalog.captures.begin("shop", "a", 100, {"slot": "s"}, lease)
    catalog.captures.record(
        "shop",
        200,
        {"log": "a", "place": 200},
        {"orders": LoggedTable("logs/orders", 3), "customers": LoggedTable("logs/customers", None)},
        {"orders": [transaction(110, inserted=2), transaction(150, deleted=1)], "customers": []},
        lease,
    )
    found = catalog.captures.get("shop")
    assert found is not None
    assert (found.log, found.place, found.details) == ("a", 200, {"slot": "s"})
    assert found.tables["orders"] == LoggedTable("logs/orders", 3)
    orders = catalog.leaves.get("shop.orders")
    assert orders is not None and orders.position == {"log": "a", "place": 200}
    logged = catalog.unit_of_work.between("shop.orders", 100, 200)
    assert [(t.place, t.summary) for t in logged] == [(110, {"inserted": 2}), (150, {"deleted": 1})]


def test_places_are_taken_from_the_first_and_before_the_last(catalog: Catalog, lease: Lease) -> None:
    catalog.captures.begin("shop", "a", 0, {}, lease)
    transactions = [transaction(place, inserted=1) for place in (10, 20, 30)]
    catalog.captures.record("shop", 40, {"log": "a", "place": 40}, {}, {"orders": transactions}, lease)
    assert [t.place for t in catalog.unit_of_work.between("shop.orders", 10, 30)] == [10, 20]


def test_the_same_transactions_again_are_no_news(catalog: Catalog, lease: Lease) -> None:
    catalog.captures.begin("shop", "a", 0, {}, lease)
    for _ in range(2):
        catalog.captures.record(
            "shop", 40, {"log": "a", "place": 40}, {}, {"orders": [transaction(10, inserted=1)]}, lease
        )
    assert catalog.unit_of_work.count() == 1


def test_a_table_that_is_not_captured_keeps_what_is_known_of_its_log(catalog: Catalog, lease: Lease) -> None:
    catalog.captures.begin("shop", "a", 0, {}, lease)
    broken = LoggedTable("logs/orders", 3, "SOURCE_SCHEMA_CHANGED: no column", 7)
    catalog.captures.record("shop", 10, {"log": "a", "place": 10}, {"orders": broken}, {}, lease)
    catalog.captures.record(
        "shop", 20, {"log": "a", "place": 20}, {"customers": LoggedTable("logs/customers", 0)}, {}, lease
    )
    found = catalog.captures.get("shop")
    assert found is not None and found.tables["orders"] == broken


def test_a_new_log_forgets_the_tables_of_the_old_one(catalog: Catalog, lease: Lease) -> None:
    catalog.captures.begin("shop", "a", 0, {}, lease)
    catalog.captures.record("shop", 10, {"log": "a", "place": 10}, {"orders": LoggedTable("logs/orders", 1)}, {}, lease)
    begun = catalog.captures.begin("shop", "b", 5, {}, lease)
    assert (begun.log, begun.place, begun.tables) == ("b", 5, {})


def test_only_the_holder_of_the_lock_records(catalog: Catalog, lease: Lease) -> None:
    catalog.captures.begin("shop", "a", 0, {}, lease)
    catalog.lock.release_all()
    with pytest.raises(CatalogError, match="LEASE_LOST"):
        catalog.captures.record("shop", 10, {"log": "a", "place": 10}, {}, {}, lease)


def test_an_unknown_leaf_records_nothing(catalog: Catalog, lease: Lease) -> None:
    catalog.captures.begin("shop", "a", 0, {}, lease)
    with pytest.raises(CatalogError):
        catalog.captures.record(
            "shop", 10, {"log": "a", "place": 10}, {}, {"orders": [transaction(5)], "nothing": []}, lease
        )
    found = catalog.captures.get("shop")
    assert found is not None and found.place == 0
    assert catalog.unit_of_work.count() == 0


def test_a_source_takes_its_capture_with_it(catalog: Catalog, lease: Lease) -> None:
    catalog.captures.begin("shop", "a", 0, {}, lease)
    for leaf in ("shop.orders", "shop.customers"):
        catalog.leaves.remove(leaf)
    catalog.captures.remove("shop")
    catalog.sources.remove("shop")
    assert catalog.captures.get("shop") is None
