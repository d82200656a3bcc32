"""The choice for the whole graph, where it differs from the best choice of each node on its own."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from random import Random

import pytest

from strandline.cost import graph
from strandline.cost.calibration import Prices
from strandline.cost.charges import Amounts, Extent, Work, compared
from strandline.cost.graph import Candidate, weigh
from strandline.cost.model import FIXED, handicapped

PRICES = Prices(FIXED, FIXED)
MANY_TERMS = Work(1_000, 8, Extent(800_000), Extent(20_000), Extent(6_000_000), install="overwrite")
"""Dear by changes (3.7), cheaper anew (1.0)."""
ONE_TERM = Work(1_000, 1, Extent(300_000), Extent(50), partials=2, install="overwrite")
"""Cheap by changes (0.5), dearer anew (0.6)."""


def node(name: str, work: Work, *reads: str, **more: object) -> Candidate:
    rows = 0 if reads else work.delta_rows
    found = Candidate(name, reads, rows, work.table, "either", work, after_comparing=work.install)
    return replace(found, **more)  # type: ignore[arg-type]


def recomputed(*candidates: Candidate) -> set[str]:
    return set(weigh(candidates, PRICES).recomputed)


def test_a_node_that_nobody_reads_is_recomputed_if_that_is_clearly_cheaper() -> None:
    assert recomputed(node("v", MANY_TERMS)) == {"v"}
    assert recomputed(node("v", ONE_TERM)) == set()


def test_it_is_recomputed_below_others_while_comparing_costs_less_than_it_saves() -> None:
    assert recomputed(node("v", MANY_TERMS), node("w", ONE_TERM, "v")) == {"v"}


def test_it_is_not_if_what_comparing_costs_is_more_than_it_saves() -> None:
    large = replace(MANY_TERMS, terms=4, looked_up=Extent(3_000_000), table=Extent(500_000))
    below, above = node("v", large), node("w", ONE_TERM, "v", way="changes")
    found = weigh([below, above], PRICES)
    assert found.alone == {"v"}
    assert found.recomputed == frozenset()
    assert found.total < found.total_alone


def test_it_is_not_if_views_above_would_get_the_whole_table_as_a_delta() -> None:
    """Sums of floats, computed anew, differ in their last digits."""
    above = [node(name, ONE_TERM, "v", way="changes") for name in ("w", "x", "y", "z")]
    large = replace(MANY_TERMS, table=Extent(300_000))
    assert recomputed(node("v", large), *above) == {"v"}
    assert recomputed(node("v", large, exact=False), *above) == set()


def test_views_above_are_recomputed_too_if_that_saves_comparing() -> None:
    """Alone, ``w`` would take in changes; but then the versions of ``v`` have to be compared for it."""
    below = node("v", replace(MANY_TERMS, table=Extent(900_000)))
    above = node("w", replace(ONE_TERM, inputs=Extent(900_000), looked_up=Extent(900_000), terms=2), "v")
    alone = weigh([above], PRICES)
    assert alone.recomputed == frozenset()
    found = weigh([below, above], PRICES)
    assert found.recomputed == {"v", "w"}
    assert found.total < found.total_alone


@pytest.mark.parametrize("way", ["changes", "full"])
def test_what_is_settled_stays(way: str) -> None:
    above = replace(ONE_TERM, inputs=Extent(900_000))
    assert recomputed(node("v", MANY_TERMS, way=way), node("w", above, "v")) == set()


def test_a_node_over_little_data_is_weighed_like_others() -> None:
    """Where all sources are small its way is settled before; beside large ones it has no privilege."""
    little = replace(MANY_TERMS, inputs=Extent(1_000))
    assert recomputed(node("v", little)) == {"v"}
    assert recomputed(node("v", little, way="changes")) == set()


def test_bytes_and_files_that_recomputing_reads_count_against_it() -> None:
    assert recomputed(node("v", MANY_TERMS)) == {"v"}
    for inputs in (Extent(800_000, files=2_000), Extent(800_000, bytes=2_000_000_000)):
        assert recomputed(node("v", replace(MANY_TERMS, inputs=inputs))) == set()
    assert recomputed(node("v", replace(MANY_TERMS, shuffled_bytes=400_000_000))) == set()


def test_files_that_the_terms_skip_count_for_changes() -> None:
    skipping = replace(MANY_TERMS, terms=2, looked_up=Extent(10_000, 100_000, 1))
    assert recomputed(node("v", skipping)) == set()
    assert recomputed(node("v", replace(skipping, looked_up=Extent(10_000, 100_000, 1_000)))) == {"v"}


def test_what_comparing_reads_of_a_large_table_counts() -> None:
    below, above = node("v", MANY_TERMS), node("w", ONE_TERM, "v", way="changes")
    assert recomputed(below, above) == {"v"}
    assert recomputed(replace(below, table=Extent(20_000, 2_000_000_000, 40)), above) == set()


def test_changes_are_taken_in_only_if_all_that_go_by_them_save_it_together() -> None:
    changes = ("s.t", "1")
    readers = [node(name, ONE_TERM, leaves=(changes,)) for name in ("v", "w", "x")]
    assert weigh(readers, PRICES, {}).recomputed == set()
    saved = [handicapped(FIXED.full(ONE_TERM)) - FIXED.incremental(ONE_TERM)] * 3
    for seconds, chosen in ((sum(saved) * 0.9, set()), (sum(saved) * 1.1, {"v", "w", "x"})):
        taking_in: dict[tuple[str, str], Amounts] = {changes: {"job": seconds / FIXED.job}}
        assert weigh(readers, PRICES, taking_in).recomputed == chosen
    settled = [*readers, node("y", ONE_TERM, leaves=(changes,), way="changes")]
    assert weigh(settled, PRICES, {changes: {"job": 1_000}}).recomputed == set(), "they are taken in for one of them"


def test_apart_and_together_parts_are_decided_alike() -> None:
    first = [node("v", MANY_TERMS), node("w", ONE_TERM, "v")]
    second = [node("x", ONE_TERM), node("y", MANY_TERMS, "x")]
    both = weigh([first[0], second[0], first[1], second[1]], PRICES)
    assert both.recomputed == weigh(first, PRICES).recomputed | weigh(second, PRICES).recomputed
    assert both.total == pytest.approx(weigh(first, PRICES).total + weigh(second, PRICES).total)


def random_extent(random: Random, most: int) -> Extent:
    rows = random.randrange(1, most + 1)
    return Extent(rows, rows * random.randrange(100), rows // random.randrange(1_000, 1_000_000))


TO_TAKE_IN: dict[tuple[str, str], Amounts] = {("s.t", "1"): {"job": 8}, ("s.t", "2"): {"row_written": 2_000_000}}


def random_graph(random: Random, size: int) -> list[Candidate]:
    found: list[Candidate] = []
    for number in range(size):
        below = random.sample([one.name for one in found], min(len(found), random.randrange(3)))
        inputs = random_extent(random, 2_000_000)
        table = random_extent(random, inputs.rows)
        work = Work(
            random.randrange(1, 20_000), random.randrange(1, 9), inputs, table,
            random_extent(random, 5 * inputs.rows), random_extent(random, table.rows),
            random_extent(random, inputs.rows), shuffled_bytes=random.randrange(100_000_000),
            recomputes_groups=random.random() < 0.2, partials=random.randrange(4),
            install=random.choice(["overwrite", "merge"]),
        )  # fmt: skip
        leaves = tuple(random.sample([*TO_TAKE_IN], random.randrange(3)))
        found.append(node(f"v{number}", work, *below, exact=random.random() < 0.7, leaves=leaves))
    return found


def total(candidates: list[Candidate], chosen: tuple[str, ...]) -> float:
    """What a choice costs: handicaps of what is recomputed, changes, what they take in, and comparisons."""
    taken_in = {leaf for one in candidates if one.name not in chosen for leaf in one.leaves}
    found, rows = sum(FIXED.seconds(TO_TAKE_IN[leaf]) for leaf in taken_in), dict[str, int]()
    for one in candidates:
        assert one.work is not None
        work = replace(one.work, delta_rows=one.leaf_rows + sum(rows[name] for name in one.reads))
        anew = one.name in chosen
        rows[one.name] = one.table.rows if anew and not one.exact else min(work.delta_rows, 2 * one.table.rows)
        found += handicapped(FIXED.full(work)) if anew else FIXED.incremental(work)
        if anew and any(one.name in other.reads and other.name not in chosen for other in candidates):
            found += FIXED.step(compared(one.table, rows[one.name]))
    return found


@pytest.mark.parametrize("seed", range(40))
def test_no_other_choice_costs_less(seed: int) -> None:
    candidates = random_graph(Random(seed), 6)
    best = weigh(candidates, PRICES, TO_TAKE_IN)
    assert best.total == pytest.approx(total(candidates, tuple(best.recomputed)))
    names = [one.name for one in candidates]
    for size in range(len(names) + 1):
        for chosen in combinations(names, size):
            assert total(candidates, chosen) >= best.total - 1e-9
    assert best.total <= best.total_alone + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_a_descent_ends_no_worse_than_each_alone_and_mostly_at_the_best(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    candidates = random_graph(Random(seed), 7)
    best = weigh(candidates, PRICES, TO_TAKE_IN)
    monkeypatch.setattr(graph, "FEW", 0)
    found = weigh(candidates, PRICES, TO_TAKE_IN)
    assert best.total <= found.total + 1e-9 <= found.total_alone + 2e-9
    assert found.total <= 1.1 * best.total


def test_a_large_graph_is_decided_quickly() -> None:
    """A hundred nodes that take in the same changes, in one part: a third of a second."""
    assert len(weigh(random_graph(Random(1), 100), PRICES, TO_TAKE_IN).recomputed) > 0


def test_calibrated_costs_recompute_a_node_only_where_that_is_clearly_cheaper() -> None:
    """By the fixed costs it takes in changes; by dearer terms, recomputing is cheaper by a little or by a lot."""
    few_terms = Work(1_000, 2, Extent(500_000), Extent(20_000), looked_up=Extent(500_000), install="overwrite")
    for term, chosen in ((0.15, set()), (0.25, set()), (1.5, {"v"})):
        dear = replace(FIXED, term=term)
        assert weigh([node("v", few_terms)], Prices(dear, FIXED)).recomputed == chosen, term
    dear = replace(FIXED, term=0.25)
    assert weigh([node("v", few_terms)], Prices(dear, dear)).recomputed == {"v"}
