"""Views, and the versions of their tables."""

from __future__ import annotations

from typing import Any

import pytest

from strandline.algebra.schema import Column
from strandline.catalog import Catalog, Lease, StateEntry, VersionRecord, ViewRecord
from strandline.errors import CatalogError
from tests.catalog.clock import START, SetClock

COLUMNS = (Column("day", "date"), Column("total", "decimal(22,2)"))


def add_view(catalog: Catalog, name: str = "daily", **changes: Any) -> ViewRecord:
    given: dict[str, Any] = {
        "kind": "view",
        "sql": f"CREATE MATERIALIZED VIEW {name} AS SELECT ...",
        "options": {"policy": "AUTO"},
        "definition": {"blocks": [{"name": name}]},
        "fingerprint": "f00d",
        "columns": COLUMNS,
        "inputs": ["shop.orders"],
        "location": f"/wh/{name}",
    }
    return catalog.views.add(name, **{**given, **changes})


def test_a_view_is_kept_as_given(catalog: Catalog) -> None:
    added = add_view(catalog, origin="views/daily.sql:1:1")
    assert added == ViewRecord(
        id=added.id,
        name="daily",
        kind="view",
        sql="CREATE MATERIALIZED VIEW daily AS SELECT ...",
        options={"policy": "AUTO"},
        definition={"blocks": [{"name": "daily"}]},
        fingerprint="f00d",
        columns=COLUMNS,
        inputs=("shop.orders",),
        location="/wh/daily",
        origin="views/daily.sql:1:1",
        created_at=START,
    )
    assert catalog.views.get("daily") == added
    assert catalog.views.all() == (added,)


def test_a_name_is_taken_once(catalog: Catalog) -> None:
    add_view(catalog)
    with pytest.raises(CatalogError, match="daily") as raised:
        add_view(catalog, sql="something else")
    assert raised.value.code == "VIEW_EXISTS"
    assert len(catalog.views.all()) == 1


def test_a_replaced_view_keeps_its_id_and_what_was_not_named(catalog: Catalog, clock: SetClock) -> None:
    added = add_view(catalog, origin="views/daily.sql:1:1")
    clock.move(60)
    replaced = catalog.views.replace("daily", sql="SELECT 1", columns=COLUMNS[:1], inputs=("items",), options={})
    assert replaced == ViewRecord(
        **{
            **vars(added),
            "sql": "SELECT 1",
            "columns": COLUMNS[:1],
            "inputs": ("items",),
            "options": {},
        }
    )
    assert catalog.views.get("daily") == replaced


def test_what_is_not_there_is_neither_replaced_nor_dropped(catalog: Catalog) -> None:
    add_view(catalog)
    with pytest.raises(CatalogError, match="there are the views daily") as raised:
        catalog.views.replace("dayly", sql="SELECT 1")
    assert raised.value.code == "VIEW_UNKNOWN"
    with pytest.raises(CatalogError) as raised:
        catalog.views.drop("dayly")
    assert raised.value.code == "VIEW_UNKNOWN"


def test_a_dropped_view_stays_in_history_and_its_id_is_not_used_again(catalog: Catalog, lease: Lease) -> None:
    first = add_view(catalog)
    recorded = catalog.versions.record(first.id, 3, {}, {}, "s1")
    published = catalog.states.publish(None, [StateEntry("daily", first.id, 3, {})], lease)
    catalog.views.drop("daily")
    assert catalog.views.get("daily") is None
    second = add_view(catalog)
    assert second.id > first.id
    assert catalog.versions.all(first.id) == (recorded,)
    assert catalog.versions.baseline(second.id) is None
    assert catalog.states.get(1) == published


def test_dependants_are_the_views_that_name_it_as_input(catalog: Catalog) -> None:
    add_view(catalog, "daily")
    add_view(catalog, "weekly", inputs=["daily", "shop.calendar"])
    add_view(catalog, "daily_top", inputs=["daily"], kind="block")
    assert catalog.views.dependants("daily") == ("weekly", "daily_top")
    assert catalog.views.dependants("shop.orders") == ("daily",)
    assert catalog.views.dependants("weekly") == ()


def test_the_baseline_is_the_version_recorded_last(catalog: Catalog, clock: SetClock) -> None:
    assert catalog.versions.baseline(7) is None
    catalog.versions.record(7, 12, {"a": 1}, {"shop.orders": {"lsn": 1}}, "s1")
    clock.move(-60)
    # A table that was made anew counts its versions from the start.
    last = catalog.versions.record(7, 0, {"a": 2}, {"shop.orders": {"lsn": 2}}, "s2")
    assert last == VersionRecord(7, 0, {"a": 2}, {"shop.orders": {"lsn": 2}}, "s2", clock.now)
    assert catalog.versions.baseline(7) == last
    assert [one.version for one in catalog.versions.all(7)] == [12, 0]


def test_a_step_records_one_version_of_a_view(catalog: Catalog, clock: SetClock) -> None:
    first = catalog.versions.record(7, 12, {"a": 1}, {}, "s1")
    clock.move(60)
    assert catalog.versions.record(7, 12, {"a": 1}, {}, "s1") == first
    catalog.versions.record(8, 1, {}, {}, "s1")
    assert catalog.versions.all(7) == (first,)


def test_a_step_cannot_record_another_version_afterwards(catalog: Catalog) -> None:
    first = catalog.versions.record(7, 12, {"a": 1}, {}, "s1")
    with pytest.raises(CatalogError) as raised:
        catalog.versions.record(7, 13, {"a": 1}, {}, "s1")
    assert raised.value.code == "VERSION_CONFLICT"
    assert catalog.versions.all(7) == (first,)
