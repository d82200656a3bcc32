"""Constraints of a view that is recomputed for its cost: changes tell whether they still hold, if they are there.

If they are not, a foreign key that held waits until changes are computed by it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline import Warehouse
from strandline.algebra.checks import Check, Checks
from strandline.algebra.constraints import Constraint
from strandline.algebra.plan import State
from strandline.cost.calibration import Prices
from strandline.cost.charges import Amounts
from strandline.cost.graph import Candidate, LeafChanges, Weighed
from strandline.engine.session import Engine
from strandline.propagate import planner, sharing
from tests.warehouse.test_constraints import FOREIGN_KEY, KEYS, LINES, VIEWS, Lake, assert_verified, declare, shown

pytestmark = pytest.mark.spark


PRICED = "SELECT l.o_id, l.line, o.total FROM shop.lines l LEFT JOIN shop.orders o ON l.o_id = o.o_id"

Looked = list[tuple[str, str]]

FOREIGN = "foreign key shop.lines(o_id) -> shop.orders(o_id)"


def semi_is_recomputed(candidates: Sequence[Candidate], _: Prices, __: Mapping[LeafChanges, Amounts]) -> Weighed:
    """If there is anything to compute."""
    found = frozenset(one.name for one in candidates if one.name == "semi" and one.work is not None)
    return Weighed(found, 0.0, frozenset(), 0.0)


def all_are_recomputed(candidates: Sequence[Candidate], _: Prices, __: Mapping[LeafChanges, Amounts]) -> Weighed:
    return Weighed(frozenset(one.name for one in candidates if one.work is not None))


def nothing_is_recomputed(_: Sequence[Candidate], __: Prices, ___: Mapping[LeafChanges, Amounts]) -> Weighed:
    return Weighed()


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path / "lake")


@pytest.fixture
def warehouse(tmp_path: Path, engine: Engine, lake: Lake, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """One whose view ``semi`` is recomputed for its cost, while ``joined`` is brought up to date by changes."""
    monkeypatch.setattr(planner, "weigh", semi_is_recomputed)
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        warehouse.add_source("shop", kind="delta", path=str(lake.folder), keys=KEYS)
        declare(warehouse, foreign_keys=[FOREIGN_KEY], not_null=["o_id"])
        yield warehouse


@pytest.fixture
def looked_through(monkeypatch: pytest.MonkeyPatch) -> Looked:
    """Which constraints were looked at in whole tables, from here on, and in which state."""
    found: Looked = []
    whole = Checks.whole

    def noted(self: Checks, constraint: Constraint, state: State) -> tuple[Check, ...]:
        found.append(("before" if state == "current" else "after", str(constraint)))
        return whole(self, constraint, state)

    monkeypatch.setattr(Checks, "whole", noted)
    return found


def follow(warehouse: Warehouse, *names: str) -> None:
    for name in names:
        policy = "AUTO" if name == "semi" else "INCREMENTAL"
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY {policy} AS {VIEWS[name]}")


def test_changes_that_keep_a_constraint_are_looked_at_alone(
    warehouse: Warehouse, lake: Lake, looked_through: Looked
) -> None:
    follow(warehouse, "semi", "joined")
    looked_through.clear()
    for changed in (range(6, 9), range(9, 11)):
        lake.place(changed)
        assert warehouse.plan().node("semi").checked == ("shop.lines", "shop.orders")
        report = warehouse.refresh()
        assert report.ok and report.views["semi"].strategy == "full"
        assert report.views["semi"].reason.code == "COST"
        assert report.views["semi"].how is None
        assert_verified(warehouse, "semi", "joined")
    assert looked_through == []
    lake.place(range(11, 12))
    assert not any("not used" in line for line in shown(warehouse, "semi")), "the constraints were found to hold"


def test_a_change_that_breaks_a_foreign_key_is_found(warehouse: Warehouse, lake: Lake, looked_through: Looked) -> None:
    follow(warehouse, "semi", "joined")
    looked_through.clear()
    lake.place(range(6, 7))
    lake.remove("o_id = 1", "orders")
    report = warehouse.refresh()
    assert report.ok and report.views["semi"].strategy == "full"
    assert "CONSTRAINT_SET_ASIDE: foreign key shop.lines(o_id) -> shop.orders(o_id)" in str(report.views["semi"].how)
    assert looked_through == []
    assert_verified(warehouse, "semi", "joined")
    lake.remove("o_id = 1", "lines")
    assert any("not used before" in line for line in shown(warehouse, "semi")), "no version notes that it holds"
    assert warehouse.refresh().views["semi"].how is None
    lake.remove("o_id = 2")
    assert not any("not used" in line for line in shown(warehouse, "semi"))
    assert warehouse.refresh().ok
    assert_verified(warehouse, "semi", "joined")


@pytest.mark.parametrize("others", [("joined",), ()], ids=["by changes", "as a whole"])
def test_a_null_where_none_may_be_is_an_error_either_way(
    warehouse: Warehouse, lake: Lake, looked_through: Looked, others: tuple[str, ...]
) -> None:
    follow(warehouse, "semi", *others)
    looked_through.clear()
    before = warehouse.states()[0].entries["semi"].version
    write_deltalake(
        lake.path("lines"), pa.Table.from_pylist([{"o_id": None, "line": 0, "qty": 1}], LINES), mode="append"
    )
    report = warehouse.refresh()
    assert not report.ok
    assert "CONSTRAINT_VIOLATED: not null shop.lines(o_id)" in str(report.views["semi"].problem)
    assert looked_through == ([] if others else [("after", "not null shop.lines(o_id)")])
    assert warehouse.states()[0].entries["semi"].version == before
    lake.remove("o_id IS NULL", "lines")
    assert warehouse.refresh().ok
    assert_verified(warehouse, "semi", *others)


def test_where_no_view_takes_the_changes_in_a_foreign_key_waits_for_the_next_that_does(
    warehouse: Warehouse, lake: Lake, looked_through: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(warehouse, "semi")
    for changed in (range(6, 7), range(7, 8)):
        looked_through.clear()
        lake.place(changed)
        report = warehouse.refresh()
        assert report.ok and report.views["semi"].strategy == "full"
        assert looked_through == [("after", "not null shop.lines(o_id)")]
    monkeypatch.setattr(planner, "weigh", nothing_is_recomputed)
    looked_through.clear()
    lake.place(range(8, 9), lines=False)
    assert any(FOREIGN in line and "looked at in full first" in line for line in shown(warehouse, "semi"))
    report = warehouse.refresh()
    assert report.views["semi"].strategy == "incremental" and report.views["semi"].how is None
    assert report.views["semi"].rows_inserted == 0
    assert looked_through == [("before", FOREIGN)]
    assert_verified(warehouse, "semi")
    looked_through.clear()
    lake.place(range(9, 10))
    assert not any("looked at" in line for line in shown(warehouse, "semi"))
    assert warehouse.refresh().ok
    assert looked_through == []
    assert_verified(warehouse, "semi")


def test_a_foreign_key_that_was_broken_while_it_waited_is_not_used(
    warehouse: Warehouse, lake: Lake, looked_through: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(warehouse, "semi")
    lake.place(range(6, 7))
    lake.remove("o_id = 1", "orders")
    report = warehouse.refresh()
    assert report.views["semi"].strategy == "full" and report.views["semi"].how is None
    monkeypatch.setattr(planner, "weigh", nothing_is_recomputed)
    looked_through.clear()
    lake.place(range(1, 2), lines=False)
    report = warehouse.refresh()
    assert report.views["semi"].strategy != "full"
    assert report.views["semi"].rows_inserted == 2, "the order came back under its lines"
    assert f"CONSTRAINT_SET_ASIDE: {FOREIGN}" in str(report.views["semi"].how)
    assert looked_through == [("before", FOREIGN), ("after", FOREIGN)]
    assert_verified(warehouse, "semi")
    lake.remove("o_id = 2")
    assert not any("looked at" in line or "not used" in line for line in shown(warehouse, "semi")), "it holds again"
    report = warehouse.refresh()
    assert report.ok and report.views["semi"].how is None
    assert_verified(warehouse, "semi")


def test_what_comes_back_to_views_above_is_seen_there_though_the_key_was_taken_to_hold(
    warehouse: Warehouse, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the key held, lines with their orders would only be added by orders and lines that only come."""
    monkeypatch.setattr(planner, "weigh", all_are_recomputed)
    warehouse.sql(f"CREATE MATERIALIZED VIEW priced REFRESH POLICY AUTO AS {PRICED}")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW most AS SELECT line, max(coalesce(total, 1000)) AS most FROM priced GROUP BY line"
    )
    lake.place(range(6, 7))
    lake.remove("o_id = 1", "orders")
    assert warehouse.refresh().views["priced"].strategy == "full"
    monkeypatch.setattr(planner, "weigh", nothing_is_recomputed)
    lake.place(range(7, 8))
    lake.place(range(1, 2), lines=False)
    assert warehouse.plan().node("priced").insert_only, "as far as can be told before it is looked at"
    report = warehouse.refresh()
    assert report.ok and "CONSTRAINT_SET_ASIDE" in str(report.views["priced"].how)
    assert_verified(warehouse, "priced", "most")


