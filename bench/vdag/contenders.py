"""Which strategies are run against each other."""

from __future__ import annotations

from dataclasses import replace

from bench.vdag.case import Case
from bench.vdag.execution import one_by_one
from bench.vdag.measure import Contender
from strandline.propagate.strategies.dual_stage import dual_stage
from strandline.propagate.strategies.expression_graph import construct_seg
from strandline.propagate.strategies.expressions import Strategy
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.min_work import min_work
from strandline.propagate.strategies.min_work_single import min_work_single
from strandline.propagate.strategies.multi_version import multi_version, pinned_stages, pinned_work
from strandline.propagate.strategies.partitions import Blocks, ordered_partitions, view_strategy
from strandline.propagate.strategies.prune import prune
from strandline.propagate.strategies.stages import stages
from strandline.propagate.strategies.work import LinearWork

MIN_WORK_SINGLE, DUAL, TWO_WAY = "MinWorkSingle", "dual-stage", "best 2-way"
MIN_WORK, REVERSE, PRUNE, PINNED = "MinWork", "RNSCOL", "Prune", "multi-version"


def every_strategy(case: Case, view: str) -> list[Contender]:
    """All strategies of *view*, by what they predict."""
    own = case.alone(view)
    found = [
        _in_sequence(named(blocks), own, view_strategy(view, blocks))
        for blocks in ordered_partitions(own.nodes[view].inputs)
    ]
    return sorted(found, key=lambda contender: contender.work)


def named(blocks: Blocks) -> str:
    """Blocks as the literature writes them: ``L, {C,O}``."""
    return ", ".join(min(block) if len(block) == 1 else f"{{{','.join(sorted(block))}}}" for block in blocks)


def single_and_dual(case: Case, view: str) -> list[Contender]:
    """The best strategy of *view*, and the one with all sources at once."""
    own = case.alone(view)
    return [
        _in_sequence(MIN_WORK_SINGLE, own, min_work_single(own.graph, own.sizes, view)),
        _in_sequence(DUAL, own, dual_stage(own.graph)),
    ]


def in_one_query(contender: Contender) -> Contender:
    """*contender* with the terms of each Comp as one query, in which Spark may share what terms have in common."""
    return replace(contender, label=f"{contender.label}, one query", one_query=True)


def with_best_two_way(case: Case, view: str) -> list[Contender]:
    """Those two, and between them the best strategy of two Comps, as far as the metric says."""
    own = case.alone(view)
    metric = LinearWork(own.graph, own.sizes)
    in_two = (blocks for blocks in ordered_partitions(own.nodes[view].inputs) if len(blocks) == 2)
    strategies = [view_strategy(view, blocks) for blocks in in_two]
    single, dual = single_and_dual(case, view)
    return [single, _in_sequence(TWO_WAY, own, min(strategies, key=metric.of)), dual]


def whole_graph(case: Case) -> list[Contender]:
    """Strategies of the whole graph, one step after another."""
    return [
        _in_sequence(MIN_WORK, case, min_work(case.graph, case.sizes)),
        _in_sequence(PRUNE, case, prune(case.graph, case.sizes)),
        _in_sequence(REVERSE, case, _strongly_consistent(case.graph, "RNSCOL")),
        Contender(PINNED, case, one_by_one(multi_version(case.graph, case.sizes)), _pinned_work(case)),
        _in_sequence(DUAL, case, dual_stage(case.graph)),
    ]


def without_empty_deltas(case: Case) -> list[Contender]:
    """Strategies that leave out the Comps and the Inst of an empty delta (footnote 5)."""
    still = [name for name, delta in case.deltas.items() if not delta.rows]
    graph = case.graph.holding(still)
    metric = LinearWork(graph, case.sizes)
    found = {MIN_WORK: min_work(graph, case.sizes), DUAL: dual_stage(graph)}
    return [
        Contender(f"{label} without {', '.join(still)}", case, one_by_one(strategy), metric.of(strategy))
        for label, strategy in found.items()
    ]


def side_by_side(case: Case, threads: int) -> list[Contender]:
    """Strategies of the whole graph as sequences of sets, with so many threads."""
    metric = LinearWork(case.graph, case.sizes)
    found = {MIN_WORK: min_work(case.graph, case.sizes), DUAL: dual_stage(case.graph)}
    return [
        *(
            Contender(parallel(label), case, stages(case.graph, strategy), metric.of(strategy), threads)
            for label, strategy in found.items()
        ),
        Contender(
            parallel(PINNED), case, pinned_stages(multi_version(case.graph, case.sizes)), _pinned_work(case), threads
        ),
    ]


def parallel(label: str) -> str:
    """The label of a strategy whose steps run side by side."""
    return f"{label}, parallel"


def _in_sequence(label: str, case: Case, strategy: Strategy) -> Contender:
    return Contender(label, case, one_by_one(strategy), LinearWork(case.graph, case.sizes).of(strategy))


def _pinned_work(case: Case) -> float:
    return pinned_work(case.sizes, multi_version(case.graph, case.sizes))


def _strongly_consistent(graph: ViewGraph, ordering: str) -> Strategy:
    found = construct_seg(graph, (*ordering, *graph.derived)).sort()
    assert found is not None, f"{ordering} has no strategy"
    return found
