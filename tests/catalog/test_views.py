"""Views, and the versions of their tables."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy.exc import IntegrityError

from strandline.algebra.schema import Column
from strandline.catalog import (
    AddView,
    Catalog,
    DropView,
    Lease,
    RedefineView,
    ReplaceView,
    StateEntry,
    VersionRecord,
    ViewChange,
    ViewRecord,
)
from strandline.errors import CatalogError
from tests.catalog.clock import START, SetClock

COLUMNS = (Column("day", "date"), Column("total", "decimal(22,2)"))


def values(name: str, **changes: Any) -> dict[str, Any]:
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
    return {**given, **changes}


def add_view(catalog: Catalog, name: str = "daily", **changes: Any) -> ViewRecord:
    return catalog.views.add(name, **values(name, **changes))


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
        dropped_at=None,
    )
    assert catalog.views.get("daily") == added
    assert catalog.views.by_id(added.id) == added
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


def change_nothing_there(catalog: Catalog) -> dict[str, Callable[[], object]]:
    return {
        "replace": lambda: catalog.views.replace("dayly", sql="SELECT 1"),
        "redefine": lambda: catalog.views.redefine("dayly", **values("dayly")),
        "drop": lambda: catalog.views.drop("dayly"),
    }


@pytest.mark.parametrize("how", ["replace", "redefine", "drop"])
def test_what_is_not_there_is_not_changed(catalog: Catalog, how: str) -> None:
    there = add_view(catalog)
    add_view(catalog, "dayly")
    catalog.views.drop("dayly")
    with pytest.raises(CatalogError, match="there are the views daily;") as raised:
        change_nothing_there(catalog)[how]()
    assert raised.value.code == "VIEW_UNKNOWN"
    assert catalog.views.all() == (there,)


def test_a_dropped_view_stays_in_history_and_its_id_is_not_used_again(
    catalog: Catalog, lease: Lease, clock: SetClock
) -> None:
    first = add_view(catalog)
    recorded = catalog.versions.record(first.id, 3, {}, {}, "s1")
    published = catalog.states.publish(None, [StateEntry("daily", first.id, 3, {})], lease)
    clock.move(60)
    catalog.views.drop("daily")
    dropped = ViewRecord(**{**vars(first), "dropped_at": START + timedelta(seconds=60)})
    assert catalog.views.get("daily") is None
    assert catalog.views.all() == ()
    assert catalog.views.by_id(first.id) == dropped
    second = add_view(catalog, sql="something else")
    assert second.id > first.id
    assert catalog.views.get("daily") == second
    assert catalog.views.all() == (second,)
    assert catalog.views.by_id(first.id) == dropped
    assert catalog.versions.all(first.id) == (recorded,)
    assert catalog.versions.baseline(second.id) is None
    assert catalog.states.get(1) == published


def test_an_id_that_was_never_given_out_has_no_view(catalog: Catalog) -> None:
    added = add_view(catalog)
    assert catalog.views.by_id(added.id + 1) is None


def test_a_name_may_be_dropped_many_times(catalog: Catalog) -> None:
    ids = []
    for _ in range(3):
        ids.append(add_view(catalog).id)
        catalog.views.drop("daily")
    found = [catalog.views.by_id(one) for one in ids]
    assert all(one is not None and one.name == "daily" and one.dropped_at == START for one in found)


def test_a_redefined_view_has_a_new_id_and_its_old_definition_can_be_read(catalog: Catalog, clock: SetClock) -> None:
    first = add_view(catalog, origin="views/daily.sql:1:1")
    clock.move(60)
    second = catalog.views.redefine(
        "daily", **values("daily", sql="SELECT 1", fingerprint="beef", inputs=["items"], location="/wh/daily-2")
    )
    now = START + timedelta(seconds=60)
    assert second == ViewRecord(
        **{
            **vars(first),
            "id": second.id,
            "sql": "SELECT 1",
            "fingerprint": "beef",
            "inputs": ("items",),
            "location": "/wh/daily-2",
            "origin": None,
            "created_at": now,
        }
    )
    assert second.id > first.id
    assert catalog.views.get("daily") == second
    assert catalog.views.all() == (second,)
    assert catalog.views.by_id(first.id) == ViewRecord(**{**vars(first), "dropped_at": now})
    third = catalog.views.redefine("daily", **values("daily"))
    assert third.id > second.id
    assert catalog.views.by_id(first.id) == ViewRecord(**{**vars(first), "dropped_at": now})


def test_replacing_leaves_older_definitions_alone(catalog: Catalog) -> None:
    first = add_view(catalog)
    second = catalog.views.redefine("daily", **values("daily"))
    replaced = catalog.views.replace("daily", sql="SELECT 1")
    assert replaced.id == second.id
    old = catalog.views.by_id(first.id)
    assert old is not None
    assert old.sql == first.sql


@pytest.mark.parametrize(("name", "spelled"), [("Daily", "dAILY"), ("Übersicht", "üBERSICHT"), ("ΟΔΟΣ", "οδος")])
def test_a_name_is_the_same_in_any_case_and_keeps_its_spelling(catalog: Catalog, name: str, spelled: str) -> None:
    first = add_view(catalog, name)
    assert catalog.views.get(spelled) == first
    with pytest.raises(CatalogError, match=f"the block {spelled} cannot be added; there is the view {name} ") as raised:
        add_view(catalog, spelled, kind="block")
    assert raised.value.code == "VIEW_EXISTS"
    assert catalog.views.replace(spelled, location="/elsewhere").name == name
    second = catalog.views.redefine(spelled, **values(spelled))
    assert second.name == name
    assert catalog.views.all() == (second,)
    catalog.views.drop(spelled)
    assert catalog.views.get(name) is None
    assert add_view(catalog, spelled).name == spelled


def test_the_database_itself_keeps_names_of_living_views_apart(catalog: Catalog, execute: Callable[..., None]) -> None:
    add_view(catalog)
    copy = (
        "insert into views (name, kind, sql, options, definition, fingerprint, columns, inputs, location, "
        "created_at, dropped_at) select 'DAILY', kind, sql, options, definition, fingerprint, columns, inputs, "
        "location, created_at, {} from views where name = 'daily'"
    )
    execute(copy.format("created_at"))
    execute(copy.format("created_at"))
    with pytest.raises(IntegrityError):
        execute(copy.format("null"))


def test_dependants_are_the_views_that_name_it_as_input(catalog: Catalog) -> None:
    add_view(catalog, "daily")
    add_view(catalog, "weekly", inputs=["daily", "shop.calendar"])
    add_view(catalog, "daily_top", inputs=["daily"], kind="block")
    assert catalog.views.dependants("daily") == ("weekly", "daily_top")
    assert catalog.views.dependants("shop.orders") == ("daily",)
    assert catalog.views.dependants("weekly") == ()


def test_dependants_are_living_views(catalog: Catalog) -> None:
    add_view(catalog, "daily")
    add_view(catalog, "weekly", inputs=["daily"])
    add_view(catalog, "monthly", inputs=["daily"])
    add_view(catalog, "yearly", inputs=["daily"])
    catalog.views.drop("weekly")
    catalog.views.redefine("monthly", **values("monthly", inputs=["shop.orders"]))
    assert catalog.views.dependants("daily") == ("yearly",)


def test_dependants_name_the_view_as_it_is_spelled(catalog: Catalog) -> None:
    add_view(catalog, "Daily")
    add_view(catalog, "weekly", inputs=["Daily"])
    assert catalog.views.dependants("dAILY") == ("weekly",)


def test_changes_are_carried_out_together_and_in_order(catalog: Catalog, clock: SetClock) -> None:
    daily, weekly, old = add_view(catalog), add_view(catalog, "weekly"), add_view(catalog, "old")
    other = add_view(catalog, "other")
    clock.move(60)
    now = START + timedelta(seconds=60)
    made = catalog.views.apply(
        [
            DropView("OLD"),
            AddView("daily_1", **values("daily_1", kind="block")),
            RedefineView("Daily", **values("daily", inputs=["daily_1"])),
            ReplaceView("weekly", {"location": "/elsewhere", "inputs": ("daily",), "columns": COLUMNS[:1]}),
        ]
    )
    assert list(made) == ["daily_1", "daily", "weekly"]
    assert all(catalog.views.get(name) == record for name, record in made.items())
    assert made["daily_1"].kind == "block"
    assert made["daily"].id not in {daily.id, weekly.id, old.id, other.id}
    assert made["daily"].created_at == made["daily_1"].created_at == now
    assert made["weekly"] == ViewRecord(
        **{**vars(weekly), "location": "/elsewhere", "inputs": ("daily",), "columns": COLUMNS[:1]}
    )
    assert catalog.views.all() == (made["weekly"], other, made["daily_1"], made["daily"])
    assert catalog.views.by_id(old.id) == ViewRecord(**{**vars(old), "dropped_at": now})
    assert catalog.views.by_id(daily.id) == ViewRecord(**{**vars(daily), "dropped_at": now})


def test_changes_of_one_view_build_on_each_other(catalog: Catalog) -> None:
    first = add_view(catalog)
    made = catalog.views.apply(
        [
            ReplaceView("daily", {"sql": "SELECT 1"}),
            DropView("daily"),
            AddView("DAILY", **values("DAILY")),
            RedefineView("daily", **values("daily", fingerprint="beef")),
            ReplaceView("daily", {"location": "/elsewhere"}),
            AddView("passing", **values("passing")),
            DropView("Passing"),
        ]
    )
    assert list(made) == ["DAILY"]
    assert (made["DAILY"].fingerprint, made["DAILY"].location) == ("beef", "/elsewhere")
    assert catalog.views.all() == (made["DAILY"],)
    old = catalog.views.by_id(first.id)
    assert old is not None
    assert (old.sql, old.dropped_at) == ("SELECT 1", START)


def test_no_changes_change_nothing(catalog: Catalog) -> None:
    added = add_view(catalog)
    assert catalog.views.apply([]) == {}
    assert catalog.views.all() == (added,)


@pytest.mark.parametrize(
    ("refused", "code"),
    [
        (AddView("WEEKLY", **values("WEEKLY")), "VIEW_EXISTS"),
        (AddView("fresh", **values("fresh")), "VIEW_EXISTS"),
        (RedefineView("old", **values("old")), "VIEW_UNKNOWN"),
        (ReplaceView("old", {"sql": "SELECT 1"}), "VIEW_UNKNOWN"),
        (DropView("old"), "VIEW_UNKNOWN"),
    ],
)
def test_changes_are_carried_out_all_or_none(catalog: Catalog, refused: ViewChange, code: str) -> None:
    before = tuple(add_view(catalog, name) for name in ("daily", "weekly", "old"))
    with pytest.raises(CatalogError) as raised:
        catalog.views.apply(
            [
                DropView("old"),
                RedefineView("daily", **values("daily", fingerprint="beef")),
                ReplaceView("weekly", {"sql": "SELECT 1"}),
                AddView("fresh", **values("fresh")),
                refused,
            ]
        )
    assert raised.value.code == code
    assert catalog.views.all() == before
    assert catalog.views.by_id(before[-1].id + 1) is None


def test_a_definition_that_cannot_be_stored_does_not_drop_its_predecessor(catalog: Catalog) -> None:
    added = add_view(catalog)
    with pytest.raises(Exception, match="not a JSON value"):
        catalog.views.redefine("daily", **values("daily", definition={"blocks": object()}))
    assert catalog.views.all() == (added,)


def test_other_processes_see_all_changes_or_none(
    catalog: Catalog, url: str, python: Callable[..., subprocess.Popen[str]]
) -> None:
    """A redefinition is never seen as a missing view."""
    add_view(catalog)
    add_view(catalog, "weekly")
    code = """
from strandline.catalog import Catalog
with Catalog.open(sys.argv[1]) as catalog:
    print("ready", flush=True)
    seen = set()
    while "done" not in seen:
        views = {one.name: one.fingerprint for one in catalog.views.all()}
        assert sorted(views) == ["daily", "weekly"] and len(set(views.values())) == 1, views
        seen.update(views.values())
"""
    reader = python(code, url)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    for fingerprint in [*(f"f{n}" for n in range(20)), "done"]:
        new = [RedefineView(name, **values(name, fingerprint=fingerprint)) for name in ("daily", "weekly")]
        catalog.views.apply(new)
    assert reader.communicate(timeout=30) == ("", "")


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
