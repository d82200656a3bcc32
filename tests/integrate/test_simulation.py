"""Random views, updates and orders of events: every algorithm keeps what it promises.

``make campaign-simulate`` tries many more, and shrinks what fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random

import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Operand
from strandline.integrate.algorithms import ALGORITHMS, create
from strandline.integrate.levels import check, check_vectors
from strandline.integrate.network import Network
from strandline.integrate.schedules import every_run, run_at_random
from strandline.integrate.trace import parse_trace
from tests.integrate.random_cases import Case
from tests.integrate.shrinking import shrunk
from tests.integrate.simulation import PROMISING, assert_as_promised, case_for, options_for, simulated


def test_every_algorithm_is_simulated() -> None:
    assert set(PROMISING) | {"basic", "eca-key-as-printed"} == set(ALGORITHMS)


@pytest.mark.parametrize("name", PROMISING)
def test_the_promised_level_is_reached(name: str) -> None:
    for seed in range(50):
        assert_as_promised(name, Random(seed))


@pytest.mark.parametrize("name", PROMISING)
def test_a_crash_between_any_two_events_changes_nothing(name: str) -> None:
    for seed in range(1000, 1015):
        assert_as_promised(name, Random(seed), forgetful=True)


@pytest.mark.parametrize("name", ["basic", "eca-key-as-printed"])
def test_an_algorithm_without_a_level_is_caught(name: str) -> None:
    verdicts = [simulated(name, Random(seed))[1] for seed in range(200)]
    caught = [verdict for verdict in verdicts if not verdict.reaches("STRONG")]
    assert len(caught) > 10
    assert any("weak" not in verdict.holds for verdict in caught)


def test_a_failure_is_shrunk_to_what_makes_it_fail() -> None:
    name = "eca-key-as-printed"
    seed = next(seed for seed in range(200) if not simulated(name, Random(seed))[1].reaches("STRONG"))
    random = Random(seed)
    case = case_for(name, random)
    found = shrunk(name, case, options_for(case, random), "STRONG")
    assert found is not None
    # A tuple is inserted, and deleted while its query is open.
    assert sum(len(script) for script in found.case.scripts.values()) == 2
    assert str(found).startswith("eca-key-as-printed fails: ")


@pytest.mark.parametrize("name", ["strobe", "sweep", "grouped", "parallel-groups", "c-strobe"])
def test_several_sources_pass_without_an_order_of_their_transactions(name: str) -> None:
    for seed in range(15):
        random = Random(seed)
        case = case_for(name, random)
        network = Network(create(name, case.view), case.relations, case.scripts)
        run_at_random(network, random)
        last = tuple(len(case.scripts[source]) for source in case.view.sources)
        verdict = check_vectors(partial(_view_at, case), last, network.warehouse.shown)
        promised = network.warehouse.algorithm.promises
        assert promised is not None
        assert verdict.reaches(promised), (seed, verdict.witnesses)


def _view_at(case: Case, vector: tuple[int, ...]) -> SignedBag:
    """The view with so many transactions of each source."""
    relations = dict(case.relations)
    for source, count in zip(case.view.sources, vector, strict=True):
        for deltas in case.scripts[source][:count]:
            for relation, rows in deltas.items():
                relations[relation] = relations[relation] + rows

    def rows_of(operand: Operand) -> SignedBag:
        assert isinstance(operand, At)
        return relations[operand.relation]

    return evaluate(case.view.plan, rows_of)


SMALL = {
    "rels": {"r1": "WX", "r2": "XY"},
    "project": "WY",
    "keys": {"r1": "W", "r2": "Y"},
    "init": {"r1": "([1,2])", "r2": "([2,3])"},
    "updates": ["insert(r2,[2,4])", ["delete(r1,[1,2])", "insert(r1,[5,2])"], "delete(r2,[2,4])"],
}
APART = {**SMALL, "sources": {"r1": "s1", "r2": "s2"}}


@pytest.mark.parametrize("name", PROMISING)
def test_every_order_of_events_of_a_small_case_keeps_the_promise(name: str) -> None:
    one_source = name in ("rv", "eca", "eca-key", "eca-local", "lca")
    trace = parse_trace({**(SMALL if one_source else APART), "algorithm": name})
    scripts: dict[str, list[Mapping[str, SignedBag]]] = {}
    for transaction in trace.transactions:
        scripts.setdefault(transaction.source, []).append(transaction.deltas)
    runs = 0
    for network, _ in every_run(lambda: Network(create(name, trace.view), trace.relations, scripts)):
        verdict = check(network.arrivals, network.warehouse.shown)
        promised = network.warehouse.algorithm.promises
        assert promised is not None
        assert verdict.reaches(promised), verdict.witnesses
        runs += 1
    assert runs > 1
