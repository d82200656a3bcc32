"""Sources, leaves and the unit-of-work log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from strandline.algebra.schema import Column
from strandline.catalog import (
    Catalog,
    Json,
    LeafRecord,
    SourceRecord,
    Transaction,
    TransactionRecord,
)
from strandline.errors import CatalogError
from tests.catalog.clock import START, SetClock

COLUMNS = (Column("id", "bigint", nullable=False), Column("price", "decimal(12,2)"))


def make_leaf(catalog: Catalog, table: str = "orders", position: Json = None) -> LeafRecord:
    catalog.sources.put("shop", "postgres", {"dsn_env": "SHOP"})
    return catalog.leaves.put("shop", table, location=f"/wh/{table}", columns=COLUMNS, key=["id"], position=position)


def test_a_source_is_kept_as_given(catalog: Catalog) -> None:
    catalog.sources.put("shop", "postgres", {"dsn_env": "SHOP", "tables": ["a", "b"], "copy": True})
    assert catalog.sources.get("shop") == SourceRecord(
        "shop", "postgres", {"dsn_env": "SHOP", "tables": ["a", "b"], "copy": True}, START
    )


def test_replacing_a_source_keeps_its_day_of_creation(catalog: Catalog, clock: SetClock) -> None:
    catalog.sources.put("shop", "postgres", {})
    clock.move(60)
    catalog.sources.put("shop", "mysql", {"a": 1})
    assert catalog.sources.all() == (SourceRecord("shop", "mysql", {"a": 1}, START),)


def test_a_removed_source_is_gone(catalog: Catalog) -> None:
    catalog.sources.put("shop", "postgres", {})
    catalog.sources.remove("shop")
    assert catalog.sources.get("shop") is None


def test_removing_what_is_not_there_says_what_is(catalog: Catalog) -> None:
    catalog.sources.put("shop", "postgres", {})
    with pytest.raises(CatalogError, match="there are the sources shop") as raised:
        catalog.sources.remove("shoo")
    assert raised.value.code == "SOURCE_UNKNOWN"
    with pytest.raises(CatalogError, match="there is no leaf yet") as raised:
        catalog.leaves.remove("shop.orders")
    assert raised.value.code == "LEAF_UNKNOWN"


def test_a_source_with_leaves_is_not_removed(catalog: Catalog) -> None:
    make_leaf(catalog)
    with pytest.raises(CatalogError, match=r"shop\.orders") as raised:
        catalog.sources.remove("shop")
    assert raised.value.code == "SOURCE_IN_USE"


def test_a_leaf_is_kept_as_given_and_replaced(catalog: Catalog) -> None:
    made = make_leaf(catalog, position={"lsn": "0/16B3748", "unseen": [7, 9]})
    assert made == LeafRecord(
        "shop.orders",
        "shop",
        "orders",
        "/wh/orders",
        COLUMNS,
        ("id",),
        {"lsn": "0/16B3748", "unseen": [7, 9]},
        None,
    )
    assert catalog.leaves.get("shop.orders") == made
    changed = catalog.leaves.put(
        "shop", "orders", location=None, columns=COLUMNS[:1], key=(), position=None, note="column dropped"
    )
    assert catalog.leaves.all() == (changed,)
    assert (changed.columns, changed.key, changed.note) == (COLUMNS[:1], (), "column dropped")


def test_a_leaf_needs_its_source(catalog: Catalog) -> None:
    with pytest.raises(CatalogError) as raised:
        catalog.leaves.put("shop", "orders", location=None, columns=COLUMNS, key=["id"], position=None)
    assert raised.value.code == "SOURCE_UNKNOWN"


def test_transactions_are_logged_in_order_and_move_the_leaf(catalog: Catalog) -> None:
    make_leaf(catalog)
    berlin = timezone(timedelta(hours=2))
    appended = catalog.unit_of_work.append(
        "shop.orders",
        [
            Transaction({"lsn": 30}, "701", datetime(2024, 5, 1, 10, tzinfo=berlin)),
            Transaction({"lsn": 20}, None, None),
        ],
        upto={"lsn": 45},
    )
    assert appended == 2
    assert catalog.unit_of_work.since("shop.orders") == (
        TransactionRecord(1, "shop.orders", {"lsn": 30}, "701", datetime(2024, 5, 1, 8, tzinfo=UTC)),
        TransactionRecord(2, "shop.orders", {"lsn": 20}, None, None),
    )
    leaf = catalog.leaves.get("shop.orders")
    assert leaf is not None
    assert leaf.position == {"lsn": 45}


def test_a_transaction_is_logged_once(catalog: Catalog) -> None:
    make_leaf(catalog)
    log = catalog.unit_of_work
    assert log.append("shop.orders", [Transaction({"lsn": 1, "n": 0})], upto=1) == 1
    again = [Transaction({"n": 0, "lsn": 1}), Transaction({"lsn": 2}), Transaction({"lsn": 2})]
    assert log.append("shop.orders", again, upto=2) == 1
    assert [(one.csn, one.position) for one in log.since("shop.orders")] == [
        (1, {"lsn": 1, "n": 0}),
        (2, {"lsn": 2}),
    ]
    assert log.count() == log.newest_csn() == 2


def test_an_idle_stretch_moves_the_leaf_alone(catalog: Catalog) -> None:
    make_leaf(catalog, position=5)
    assert catalog.unit_of_work.append("shop.orders", [], upto=9) == 0
    leaf = catalog.leaves.get("shop.orders")
    assert leaf is not None
    assert leaf.position == 9
    assert catalog.unit_of_work.newest_csn() == 0


def test_numbers_run_over_all_leaves_and_are_never_given_out_again(catalog: Catalog) -> None:
    make_leaf(catalog)
    make_leaf(catalog, "items")
    log = catalog.unit_of_work
    log.append("shop.orders", [Transaction(1)], upto=1)
    log.append("shop.items", [Transaction(1), Transaction(2)], upto=2)
    log.append("shop.orders", [Transaction(2)], upto=2)
    assert [one.csn for one in log.since("shop.orders")] == [1, 4]
    assert [one.csn for one in log.since("shop.items", csn=2)] == [3]
    catalog.leaves.remove("shop.orders")
    assert log.since("shop.orders") == ()
    make_leaf(catalog)
    log.append("shop.orders", [Transaction(1)], upto=1)
    assert [one.csn for one in log.since("shop.orders")] == [5]


def test_a_long_log_with_long_positions_is_taken_whole(catalog: Catalog) -> None:
    make_leaf(catalog)
    many = [Transaction({"lsn": n, "unseen": list(range(1000, 1700))}) for n in range(1200)]
    assert catalog.unit_of_work.append("shop.orders", many[:700], upto=700) == 700
    assert catalog.unit_of_work.append("shop.orders", many, upto=1200) == 500
    assert [one.csn for one in catalog.unit_of_work.since("shop.orders")] == list(range(1, 1201))


def test_a_transaction_that_cannot_be_logged_leaves_log_and_leaf_as_they_were(catalog: Catalog) -> None:
    make_leaf(catalog, position=5)
    with pytest.raises(Exception, match="no time zone"):
        catalog.unit_of_work.append("shop.orders", [Transaction(6), Transaction(7, None, datetime(2024, 5, 1))], upto=7)
    leaf = catalog.leaves.get("shop.orders")
    assert leaf is not None
    assert leaf.position == 5
    assert catalog.unit_of_work.count() == catalog.unit_of_work.newest_csn() == 0


def test_an_unknown_leaf_has_no_log(catalog: Catalog) -> None:
    with pytest.raises(CatalogError) as raised:
        catalog.unit_of_work.append("shop.orders", [], upto=1)
    assert raised.value.code == "LEAF_UNKNOWN"
