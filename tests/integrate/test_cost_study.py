"""The cost studies of ``bench/integrate``: on data that fit them, formulas, simulated counts and PostgreSQL agree."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random
from xml.etree import ElementTree

import pytest

from bench.integrate import compensation, refreshes
from bench.integrate.chains import in_pairs, three_bags, three_relations
from bench.integrate.compensation import RV
from bench.integrate.measured import Sources
from bench.integrate.simulated import counted, network
from bench.integrate.study import Study
from strandline.demo.server import PostgresServer
from strandline.integrate import refresh_time
from strandline.integrate.algorithms import Options, create
from strandline.integrate.costs import Parameters, bytes_rv, messages_rv
from strandline.integrate.schedules import run_at_random

DEFAULT = Parameters()
EXACT = ("messages", "bytes", "reads", "scans")


@pytest.fixture(scope="module")
def by_updates() -> list[Study]:
    return compensation.by_updates(DEFAULT, (2, 4, 6, 8, 10), 10, None)


def sides(study: Study, side: str) -> dict[str, list[tuple[float, float]]]:
    return {label: study.points(label, side) for label in study.curves}


def test_a_run_counts_what_the_formulas_say_whatever_the_number_of_updates(by_updates: list[Study]) -> None:
    assert tuple(study.name for study in by_updates) == EXACT
    for study in by_updates:
        assert sides(study, "simulated") == sides(study, "formula"), study.name


def test_a_run_counts_what_the_formulas_say_whatever_the_size_of_the_relations() -> None:
    for study in compensation.by_rows(DEFAULT, (4, 20, 60, 100), 6, None):
        assert sides(study, "simulated") == sides(study, "formula"), study.name


def test_crossovers_of_counted_costs(by_updates: list[Study]) -> None:
    found = compensation.crossovers(DEFAULT, by_updates)
    rounded = {name: (figures.formula, figures.simulated) for name, figures in found.items()}
    assert rounded["reads, ECA best"] == pytest.approx((3, 3))
    assert rounded["reads, ECA worst"] == pytest.approx((2.70, 2.71), abs=0.005)
    assert rounded["scans, ECA best"] == pytest.approx((8.33, 8.33), abs=0.005)
    # Counted at 4 and at 6 updates, and straight between them.
    assert rounded["scans, ECA worst"] == pytest.approx((5.54, 5.29), abs=0.005)


def test_thirty_updates_at_worst_move_more_than_one_recomputation() -> None:
    less, more = (counted("eca", DEFAULT, in_pairs(k), first=True).rows * DEFAULT.width for k in (24, 30))
    assert less < bytes_rv(DEFAULT, 1) < more


def test_a_hundred_updates_settled_one_by_one_move_as_much_as_one_recomputation() -> None:
    assert counted("eca", DEFAULT, in_pairs(100), first=False).rows * DEFAULT.width == bytes_rv(DEFAULT, 1) == 3200


def test_rv_recomputes_for_what_is_left_over() -> None:
    some = network(create("rv", three_relations(), options=Options(every=5)), three_bags(DEFAULT), in_pairs(12))
    run_at_random(some, Random(1))
    assert some.traffic.messages == messages_rv(12, 5)


def test_refresh_times_of_sweep_groups_and_frequencies() -> None:
    studies = [refreshes.by_sources(6, None, 1.0), refreshes.by_skew((1.0, 1.5, 2.0, 3.0), 6, 3, None, 1.0)]
    for study in [*studies, refreshes.in_parallel(2, 3, None, 1.0)]:
        for label, points in sides(study, "simulated").items():
            assert dict(points) == pytest.approx(dict(study.points(label, "formula"))), (study.name, label)
    assert dict(studies[0].points("sweep", "simulated")) == {2: 2, 3: 4, 4: 6, 5: 8, 6: 10}
    equal, cut, taken = (dict(studies[1].points(label, "simulated")) for label in ("equal", "F_Part", "the better"))
    assert equal == pytest.approx(dict.fromkeys((1.0, 1.5, 2.0, 3.0), 2.0))
    assert cut[2.0] == pytest.approx(76 / 63), "sizes 1, 2 and 3"
    assert cut[3.0] > 2, "F_Part puts all but the first source into one group"
    assert all(taken[skew] == min(equal[skew], cut[skew]) for skew in taken)


def test_c_strobe_asks_on_every_level_of_compensation() -> None:
    queries, times = refreshes.c_strobe(5, (1, 2), None, 1.0)
    for mu in (1, 2):
        counts = dict(queries.points(f"mu = {mu}", "simulated"))
        assert counts == {n: refresh_time.c_strobe_queries(n, mu) for n in (2, 3, 4, 5)}
        assert all(counts[n] >= mu ** (n - 2) for n in counts)
        # Tours of one level are under way together: n - 1 visits, then n - 2, and so on.
        assert dict(times.points(f"mu = {mu}", "simulated")) == {n: n * (n - 1) for n in (2, 3, 4, 5)}


@pytest.fixture
def sources(server: PostgresServer) -> Iterator[Sources]:
    found = Sources(server)
    yield found
    found.close()


@pytest.mark.postgres
def test_postgres_is_asked_as_often_and_answers_with_as_many_rows(sources: Sources) -> None:
    studies = {study.name: study for study in compensation.by_updates(DEFAULT, (6,), 6, sources)}
    for name in ("messages", "bytes"):
        assert sides(studies[name], "postgres") == sides(studies[name], "formula")
    reads = sides(studies["reads"], "postgres")
    assert reads[RV][0][1] >= DEFAULT.blocks * 3, "each relation is read as a whole"
    assert all(points[0][1] > 0 for points in sides(studies["wire"], "postgres").values())


@pytest.mark.postgres
def test_delays_of_messages_to_postgres_add_up_as_the_formulas_say(sources: Sources) -> None:
    study = refreshes.by_sources(3, sources, 0.02)
    for label, points in sides(study, "postgres").items():
        said = dict(study.points(label, "formula"))
        assert all(found >= said[x] for x, found in points), label
    queries, _ = refreshes.c_strobe(3, (2,), sources, 0.001)
    assert sides(queries, "postgres") == sides(queries, "simulated")


def test_a_plot_is_an_image_with_each_curve(by_updates: list[Study], tmp_path: Path) -> None:
    by_updates[1].draw(tmp_path)
    root = ElementTree.parse(tmp_path / "integrate-bytes.svg").getroot()
    words = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "ECA worst, simulated" in words
    assert len(list(root.iter("{http://www.w3.org/2000/svg}polyline"))) == 3
    assert len(list(root.iter("{http://www.w3.org/2000/svg}circle"))) == 3 * 5 + 3
