"""The checker tells the levels apart, and says what is wrong."""

from __future__ import annotations

import pytest

from strandline.integrate.levels import check, check_vectors

LADDER = ("convergence", "weak", "consistency", "strong", "complete")


@pytest.mark.parametrize(
    ("source", "shown", "holds"),
    [
        ("ABA", "ABAB", ("weak",)),
        ("ABAB", "AB", ("convergence", "weak", "consistency", "strong")),
        ("AB", "A", ("weak", "consistency")),
        ("AB", "ACB", ("convergence",)),
        ("ABC", "ACBC", ("convergence", "weak")),
        ("ABAB", "ABAB", LADDER),
        ("AABB", "ABBB", LADDER),
        ("A", "A", LADDER),
        ("ABC", "ABBC", LADDER),
        ("ABC", "AC", ("convergence", "weak", "consistency", "strong")),
    ],
)
def test_levels_are_order_preserving_maps(source: str, shown: str, holds: tuple[str, ...]) -> None:
    verdict = check(source, shown)
    assert verdict.holds == holds
    assert set(verdict.holds) | set(verdict.witnesses) == set(LADDER)


def test_a_witness_names_the_states() -> None:
    assert check("AB", "A").witnesses["convergence"] == "the last state is A, and the source's last is B"
    assert check("AB", "ACB").witnesses["weak"] == "state 1, C, is no state of the source"
    assert "state 3, B," in check("ABA", "ABAB").witnesses["consistency"]
    assert "from 2 on" in check("ABA", "ABAB").witnesses["consistency"]
    assert check("ABAB", "AB").witnesses["complete"] == "the source's state 2, A, is never shown"
    assert check("ABC", "AC").witnesses["complete"] == "the source's state 1, B, is never shown"


@pytest.mark.parametrize(
    ("shown", "reached"), [("ABC", "COMPLETE"), ("AC", "STRONG"), ("ADC", "CONVERGENT"), ("AB", None)]
)
def test_the_level_reached_is_one_that_a_view_can_be_declared_with(shown: str, reached: str | None) -> None:
    assert check("ABC", shown).reached == reached


def test_a_better_level_reaches_a_lesser_one() -> None:
    strong = check("ABC", "AC")
    assert [strong.reaches("CONVERGENT"), strong.reaches("STRONG"), strong.reaches("COMPLETE")] == [True, True, False]


# Two sources with one transaction each: the view is the pair of what it has seen of either.


def pair(vector: tuple[int, ...]) -> str:
    return f"{vector[0]}{vector[1]}"


@pytest.mark.parametrize(
    ("shown", "holds"),
    [
        (["00", "10", "11"], LADDER),
        (["00", "01", "11"], LADDER),
        (["00", "11"], ("convergence", "weak", "consistency", "strong")),
        (["00", "10", "01", "11"], ("convergence", "weak")),
        (["00", "10"], ("consistency",)),
        (["00", "22", "11"], ("convergence",)),
    ],
)
def test_without_a_common_order_any_interleaving_counts(shown: list[str], holds: tuple[str, ...]) -> None:
    assert check_vectors(pair, (1, 1), shown).holds == holds


def test_a_path_may_pass_states_with_the_same_view() -> None:
    assert check_vectors(lambda v: str(min(v)), (2, 2), ["0", "1", "2"]).reached == "COMPLETE"
    assert check_vectors(lambda v: str(sum(v)), (2, 2), ["0", "2", "4"]).reached == "STRONG"
