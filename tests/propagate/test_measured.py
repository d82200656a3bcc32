"""Prediction and measurement of each step, and what is made of them."""

from __future__ import annotations

import pytest

from strandline import Warehouse
from strandline.algebra.schema import Column
from strandline.cost import calibration
from strandline.cost.model import FIXED
from strandline.sources.memory import MemorySource

pytestmark = pytest.mark.spark

JOINED = "SELECT l.k, s.v FROM s.large l JOIN s.small s ON l.k = s.k"


@pytest.fixture
def source() -> MemorySource:
    source = MemorySource("s")
    for table, rows in (("large", 90), ("small", 3)):
        source.create(table, (Column("k", "bigint"), Column("v", "bigint")))
        source.commit(table, [(number, number) for number in range(rows)])
    return source


def test_a_step_is_stored_with_what_was_predicted_and_what_was_measured(wh: Warehouse, source: MemorySource) -> None:
    wh.sql(f"CREATE MATERIALIZED VIEW v AS {JOINED}")
    source.commit("large", [(2, 5)])
    plan = wh.plan("v")
    wh.refresh(plan)
    planned = {step.kind: step for step in plan.steps}
    install, compute, filled = wh.history("v", 3)
    assert [entry.step.kind for entry in (install, compute, filled)] == ["install", "compute", "recompute"]
    for entry in (install, compute):
        step, result = planned[entry.step.kind], entry.step.result  # type: ignore[index]
        assert result["predicted"] == step.predicted == pytest.approx(FIXED.seconds(step.charges))
        assert result["charges"] == step.charges
        assert result["mode"] == "interpreted"
    measured = compute.step.result["measured"]
    assert isinstance(measured, dict)
    assert measured["jobs"] >= 1  # type: ignore[operator]
    assert measured["rows_read"] == 1, "the changed row; those of a table in memory stand in the statement"
    assert measured["shuffle_bytes"] is not None
    assert filled.step.result["predicted"] is not None


def test_a_plan_shows_what_its_steps_should_take(wh: Warehouse, source: MemorySource) -> None:
    wh.sql(f"CREATE MATERIALIZED VIEW v AS {JOINED}")
    source.commit("large", [(2, 5)])
    plan = wh.plan("v")
    shown = plan.explain()
    assert "costs: fixed" in shown
    for step in plan.steps:
        if step.kind != "publish":
            assert f"{step.kind} {step.subject}: {step.predicted:.2f} s, interpreted" in shown


def test_inputs_of_a_join_are_taken_to_change_in_the_order_of_their_growth(wh: Warehouse, source: MemorySource) -> None:
    wh.sql(f"CREATE MATERIALIZED VIEW v AS {JOINED}")
    source.commit("small", [(7, 7), (8, 8)])
    source.commit("large", [], [(1, 1), (2, 2), (3, 3)])
    plan = wh.plan("v")
    assert plan.node("v").order == ("s.large", "s.small")
    assert "order of inputs: s.large, s.small" in plan.explain()
    wh.refresh(plan)
    assert wh.verify("v").ok
    source.commit("small", [], [(7, 7), (8, 8)])
    source.commit("large", [(1, 1), (2, 2), (9, 9)])
    assert wh.plan("v").node("v").order == ("s.small", "s.large")
    wh.refresh()
    assert wh.verify("v").ok


def test_costs_are_calibrated_once_there_is_enough_history(
    wh: Warehouse, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "ENOUGH", 5)
    wh.sql(f"CREATE MATERIALIZED VIEW v AS {JOINED}")
    assert wh.status().costs == {"costs": "fixed", "calibration": None}
    for number in range(2):
        source.commit("large", [(2, 100 + number)])
        wh.refresh()
    found = wh.status().costs["calibration"]
    assert found["steps"] >= 5
    told = wh.status().costs["costs"]
    assert told.startswith(
        f"calibrated from {found['steps']} steps" if found["error"] < found["error_before"] else "fixed;"
    )
    source.commit("large", [(2, 200)])
    assert f"costs: {told}" in wh.plan("v").explain()


def test_each_step_is_compiled_or_not_by_what_it_reads(
    wh: Warehouse, source: MemorySource, monkeypatch: pytest.MonkeyPatch
) -> None:
    wh.sql(f"CREATE MATERIALIZED VIEW v AS {JOINED}")
    wh.sql("CREATE MATERIALIZED VIEW w AS SELECT k FROM s.small")
    source.commit("small", [(7, 7)])
    monkeypatch.setattr(FIXED.__class__, "mode", lambda self, charged: _many(charged.amounts))
    modes = {
        (step.kind, step.subject): step.compiled for step in wh.plan().steps if step.kind in ("compute", "install")
    }
    assert modes == {
        ("compute", "v"): True,
        ("install", "v"): False,
        ("compute", "w"): False,
        ("install", "w"): False,
    }


def _many(amounts: dict[str, float]) -> str:
    """Looking up 90 rows is much; the install of a view writes 4."""
    return "compiled" if amounts.get("row_scanned", 0) > 50 else "interpreted"
