"""The TPC-D warehouse of Figure 3.4: what the linear metric predicts."""

from __future__ import annotations

from itertools import permutations

import pytest

from strandline.propagate.strategies.dual_stage import dual_stage
from strandline.propagate.strategies.expression_graph import construct_seg
from strandline.propagate.strategies.expressions import Comp, Strategy, written
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.min_work import min_work
from strandline.propagate.strategies.min_work_single import min_work_single
from strandline.propagate.strategies.multi_version import multi_version, pinned_work
from strandline.propagate.strategies.orderings import desired_ordering
from strandline.propagate.strategies.partitions import Blocks, ordered_partitions, view_strategy
from strandline.propagate.strategies.prune import prune
from strandline.propagate.strategies.sizes import Size
from strandline.propagate.strategies.work import LinearWork
from tests.propagate.strategies.figures import SIZES_TPC_D, TPC_D, UNKNOWN

METRIC = LinearWork(TPC_D, SIZES_TPC_D)
SUMMARIES = ("Q3", "Q5", "Q10")


def strong(graph: ViewGraph, ordering: str) -> Strategy:
    found = construct_seg(graph, (*ordering, *SUMMARIES)).sort()
    assert found is not None
    return found


def test_min_work() -> None:
    assert desired_ordering(TPC_D, SIZES_TPC_D)[:6] == tuple("LOCSNR")
    assert written(min_work(TPC_D, SIZES_TPC_D)) == (
        "Comp(Q3,{L}), Comp(Q5,{L}), Comp(Q10,{L}), Inst(L), Comp(Q3,{O}), Comp(Q5,{O}), Comp(Q10,{O}), Inst(O), "
        "Comp(Q3,{C}), Inst(Q3), Comp(Q5,{C}), Comp(Q10,{C}), Inst(C), Comp(Q5,{S}), Inst(S), Comp(Q5,{N}), "
        "Comp(Q10,{N}), Inst(N), Inst(Q10), Comp(Q5,{R}), Inst(R), Inst(Q5)"
    )


def test_the_reverse_order() -> None:
    reverse = strong(TPC_D, "RNSCOL")
    assert sorted(map(str, reverse)) == sorted(map(str, min_work(TPC_D, SIZES_TPC_D)))
    assert METRIC.of(reverse) == 79_081_855


def test_dual_stage_has_85_terms() -> None:
    comps = [step for step in dual_stage(TPC_D) if isinstance(step, Comp)]
    assert {step.view: 2 ** len(step.over) - 1 for step in comps} == {"Q3": 7, "Q5": 63, "Q10": 15}


@pytest.mark.parametrize(
    ("view", "single", "dual", "ratio"),
    [
        ("Q3", 15_482_430, 26_779_255, 1.730),
        ("Q5", 36_190_861, 262_780_687, 7.261),
        ("Q10", 22_368_602, 60_444_796, 2.702),
    ],
)
def test_each_summary_table_alone(view: str, single: int, dual: int, ratio: float) -> None:
    alone = TPC_D.alone(view)
    metric = LinearWork(alone, SIZES_TPC_D)
    assert metric.of(min_work_single(TPC_D, SIZES_TPC_D, view)) == single
    assert metric.of(dual_stage(alone)) == dual
    assert round(dual / single, 3) == ratio


def test_the_whole_warehouse() -> None:
    best, dual, reverse = (
        METRIC.of(found) for found in (min_work(TPC_D, SIZES_TPC_D), dual_stage(TPC_D), strong(TPC_D, "RNSCOL"))
    )
    assert (best, dual, reverse) == (72_511_647, 348_474_492, 79_081_855)
    assert (round(dual / best, 3), round(reverse / best, 3)) == (4.806, 1.091)
    assert pinned_work(SIZES_TPC_D, multi_version(TPC_D, SIZES_TPC_D)) == best


def test_all_720_orderings_have_strategies_and_the_desired_one_is_best() -> None:
    works = {ordering: METRIC.of(strong(TPC_D, "".join(ordering))) for ordering in permutations("COLSNR")}
    ranked = sorted(works, key=lambda ordering: works[ordering])
    assert len(ranked) == 720
    assert (ranked[0], ranked[-1]) == (tuple("LOCSNR"), tuple("RNSCOL"))
    assert works[ranked[0]] < works[ranked[1]]
    assert METRIC.of(prune(TPC_D, SIZES_TPC_D)) == works[ranked[0]]


def test_the_empty_delta_of_region_can_be_left_out() -> None:
    graph = TPC_D.holding(["R"])
    metric = LinearWork(graph, SIZES_TPC_D)
    best, dual, reverse = (
        metric.of(found) for found in (min_work(graph, SIZES_TPC_D), dual_stage(graph), strong(graph, "RNSCOL"))
    )
    assert (best, dual, reverse) == (65_616_531, 213_636_668, 71_420_615)
    assert (round(dual / best, 3), round(reverse / best, 3)) == (3.256, 1.088)


def q3(sizes: dict[str, Size], *blocks: str) -> float:
    return LinearWork(TPC_D.alone("Q3"), sizes).of(view_strategy("Q3", tuple(map(frozenset, blocks))))


RATIOS = {
    ("L", "O", "C"): 1.0000,
    ("L", "C", "O"): 1.0087,
    ("O", "L", "C"): 1.0291,
    ("C", "L", "O"): 1.0465,
    ("O", "C", "L"): 1.0669,
    ("C", "O", "L"): 1.0756,
    ("LO", "C"): 1.0969,
    ("C", "LO"): 1.1424,
    ("CL", "O"): 1.1841,
    ("O", "CL"): 1.1948,
    ("L", "CO"): 1.3692,
    ("CO", "L"): 1.4748,
    ("CLO",): 1.7297,
}


def test_the_13_strategies_of_q3() -> None:
    everything: set[Blocks] = set(ordered_partitions("COL"))
    assert {tuple(map(frozenset, blocks)) for blocks in RATIOS} == everything
    best = q3(SIZES_TPC_D, "L", "O", "C")
    assert {blocks: round(q3(SIZES_TPC_D, *blocks) / best, 4) for blocks in RATIOS} == RATIOS


@pytest.mark.parametrize(
    ("percent", "single", "two_way", "dual"),
    [
        (1, 15.32, 15.61, 23.34),
        (5, 15.39, 16.22, 24.87),
        (10, 15.48, 16.98, 26.78),
        (20, 15.66, 18.51, 30.60),
        (30, 15.84, 20.04, 34.43),
    ],
)
def test_q3_over_change_rates(percent: int, single: float, two_way: float, dual: float) -> None:
    sizes = {
        view: Size.growing(SIZES_TPC_D[view].before, -round(SIZES_TPC_D[view].before * percent / 100)) for view in "COL"
    }
    sizes["Q3"] = UNKNOWN
    works = {blocks: q3(sizes, *blocks) / 1e6 for blocks in RATIOS}
    assert [round(works[blocks], 2) for blocks in (("L", "O", "C"), ("LO", "C"), ("CLO",))] == [single, two_way, dual]
    assert min(works, key=lambda blocks: works[blocks]) == ("L", "O", "C")
    two_blocks = [blocks for blocks in works if len(blocks) == 2]
    assert min(two_blocks, key=lambda blocks: works[blocks]) == ("LO", "C")
