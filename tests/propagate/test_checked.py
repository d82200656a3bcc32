"""Constraints of a view that is recomputed for its cost: changes tell whether they still hold, if they are there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline import Warehouse
from strandline.cost.calibration import Prices
from strandline.cost.charges import Amounts
from strandline.cost.graph import Candidate, LeafChanges, Weighed
from strandline.engine.session import Engine
from strandline.propagate import planner
from strandline.propagate.constraints import ConstraintChecks
from strandline.store.node import Node
from tests.warehouse.test_constraints import FOREIGN_KEY, KEYS, LINES, VIEWS, Lake, assert_verified, declare, shown

pytestmark = pytest.mark.spark


def semi_is_recomputed(candidates: Sequence[Candidate], _: Prices, __: Mapping[LeafChanges, Amounts]) -> Weighed:
    """If there is anything to compute."""
    found = frozenset(one.name for one in candidates if one.name == "semi" and one.work is not None)
    return Weighed(found, 0.0, frozenset(), 0.0)


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
def looked_through(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The nodes for which whole tables are looked through, from here on."""
    found: list[str] = []
    filled = ConstraintChecks.filled

    def noted(self: ConstraintChecks, node: Node, pins: Any) -> Any:
        found.append(node.name)
        return filled(self, node, pins)

    monkeypatch.setattr(ConstraintChecks, "filled", noted)
    return found


def follow(warehouse: Warehouse, *names: str) -> None:
    for name in names:
        policy = "AUTO" if name == "semi" else "INCREMENTAL"
        warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY {policy} AS {VIEWS[name]}")


def test_changes_that_keep_a_constraint_are_looked_at_alone(
    warehouse: Warehouse, lake: Lake, looked_through: list[str]
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


def test_a_change_that_breaks_a_foreign_key_is_found(
    warehouse: Warehouse, lake: Lake, looked_through: list[str]
) -> None:
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
    warehouse: Warehouse, lake: Lake, looked_through: list[str], others: tuple[str, ...]
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
    assert looked_through == ([] if others else ["semi"])
    assert warehouse.states()[0].entries["semi"].version == before
    lake.remove("o_id IS NULL", "lines")
    assert warehouse.refresh().ok
    assert_verified(warehouse, "semi", *others)


def test_where_no_view_takes_the_changes_in_all_is_looked_through(
    warehouse: Warehouse, lake: Lake, looked_through: list[str]
) -> None:
    follow(warehouse, "semi")
    looked_through.clear()
    lake.place(range(6, 7))
    lake.remove("o_id = 1", "orders")
    report = warehouse.refresh()
    assert report.ok and report.views["semi"].strategy == "full"
    assert "CONSTRAINT_SET_ASIDE" in str(report.views["semi"].how)
    assert looked_through == ["semi"]
    assert_verified(warehouse, "semi")


def test_a_view_that_is_asked_for_anew_is_looked_through(
    warehouse: Warehouse, lake: Lake, looked_through: list[str]
) -> None:
    follow(warehouse, "semi", "joined")
    looked_through.clear()
    lake.place(range(6, 8))
    assert warehouse.plan("semi", full=True).node("semi").checked == ()
    assert warehouse.refresh("semi", full=True).ok
    assert looked_through == ["semi"]
    assert warehouse.refresh().ok
    assert_verified(warehouse, "semi", "joined")