def test_a_key_is_looked_at_in_what_is_still_there_of_tables_that_did_not_change(
    warehouse: Warehouse, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    follow(warehouse, "semi")
    lake.place(range(6, 7))
    assert warehouse.refresh().views["semi"].strategy == "full"
    monkeypatch.setattr(planner, "weigh", nothing_is_recomputed)
    orders = DeltaTable(lake.path("orders"))
    orders.optimize.compact()
    orders.vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)
    lake.remove("o_id = 2", "lines")
    report = warehouse.refresh()
    assert report.ok and report.views["semi"].strategy == "incremental"
    assert_verified(warehouse, "semi")


def test_views_that_were_recomputed_share_the_delta_of_a_join_by_a_key_that_is_looked_at_first(
    warehouse: Warehouse, lake: Lake, looked_through: Looked, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(planner, "weigh", all_are_recomputed)
    names = [f"most_of_{least}" for least in range(4)]
    for least, name in enumerate(names):
        query = VIEWS["joined"].replace("GROUP", f"AND l.qty >= {least} GROUP")
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY AUTO AS {query}")
    lake.place(range(6, 7))
    assert {view.strategy for view in warehouse.refresh().views.values()} == {"full"}
    monkeypatch.setattr(planner, "weigh", nothing_is_recomputed)
    monkeypatch.setattr(sharing, "LEAST_SAVING", 0.0)
    looked_through.clear()
    lake.place(range(7, 9))
    lake.update("o_id = 3")
    lake.remove("o_id = 2")
    assert [set(shared.readers) for shared in warehouse.plan().shared] == [set(names)]
    report = warehouse.refresh()
    assert report.ok and not any(view.how for view in report.views.values())
    assert {*looked_through} == {("before", FOREIGN)}
    assert_verified(warehouse, *names)


def test_a_view_that_is_asked_for_anew_is_looked_through(
    warehouse: Warehouse, lake: Lake, looked_through: Looked
) -> None:
    follow(warehouse, "semi", "joined")
    looked_through.clear()
    lake.place(range(6, 8))
    assert warehouse.plan("semi", full=True).node("semi").checked == ()
    assert warehouse.refresh("semi", full=True).ok
    assert ("after", FOREIGN) in looked_through
    assert warehouse.refresh().ok
    assert_verified(warehouse, "semi", "joined")
