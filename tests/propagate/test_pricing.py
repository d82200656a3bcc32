"""How steps are run and what they should take, and the order of changed inputs, without anything that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.algebra.block import Method
from strandline.algebra.plan import At, Filter, Join, Plan, Scan
from strandline.algebra.scalar import equality
from strandline.algebra.schema import Column
from strandline.cost.calibration import Prices
from strandline.cost.charges import Charges, Extent, Install, Work
from strandline.cost.model import FIXED
from strandline.propagate.ordering import order_of_changes
from strandline.propagate.plan import Step
from strandline.propagate.pricing import SENT_EVERYWHERE, Reading, computing, installing, priced, shuffled

PRICES = Prices(FIXED, FIXED)
MB = 1 << 20
INPUTS, TABLE = Extent(500_000, 50_000_000, 10), Extent(100_000, 8_000_000, 5)
LOOKED_UP, MATCHED, REGROUPED = Extent(400_000, 9_000_000, 7), Extent(4_000, 300_000, 1), Extent(20_000, 600_000, 2)
WORK = Work(1_000, 2, INPUTS, TABLE, LOOKED_UP, MATCHED, REGROUPED, partials=3)
LITTLE, MUCH = Charges({"job": 1, "row_scanned": 1_000}), Charges({"job": 1, "row_scanned": 10_000_000})


def run(charged: Charges | None, bytes: int) -> Step:
    return priced(Step("", "compute", "v"), charged, bytes, PRICES, 64 * MB)


def test_a_step_is_predicted_in_the_mode_that_it_runs_in() -> None:
    little, much = run(LITTLE, MB), run(MUCH, 10 * MB)
    assert (little.mode, little.partitions) == ("interpreted", None)
    assert little.predicted == FIXED.seconds(LITTLE.amounts) == FIXED.seconds(little.charges)
    assert much.mode == "compiled"
    assert much.predicted == FIXED.seconds(MUCH.compiled) < FIXED.seconds(MUCH.amounts)
    assert much.charges == MUCH.compiled


def test_a_step_over_many_rows_of_few_bytes_is_compiled_without_ceremony() -> None:
    step = run(MUCH, 10 * MB)
    assert (step.small, step.compiled) == (True, True)
    assert "ceremony" not in step.charges
    assert step.run_as == {"small": True, "compiled": True, "partitions": 2}


@pytest.mark.parametrize(
    ("bytes", "statements", "small"), [(63, 1, True), (64, 1, False), (64, 2, True), (128, 2, False)]
)
def test_a_statement_that_reads_much_is_compiled_whatever_it_costs(bytes: int, statements: int, small: bool) -> None:
    step = run(Charges(LITTLE.amounts, statements), bytes * MB)
    assert (step.small, step.compiled) == (small, not small)


@pytest.mark.parametrize("statements", [1, 3])
def test_tables_that_spark_reads_and_writes_are_paid_for_by_the_statement(statements: int) -> None:
    charged = Charges(LITTLE.amounts, statements)
    step = run(charged, 1_000 * MB)
    assert step.charges == {**charged.compiled, "ceremony": statements}
    assert step.predicted == pytest.approx(FIXED.seconds(charged.compiled) + statements * FIXED.ceremony)


@pytest.mark.parametrize(("megabytes", "partitions"), [(10, 2), (320, 10), (100_000, 200)])
def test_much_is_shuffled_in_more_parts(megabytes: int, partitions: int) -> None:
    assert run(MUCH, megabytes * MB).partitions == partitions


def test_what_a_source_does_is_not_predicted() -> None:
    step = run(None, MB)
    assert (step.small, step.mode, step.predicted, step.charges) == (True, "interpreted", None, {})
    much = run(None, 100 * MB)
    assert (much.small, much.mode, much.predicted, much.charges) == (False, "compiled", None, {})


def test_computing_and_installing_add_up_to_what_the_method_was_chosen_by() -> None:
    reading = Reading(WORK)
    for method, cost in (("explicit", FIXED.incremental), ("summary", FIXED.absorbed)):
        steps = [run(of(reading, method), MB).predicted or 0.0 for of in (computing, installing)]  # type: ignore[arg-type]
        assert sum(steps) == pytest.approx(cost(WORK))


@pytest.mark.parametrize(
    ("method", "read"),
    [("explicit", LOOKED_UP + MATCHED), ("summary", LOOKED_UP), ("affected", MATCHED + REGROUPED)],
)
def test_the_bytes_that_a_method_reads_are_those_that_it_is_charged_for(method: Method, read: Extent) -> None:
    assert Reading(WORK).bytes(method) == read.bytes
    assert computing(Reading(WORK), method).amounts["byte_read"] == read.bytes


def test_a_delta_that_is_not_grouped_does_not_read_its_table() -> None:
    assert Reading(replace(WORK, partials=0)).bytes("explicit") == LOOKED_UP.bytes


def test_where_nothing_is_known_to_be_skipped_all_bytes_are_read() -> None:
    unknown = Reading(replace(WORK, matched=None, regrouped=None))
    assert unknown.bytes("affected") == (LOOKED_UP + TABLE + INPUTS).bytes
    assert unknown.installed_bytes == TABLE.bytes
    skipped = Reading(replace(WORK, matched=Extent(), regrouped=Extent()))
    assert skipped.bytes("affected") == 0
    assert skipped.installed_bytes == 0


@pytest.mark.parametrize(("install", "bytes"), [("append", 0), ("overwrite", TABLE.bytes), ("merge", MATCHED.bytes)])
def test_installing_reads_as_much_of_the_table_as_its_way_asks_for(install: Install, bytes: int) -> None:
    assert Reading(replace(WORK, install=install)).installed_bytes == bytes


def test_recomputing_shuffles_what_is_joined_and_not_small_and_what_is_grouped() -> None:
    large, small, table = Extent(10, SENT_EVERYWHERE + 1), Extent(10, SENT_EVERYWHERE), Extent(5, 700)
    assert shuffled([large, small], table, grouped=False) == large.bytes
    assert shuffled([large, large, small], table, grouped=True) == 2 * large.bytes + table.bytes
    assert shuffled([small, small], table, grouped=False) == 0
    assert shuffled([large], table, grouped=False) == 0
    assert shuffled([large], table, grouped=True) == table.bytes


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
