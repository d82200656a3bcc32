"""Refresh times over several sources (Wang et al., sections 4 and 5), in times of a message one way.

The simulator's clock lets a message take 1 and all else nothing. With PostgreSQL a delay is added to every message, and
what the whole took is divided by it: the rest is what asking and joining really cost. Of several turns the least
counts, since other work on the machine only ever adds; C-Strobe, with its many queries, has one turn.
"""

from __future__ import annotations

from collections.abc import Sequence

from bench.integrate.chains import Commit, Rows, chain, chain_bags, insert, meeting
from bench.integrate.measured import Measured, Sources, measured
from bench.integrate.simulated import timed
from bench.integrate.study import Curve, Figures, Study
from strandline.integrate import refresh_time
from strandline.integrate.algorithms import Options, create
from strandline.integrate.partition import Partition, by_frequency, equal_partition, f_part_exact, refresh_of

TURNS = 3


def _measured(
    name: str, rows: Rows, rounds: Sequence[Sequence[Commit]], options: Options, sources: Sources | None, delay: float
) -> Measured | None:
    if sources is None:
        return None
    view = chain(len(rows))
    databases = sources.of(view)
    for database in databases.values():
        database.fill(view, rows)
    return measured(create(name, view, options=options), databases, rows, rounds, delay)


def _one_update(
    name: str, relations: int, options: Options, formula: float, sources: Sources | None, t: float
) -> Figures:
    """An update of the first relation."""
    rows, commits = chain_bags(relations), [insert(1, 100 + turn, 0) for turn in range(TURNS)]
    found = _measured(name, rows, [[each] for each in commits], options, sources, t)
    simulated = timed(name, rows, commits[:1], options).installs[-1]
    return Figures(formula, simulated, None if found is None else min(found.each) / t)


def by_sources(most: int, sources: Sources | None, t: float) -> Study:
    """SWEEP and groups."""
    numbers = range(2, most + 1)
    curves: dict[str, Curve] = {
        "sweep": {n: _one_update("sweep", n, Options(), refresh_time.sweep(n), sources, t) for n in numbers}
    }
    for size in (2, 3):
        curves[f"groups of {size}"] = {
            n: _one_update("grouped", n, Options(group_size=size), refresh_time.grouped(min(size, n)), sources, t)
            for n in numbers
        }
    title = f"Refresh time of one update, t = {1000 * t:g} ms"
    return Study("refresh", title, "sources", "message times", curves, "2(n-1), and 2(p-1) and a local join")


def c_strobe(most: int, concurrent: Sequence[int], sources: Sources | None, t: float) -> list[Study]:
    """C-Strobe: queries, and time, with so many deletes in every other relation while an insert is under way."""
    queries: dict[str, Curve] = {}
    times: dict[str, Curve] = {}
    for mu in concurrent:
        asked, spent = {}, {}
        for n in range(2, most + 1):
            rows, commits = meeting(n, mu)
            counts = timed("c-strobe", rows, commits)
            found = _measured("c-strobe", rows, [commits], Options(), sources, t)
            said = max(mu ** (n - 2), n - 1)
            asked[float(n)] = Figures(said, counts.queries, None if found is None else found.messages // 2)
            elapsed = None if found is None else found.seconds / t
            spent[float(n)] = Figures(refresh_time.c_strobe(n, mu), counts.installs[0], elapsed)
        queries[f"mu = {mu}"], times[f"mu = {mu}"] = asked, spent
    setting = f"t = {1000 * t:g} ms"
    return [
        Study(
            "c-strobe-queries", "Queries of C-Strobe for one insert", "sources", "queries", queries, QUERIES, log_y=True
        ),
        Study("c-strobe", f"Refresh time of C-Strobe, {setting}", "sources", "message times", times, TIMES, log_y=True),
    ]


QUERIES = "formula: the larger of mu^(n-2) and n-1; counted: (n-1)(1+mu)^(n-2), all levels and each visit of a tour"
TIMES = "simulated: tours of one level are under way at once, n(n-1) in all; the driver asks one query after another"


def by_skew(skews: Sequence[float], relations: int, groups: int, sources: Sources | None, t: float) -> Study:
    """F_Part against the equal partition: source i is updated 1 / skew^i times as often as the first."""
    names = [f"s{n}" for n in range(1, relations + 1)]
    curves: dict[str, dict[float, Figures]] = {"equal": {}, "F_Part": {}, "the better": {}}
    for skew in skews:
        rates = {name: skew**-place for place, name in enumerate(names)}
        cut = f_part_exact([rates[name] for name in names], groups)
        parts = {
            "equal": equal_partition(names, -(-relations // groups)),
            "F_Part": tuple(tuple(names[place] for place in group) for group in cut),
            "the better": by_frequency(chain(relations), rates, groups),
        }
        for label, partition in parts.items():
            curves[label][skew] = _by_frequency(partition, rates, sources, t)
    title = f"Mean refresh time, {relations} sources in {groups} groups, t = {1000 * t:g} ms"
    note = "each source's update alone, weighted by how often it comes"
    return Study("frequencies", title, "updates of a source, times those of the next", "message times", curves, note)


def _by_frequency(partition: Partition, rates: dict[str, float], sources: Sources | None, t: float) -> Figures:
    relations = len(rates)
    rows, options = chain_bags(relations), Options(groups=partition)
    turns = [[insert(n, 100 + turn, 0) for n in range(1, relations + 1)] for turn in range(TURNS)]
    weights = [rate / sum(rates.values()) for rate in rates.values()]
    single = [timed("grouped", rows, [commit], options).installs[-1] for commit in turns[0]]
    found = _measured("grouped", rows, [[each] for turn in turns for each in turn], options, sources, t)

    def mean(times: Sequence[float]) -> float:
        return sum(weight * each for weight, each in zip(weights, times, strict=True))

    least = None if found is None else [min(found.each[place::relations]) / t for place in range(relations)]
    return Figures(refresh_of(partition, rates), mean(single), None if least is None else mean(least))


def in_parallel(size: int, groups: int, sources: Sources | None, t: float) -> Study:
    """Several updates at one moment: all of one group, or each of another."""
    relations = size * groups
    rows, options = chain_bags(relations), Options(group_size=size)
    curves: dict[str, dict[float, Figures]] = {"one group": {}, "a group each": {}}
    for updates in range(1, groups + 1):
        keys = [100 + updates * turn for turn in range(TURNS)]
        together = [[insert(1, key + number, 0) for number in range(updates)] for key in keys]
        apart = [[insert(1 + size * number, key, 0) for number in range(updates)] for key in keys]
        formulas = refresh_time.parallel_in_one_group(updates, size), refresh_time.parallel_in_many_groups(size)
        for label, turns, formula in zip(curves, (together, apart), formulas, strict=True):
            found = _measured("parallel-groups", rows, turns, options, sources, t)
            simulated = timed("parallel-groups", rows, turns[0], options).installs[-1]
            curves[label][updates] = Figures(formula, simulated, None if found is None else min(found.each) / t)
    title = f"Refresh time of parallel groups of {size}, t = {1000 * t:g} ms"
    note = "the driver asks one query after another, so that updates of several groups wait for each other"
    return Study("parallel", title, "updates at once", "message times", curves, note)
