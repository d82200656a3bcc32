"""Rows that are outlived go together, and a version can be named by another that holds the same."""

from __future__ import annotations

from strandline.algebra.schema import Column
from strandline.catalog import Catalog, Lease, Outlived, StateEntry, Transaction, ViewRecord


def view(catalog: Catalog, name: str) -> ViewRecord:
    return catalog.views.add(
        name,
        kind="view",
        sql="SELECT 1",
        options={},
        definition={},
        fingerprint=name,
        columns=(Column("a", "int"),),
        inputs=(),
        location=f"views/{name}",
    )


def test_what_is_outlived_goes_and_the_rest_stays(catalog: Catalog, lease: Lease) -> None:
    kept, dropped = view(catalog, "kept"), view(catalog, "dropped")
    for number in range(3):
        catalog.versions.record(kept.id, number, {"n": number}, {}, f"k{number}")
        catalog.versions.record(dropped.id, number, {}, {}, f"d{number}")
        catalog.states.publish(None, [StateEntry("kept", kept.id, number, {})], lease)
    catalog.views.drop("dropped")
    catalog.sources.put("shop", "delta", {})
    catalog.leaves.put("shop", "orders", location=None, columns=(), key=(), position=None)
    catalog.unit_of_work.append("shop.orders", [Transaction({"version": n}) for n in range(3)], {"version": 2})
    third = catalog.unit_of_work.since("shop.orders")[2].csn
    outlived = Outlived(
        (1, 2),
        {kept.id: ("k0",), dropped.id: ("d0", "d1", "d2")},
        {(kept.id, "k1"): {}},
        {"shop.orders": third},
        (dropped.id,),
    )
    went = catalog.purging.purge(outlived, lease)
    assert went == {"states": 2, "versions": 4, "transactions": 2, "views": 1}
    assert [state.number for state in catalog.states.all()] == [3]
    assert [(v.version, v.inputs) for v in catalog.versions.all(kept.id)] == [(1, {}), (2, {"n": 2})]
    assert catalog.views.by_id(dropped.id) is None and catalog.views.get("kept") == kept
    assert [t.csn for t in catalog.unit_of_work.since("shop.orders")] == [third]
    assert set(catalog.purging.purge(outlived, lease).values()) == {0}
    assert catalog.states.publish(None, [], lease).number == 4


def test_another_version_takes_the_place_of_one_wherever_it_is_named(catalog: Catalog, lease: Lease) -> None:
    low, high = view(catalog, "low"), view(catalog, "high")
    for version in (1, 2):
        catalog.versions.record(low.id, version, {}, {}, f"l{version}")
        catalog.versions.record(high.id, version, {"low": {"view": low.id, "version": version}}, {}, f"h{version}")
        entries = [StateEntry("low", low.id, version, {}), StateEntry("high", high.id, version, {})]
        catalog.states.publish(None, entries, lease)
    catalog.purging.rename_version(low.id, 2, 7, lease)
    assert [v.version for v in catalog.versions.all(low.id)] == [1, 7]
    assert [v.version for v in catalog.versions.all(high.id)] == [1, 2]
    assert [v.inputs["low"] for v in catalog.versions.all(high.id)] == [
        {"view": low.id, "version": 1},
        {"view": low.id, "version": 7},
    ]
    shown = [(s.entries["low"].version, s.entries["high"].version) for s in catalog.states.all()]
    assert shown == [(7, 2), (1, 1)]
