"""What a step is charged for: the rows, bytes and files that it reads, and nothing that it skips."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from strandline.cost.charges import (
    Charges,
    Extent,
    Work,
    compared,
    computed,
    ingested,
    installed,
    merged,
    recomputed,
    summed,
)
from strandline.cost.model import FIXED

INPUTS, TABLE = Extent(1_000_000, 80_000_000, 100), Extent(50_000, 4_000_000, 10)
LOOKED_UP, MATCHED = Extent(300_000, 6_000_000, 20), Extent(5_000, 400_000, 1)
REGROUPED = Extent(40_000, 3_000_000, 4)

PLAIN = Work(1_000, 2, INPUTS, TABLE, LOOKED_UP, MATCHED, REGROUPED, shuffled_bytes=70_000_000)
GROUPED = replace(PLAIN, partials=3)
ANEW = replace(GROUPED, recomputes_groups=True)


def read(charged: Charges) -> tuple[float, float]:
    """The bytes and files that are charged."""
    return charged.amounts.get("byte_read", 0), charged.amounts.get("file", 0)


def of(*extents: Extent) -> tuple[float, float]:
    total = sum(extents, Extent())
    return total.bytes, total.files


def test_extents_add_up() -> None:
    assert Extent(1, 20, 3) + Extent(4, 50, 6) == Extent(5, 70, 9)
    assert sum([MATCHED, Extent()], Extent()) == MATCHED


def test_a_delta_reads_what_its_terms_look_up() -> None:
    charged = computed(PLAIN)
    assert read(charged) == of(LOOKED_UP)
    assert charged.amounts["row_scanned"] == LOOKED_UP.rows


def test_a_delta_of_groups_reads_what_is_stored_of_them_too() -> None:
    charged = computed(GROUPED)
    assert read(charged) == of(LOOKED_UP, MATCHED)
    assert charged.amounts["row_scanned"] == LOOKED_UP.rows + MATCHED.rows


def test_a_summary_delta_does_not_read_the_table() -> None:
    assert read(summed(GROUPED)) == of(LOOKED_UP)


def test_groups_that_are_computed_anew_read_their_rows_instead() -> None:
    charged = computed(ANEW)
    assert read(charged) == of(REGROUPED, MATCHED)
    assert read(computed(replace(PLAIN, recomputes_groups=True))) == of(REGROUPED)
    assert charged.amounts["row_scanned"] == REGROUPED.rows + MATCHED.rows


def test_of_groups_that_are_computed_anew_no_more_rows_are_aggregated_than_are_read() -> None:
    """A thousand of fifty thousand groups have some twenty thousand of a million rows."""
    assert computed(ANEW).amounts["row_aggregated"] == pytest.approx(3 * 20_000)
    few = replace(ANEW, regrouped=Extent(100, 1_000, 1))
    assert computed(few).amounts["row_aggregated"] == 3 * 100
    assert computed(few).amounts["row_processed"] == few.delta_rows + 100


def test_where_nothing_is_known_to_be_skipped_all_is_read() -> None:
    unknown = replace(ANEW, matched=None, regrouped=None)
    assert read(computed(unknown)) == of(LOOKED_UP, INPUTS, TABLE)
    assert read(merged(unknown)) == of(TABLE)
    nothing = replace(ANEW, matched=Extent(), regrouped=Extent())
    assert read(computed(nothing)) == (0, 0)
    assert read(merged(nothing)) == (0, 0)


def test_a_merge_reads_the_part_of_the_table_in_which_rows_are_looked_for() -> None:
    charged = merged(GROUPED)
    assert read(charged) == of(MATCHED)
    assert charged.amounts["row_processed"] == 2 * MATCHED.rows, "the delta is joined with it twice"
    assert installed(replace(GROUPED, install="merge")) == charged
    assert read(installed(replace(PLAIN, install="append"))) == (0, 0)


def test_changing_rows_of_a_file_reads_all_of_it() -> None:
    files = Extent(20_000, 1_600_000, 1)
    held = replace(GROUPED, holding=files)
    assert read(merged(held)) == of(files)
    assert merged(held).amounts["row_processed"] == 2 * files.rows
    assert computed(held) == computed(GROUPED), "who only looks for rows skips parts of files"
    charged = installed(replace(held, install="replace"))
    assert charged.amounts == {"commit": 1, "file": 1, "row_replaced": files.rows, "row_processed": 1_000}
    charged = installed(replace(held, install="mark"))
    assert charged.amounts == {"commit": 2, "file": 1, "row_copied": files.rows, "row_written": 1_000}


def test_recomputing_reads_all_inputs_and_shuffles() -> None:
    charged = recomputed(GROUPED)
    assert read(charged) == of(INPUTS)
    assert charged.amounts["byte_shuffled"] == 70_000_000


@pytest.mark.parametrize("step", [computed, summed, merged, installed])
def test_a_delta_that_is_sent_to_what_it_meets_is_not_charged_for_shuffling(step: Callable[[Work], Charges]) -> None:
    assert not step(ANEW).amounts.get("byte_shuffled")


@pytest.mark.parametrize("step", [computed, summed])
def test_a_larger_one_is(step: Callable[[Work], Charges]) -> None:
    assert step(replace(ANEW, delta_shuffled_bytes=9_000)).amounts["byte_shuffled"] == 9_000


def test_comparing_reads_both_versions() -> None:
    charged = compared(TABLE, 1_000)
    assert read(charged) == of(TABLE, TABLE)
    assert charged.amounts["row_processed"] == 2 * TABLE.rows
    assert charged.amounts["row_written"] == 1_000


def test_taking_changes_in_reads_files_that_were_rewritten_before_and_after() -> None:
    charged = ingested(1_000, MATCHED)
    assert read(charged) == of(MATCHED, MATCHED)
    assert charged.amounts["row_processed"] == 1_000 + 2 * MATCHED.rows
    assert read(ingested(1_000)) == (0, 0)


@pytest.mark.parametrize(
    ("wider", "steps"),
    [
        (replace(ANEW, looked_up=LOOKED_UP + Extent(0, 10_000_000, 50)), {"summed"}),
        (replace(ANEW, matched=MATCHED + Extent(0, 10_000_000, 50)), {"computed", "merged", "installed"}),
        (replace(ANEW, regrouped=REGROUPED + Extent(0, 10_000_000, 50)), {"computed"}),
        (replace(ANEW, inputs=INPUTS + Extent(0, 10_000_000, 50)), {"recomputed"}),
        (replace(ANEW, shuffled_bytes=100_000_000), {"recomputed"}),
    ],
)
def test_a_step_is_dearer_by_what_it_reads_more_and_by_nothing_else(wider: Work, steps: set[str]) -> None:
    """In either mode: what is read from files is not cheaper where rows are compiled."""
    for step in (computed, summed, merged, installed, recomputed):
        for mode in ("amounts", "compiled"):
            before, after = (FIXED.seconds(getattr(step(work), mode)) for work in (ANEW, wider))
            assert (after > before) == (step.__name__ in steps), step.__name__


def test_bytes_and_files_cost_the_same_in_either_mode_and_rows_do_not() -> None:
    charged = recomputed(GROUPED)
    for name in ("byte_read", "byte_shuffled", "file"):
        assert charged.compiled[name] == charged.amounts[name] > 0
    assert charged.compiled["row_processed"] < charged.amounts["row_processed"]
