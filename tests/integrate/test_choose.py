"""The algorithm that is chosen, and what the reason says."""

from __future__ import annotations

import pytest

from strandline.errors import IntegrateError
from strandline.integrate.algorithms import ALGORITHMS
from strandline.integrate.choose import SourceFacts, choose, quiet_after
from strandline.integrate.natural_join import natural_join
from strandline.integrate.partition import connected
from strandline.sql.statements import Consistency

SLOW = SourceFacts("shop", updates_per_second=1, latency=0.01, relations=3)
STEADY = SourceFacts("shop", updates_per_second=1000, latency=0.05, relations=3)


def sources(*rates: float, latency: float = 0.01) -> list[SourceFacts]:
    return [SourceFacts(f"s{number}", rate, latency) for number, rate in enumerate(rates)]


@pytest.mark.parametrize(
    ("level", "source", "keys", "algorithm"),
    [
        ("STRONG", SLOW, False, "eca"),
        ("STRONG", SLOW, True, "eca-key"),
        ("CONVERGENT", SLOW, False, "eca"),
        ("COMPLETE", SLOW, True, "lca"),
        ("STRONG", STEADY, True, "lca"),
        ("STRONG", STEADY, False, "lca"),
    ],
)
def test_one_source(level: Consistency, source: SourceFacts, keys: bool, algorithm: str) -> None:
    assert choose(level, [source], keys=keys).algorithm == algorithm


@pytest.mark.parametrize(
    ("level", "rates", "keys", "algorithm"),
    [
        ("STRONG", (1, 1, 1), True, "strobe"),
        ("STRONG", (1, 1, 1), False, "sweep"),
        ("COMPLETE", (1, 1, 1), True, "sweep"),
        ("STRONG", (10, 10, 10), False, "grouped-by-frequency"),
        ("COMPLETE", (15, 15, 15, 15), True, "parallel-groups"),
        ("COMPLETE", (1000, 1000, 1000), True, "grouped-by-frequency"),
    ],
)
def test_several_sources(level: Consistency, rates: tuple[float, ...], keys: bool, algorithm: str) -> None:
    assert choose(level, sources(*rates), keys=keys).algorithm == algorithm


def test_groups_join_where_it_is_known_what_joins() -> None:
    relations = {"r0": "AB", "r1": "BC", "r2": "CD", "r3": "DE"}
    homes = {"r0": "s0", "r1": "s1", "r2": "s2", "r3": "s3"}
    view = natural_join(relations, list(relations.items()), "A", (), {}, homes)
    rates = sources(10, 1, 1, 10)
    assert choose("COMPLETE", rates, keys=False).groups == (("s0", "s3"), ("s1", "s2"))
    assert choose("COMPLETE", rates, keys=False, view=view).groups == (("s0", "s1"), ("s2", "s3"))


def test_sources_that_join_with_one_in_the_middle_only_are_not_grouped_without_it() -> None:
    relations = {"r0": "AX", "r1": "BY", "r2": "CZ", "r3": "XYZ"}
    homes = {"r0": "s0", "r1": "s1", "r2": "s2", "r3": "s3"}
    view = natural_join(relations, list(relations.items()), "A", (), {}, homes)
    found = choose("COMPLETE", sources(10, 10, 10, 10), keys=False, view=view)
    assert connected(view, found.groups)


def test_what_is_chosen_exists_and_promises_what_is_wanted() -> None:
    for level in ("CONVERGENT", "STRONG", "COMPLETE"):
        for rate in (0, 0.1, 5, 50, 5000):
            for count in (1, 2, 5):
                for keys in (True, False):
                    found = choose(level, sources(*[rate] * count), keys=keys)
                    assert found.algorithm in ALGORITHMS
                    assert found.reason.startswith(f"{found.algorithm}: ")
                    if level == "COMPLETE":
                        assert found.algorithm not in ("eca", "eca-key", "strobe")


def test_the_reason_says_what_to_expect() -> None:
    assert choose("COMPLETE", sources(1, 1, 1), keys=True).reason == (
        "sweep: COMPLETE is wanted; 3 sources with 3 relations, 3 updates a second, 0.04 s to visit the others; "
        "updates one after another keep sweep busy 12% of the time; about 4 messages an update, refreshed after 0.04 s"
    )
    starving = choose("STRONG", [STEADY], keys=True)
    assert "would starve" in starving.reason
    assert (starving.messages_per_update, starving.refresh_seconds) == (2, 0.2)


def test_without_auxiliary_views_a_view_that_falls_behind_says_so() -> None:
    found = choose("STRONG", sources(50, 50, 50), keys=False, auxiliary_views=False)
    assert found.algorithm == "sweep"
    assert "falls behind" in found.reason


def test_groups_cover_all_sources_and_the_busiest_stand_alone() -> None:
    found = choose("COMPLETE", sources(60, 2, 2, 2), keys=False)
    assert sorted(name for group in found.groups for name in group) == ["s0", "s1", "s2", "s3"]
    assert ("s0",) in found.groups
    assert found.refresh_seconds < 0.06


def test_a_quiet_moment_comes_later_the_more_there_is_to_do() -> None:
    assert quiet_after(0, 2.0) == 2.0
    assert quiet_after(0.001, 2.0) == pytest.approx(2.0, rel=0.01)
    assert quiet_after(5, 2.0) > 1000
    assert quiet_after(1000, 2.0) == float("inf")


def test_no_source_is_an_error() -> None:
    with pytest.raises(IntegrateError, match="NO_SOURCES"):
        choose("STRONG", [], keys=True)
