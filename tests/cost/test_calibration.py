"""Constants from measured steps."""

from __future__ import annotations

import time
from dataclasses import fields, replace
from datetime import UTC, datetime
from random import Random
from typing import Any

import pytest

from strandline.cost.calibration import ENOUGH, Calibration, Prices, calibrated, prices
from strandline.cost.charges import Charges, Extent, Work, computed, installed, recomputed
from strandline.cost.model import FIXED, CostModel, LinearCosts

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OTHER_MACHINE = LinearCosts(
    job=0.05, term=0.6, commit=0.4, merge=3.0, ceremony=2.5, byte_read=8e-9, row_scanned=2e-6, row_processed=4e-6
)
MUCH = 10_000_000
"""Bytes above which Spark reads and writes the tables of what it compiles."""

Measured = list[tuple[dict[str, Any], float | None]]


def history(costs: LinearCosts, steps: int, seed: int = 1, noise: float = 0.1) -> Measured:
    """Steps of all kinds, as they would be measured where *costs* are the truth."""
    random, found = Random(seed), Measured()
    for _ in range(steps):
        rows = int(10 ** random.uniform(3, 7.5))
        inputs, table, looked_up = (
            extent(random, read) for read in (rows, rows // random.choice([1, 10, 1_000]), rows * random.randint(0, 20))
        )
        work = Work(
            rows // 1_000, random.randint(1, 8), inputs, table, looked_up, shuffled_bytes=rows * random.randint(0, 80),
            partials=random.choice([0, 3]), install=random.choice(["append", "overwrite", "merge"]),
        )  # fmt: skip
        charged = random.choice([computed, installed, recomputed])(work)
        by_spark = {"ceremony": charged.statements} if inputs.bytes > MUCH else {}
        amounts = random.choice([charged.amounts, {**charged.compiled, **by_spark}])
        found.append(({"charges": dict(amounts)}, costs.seconds(amounts) * random.lognormvariate(0, noise)))
    return found


def extent(random: Random, rows: int) -> Extent:
    """So many rows, in files and columns of all kinds."""
    return Extent(rows, int(rows * 10 ** random.uniform(0, 2.5)), rows // 10 ** random.randint(4, 7) + 1)


def factors(found: Calibration | None, costs: LinearCosts) -> dict[str, float]:
    assert found is not None
    return {f.name: getattr(found.costs, f.name) / getattr(costs, f.name) for f in fields(LinearCosts)}


def test_few_steps_are_not_enough() -> None:
    assert calibrated(history(OTHER_MACHINE, ENOUGH - 1), FIXED, NOW) is None


def test_where_the_fixed_constants_are_right_they_stay() -> None:
    for name, factor in factors(calibrated(history(FIXED, 400), FIXED, NOW), FIXED).items():
        assert 0.6 < factor < 1.6, name


def test_constants_of_another_machine_are_found() -> None:
    found = calibrated(history(OTHER_MACHINE, 400), FIXED, NOW)
    assert found is not None and found.better
    assert found.steps == 400
    assert found.error < 0.15 < found.error_before
    off = factors(found, OTHER_MACHINE)
    for name in ("term", "commit", "merge", "ceremony", "byte_read", "row_scanned", "row_processed"):
        assert 0.6 < off[name] < 1.6, (name, off[name])


def test_what_was_never_charged_stays_as_it_was() -> None:
    commits = [({"charges": {"commit": 1.0}}, 0.6)] * 100
    found = factors(calibrated(commits, FIXED, NOW), FIXED)
    assert found.pop("commit") == pytest.approx(4, rel=0.15)
    assert set(found.values()) == {1.0}


def test_no_constant_vanishes_or_turns_negative() -> None:
    free = [({"charges": {"job": 1.0, "row_scanned": 1e6 * n}}, 0.01) for n in range(100)]
    assert min(factors(calibrated(free, FIXED, NOW), FIXED).values()) >= 0.05


def test_pauses_of_the_machine_count_for_little() -> None:
    calm = history(OTHER_MACHINE, 300)
    disturbed = [
        (result, (seconds or 0) + 30 if place % 10 == 0 else seconds) for place, (result, seconds) in enumerate(calm)
    ]
    there, here = (factors(calibrated(steps, FIXED, NOW), FIXED) for steps in (calm, disturbed))
    for name in ("term", "merge", "row_scanned"):
        assert here[name] == pytest.approx(there[name], rel=0.4), name


def test_new_steps_outweigh_old_ones() -> None:
    """Newest first: the machine became four times faster."""
    slow = LinearCosts(**{f.name: 4 * getattr(FIXED, f.name) for f in fields(LinearCosts)})
    steps = [*history(FIXED, 200), *history(slow, 200, seed=2)]
    new, old = (factors(calibrated(found, FIXED, NOW), FIXED)["term"] for found in (steps, steps[::-1]))
    assert new < 2 < old


def test_steps_that_started_the_engine_or_were_resumed_are_left_out() -> None:
    steps = history(FIXED, ENOUGH)
    assert calibrated([*steps[:-1], ({**steps[-1][0], "cold": True}, 9.0)], FIXED, NOW) is None
    assert calibrated([*steps[:-1], ({**steps[-1][0], "resumed": True}, 9.0)], FIXED, NOW) is None
    assert calibrated([*steps, ({"rows": 3}, 1.0), ({}, None)], FIXED, NOW) is not None


def test_it_is_kept_as_text() -> None:
    found = calibrated(history(OTHER_MACHINE, 50), FIXED, NOW)
    assert found is not None
    assert Calibration.from_text(found.to_text()) == found


def test_a_warehouse_without_a_calibration_or_with_a_bad_one_uses_fixed_costs() -> None:
    assert prices(None, FIXED) == Prices(FIXED, FIXED, "fixed")
    bad = prices(Calibration(OTHER_MACHINE, 30, 0.5, 0.4, "").to_text(), FIXED)
    assert bad.costs is FIXED
    assert bad.told == "fixed; 30 steps give no better ones (median error 50%, of the fixed ones 40%)"
    good = prices(Calibration(OTHER_MACHINE, 30, 0.2, 0.4, "").to_text(), FIXED)
    assert good.costs == OTHER_MACHINE
    assert good.told == "calibrated from 30 steps, median error 20%, of the fixed ones 40%"


def test_calibrated_costs_change_a_choice_only_where_that_is_clearly_cheaper() -> None:
    def cheapest(costs: CostModel) -> str:
        assert isinstance(costs, LinearCosts)
        return "terms" if costs.term < costs.merge else "merge"

    def cost_of(costs: CostModel, chosen: str) -> float:
        return costs.seconds({"term": 1} if chosen == "terms" else {"merge": 1})

    for merge, chosen in ((0.9, "terms"), (0.7, "merge")):
        other = replace(FIXED, term=1.0, merge=merge)
        assert Prices(other, FIXED).choose(cheapest, cost_of) == chosen
    assert Prices(FIXED, FIXED).choose(cheapest, cost_of) == "terms"


def test_calibrating_takes_no_time_to_speak_of() -> None:
    steps = history(OTHER_MACHINE, 400)
    calibrated(steps, FIXED, NOW)
    took = []
    for _ in range(5):
        began = time.perf_counter()
        calibrated(steps, FIXED, NOW)
        took.append(time.perf_counter() - began)
    assert min(took) < 0.1


@pytest.mark.parametrize("rows", [1_000, 10_000_000])
def test_many_rows_are_worth_compiling(rows: int) -> None:
    charged = Charges({"job": 1, "row_scanned": rows})
    assert FIXED.mode(charged) == ("interpreted" if rows == 1_000 else "compiled")
    assert FIXED.step(charged) == min(FIXED.seconds(charged.amounts), FIXED.seconds(charged.compiled))
