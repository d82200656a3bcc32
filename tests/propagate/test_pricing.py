"""How steps are run and what they should take, and the order of changed inputs, without anything that runs."""

from __future__ import annotations

import pytest

from strandline.algebra.plan import At, Filter, Join, Plan, Scan
from strandline.algebra.scalar import equality
from strandline.algebra.schema import Column
from strandline.cost.calibration import Prices
from strandline.cost.charges import Charges, Work
from strandline.cost.model import FIXED
from strandline.propagate.ordering import order_of_changes
from strandline.propagate.plan import Step
from strandline.propagate.pricing import Reading, computing, installing, priced

PRICES = Prices(FIXED, FIXED)
MB = 1 << 20
LITTLE, MUCH = Charges({"job": 1, "row_scanned": 1_000}), Charges({"job": 1, "row_scanned": 10_000_000})


def run(charged: Charges | None, bytes: int) -> Step:
    return priced(Step("", "compute", "v"), charged, bytes, PRICES, 64 * MB)


def test_a_step_is_predicted_in_the_mode_that_it_runs_in() -> None:
    little, much = run(LITTLE, MB), run(MUCH, 10 * MB)
    assert (little.small, little.partitions) == (True, None)
    assert little.predicted == FIXED.seconds(LITTLE.amounts) == FIXED.seconds(little.charges)
    assert not much.small
    assert much.predicted == FIXED.seconds(MUCH.compiled) < FIXED.seconds(MUCH.amounts)
    assert much.charges == MUCH.compiled


@pytest.mark.parametrize(
    ("bytes", "statements", "small"), [(63, 1, True), (64, 1, False), (64, 2, True), (128, 2, False)]
)
def test_a_statement_that_reads_much_is_compiled_whatever_it_costs(bytes: int, statements: int, small: bool) -> None:
    assert run(Charges(LITTLE.amounts, statements), bytes * MB).small == small


@pytest.mark.parametrize(("megabytes", "partitions"), [(10, 2), (320, 10), (100_000, 200)])
def test_much_is_shuffled_in_more_parts(megabytes: int, partitions: int) -> None:
    assert run(MUCH, megabytes * MB).partitions == partitions


def test_what_a_source_does_is_not_predicted() -> None:
    step = run(None, MB)
    assert (step.small, step.predicted, step.charges) == (True, None, {})
    assert not run(None, 100 * MB).small


def test_computing_and_installing_add_up_to_what_the_method_was_chosen_by() -> None:
    work = Work(1_000, 2, 500_000, 100_000, looked_up_rows=400_000, partials=3)
    reading = Reading(work)
    for method, cost in (("explicit", FIXED.incremental), ("summary", FIXED.absorbed)):
        steps = [run(of(reading, method), MB).predicted or 0.0 for of in (computing, installing)]  # type: ignore[arg-type]
        assert sum(steps) == pytest.approx(cost(work))


def scan(name: str) -> Scan:
    return Scan(At(name), name, (Column("a", "bigint"),))


JOINED: Plan = Filter(Join((scan("l"), scan("o"), scan("c")), (equality("l.a", "o.a"),)), equality("l.a", "c.a"))
GROWTH = {"l": -50, "o": 7, "c": 0}


def test_what_shrinks_most_is_taken_to_change_first() -> None:
    """MinWorkSingle: by |V'| - |V|, increasing."""
    assert order_of_changes(JOINED, ["o", "c", "l"], GROWTH.__getitem__) == ("l", "c", "o")
    assert order_of_changes(JOINED, ["o", "c"], GROWTH.__getitem__) == ("c", "o")


def test_there_is_no_order_where_it_makes_no_difference() -> None:
    assert order_of_changes(JOINED, ["o"], GROWTH.__getitem__) == ()
    assert order_of_changes(JOINED, ["o", "l"], lambda _: 3) == ()
    assert order_of_changes(scan("o"), ["o", "l"], GROWTH.__getitem__) == ()
