"""Which algorithm maintains a view: from the level that is wanted and what is known of its sources."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from strandline.errors import IntegrateError
from strandline.integrate.partition import (
    Partition,
    by_frequency,
    connected,
    equal_partition,
    f_part_exact,
    refresh_of,
    weighted_mean,
)
from strandline.integrate.view import View
from strandline.sql.statements import Consistency

PUBLISH_WITHIN = 30.0
"""Seconds within which a state is published under steady writes."""
BUSY = 0.8
"""The share of time that a queue may be worked at; above it, waiting grows without bound."""


@dataclass(frozen=True)
class SourceFacts:
    """A source: how many relations of the view it holds, updates a second, and seconds of a message one way."""

    name: str
    updates_per_second: float
    latency: float
    relations: int = 1


@dataclass(frozen=True)
class Choice:
    """An algorithm, the groups if it has any, what is expected of it, and why it was chosen."""

    algorithm: str
    groups: Partition
    messages_per_update: float
    refresh_seconds: float
    reason: str


def choose(
    level: Consistency,
    sources: Sequence[SourceFacts],
    *,
    keys: bool,
    view: View | None = None,
    auxiliary_views: bool = True,
    publish_within: float = PUBLISH_WITHIN,
) -> Choice:
    """The algorithm for *level* over *sources*.

    *keys*: the view shows a key of every relation (``View.shows_all_keys``), and deletes may be looked up in it. *view*
    says which sources join; without it any group of them may be proposed. *auxiliary_views*: parts of the view may be
    stored beside it.
    """
    if not sources:
        raise IntegrateError("NO_SOURCES", "a view over no source needs no maintenance; name at least one source.")
    if len(sources) == 1:
        return _one_source(level, sources[0], keys, publish_within)
    return _several_sources(level, sources, keys, view, auxiliary_views, publish_within)


def quiet_after(updates_per_second: float, seconds: float) -> float:
    """The mean time until no query is open, if each is open for *seconds* and updates come at random.

    It is the mean busy period of a queue with as many servers as are needed, ``(e^(rate * time) - 1) / rate``; ECA,
    ECA-Key and Strobe install only then.
    """
    if updates_per_second == 0:
        return seconds
    load = updates_per_second * seconds
    return math.expm1(load) / updates_per_second if load < 700 else math.inf


def _one_source(level: Consistency, source: SourceFacts, keys: bool, publish_within: float) -> Choice:
    round_trip = 2 * source.latency
    quiet = quiet_after(source.updates_per_second, round_trip)
    where = f"one source, {_rate(source.updates_per_second)}, answers after {_seconds(round_trip)}"
    lca_seconds = max(1, source.relations - 1) * round_trip
    if level == "COMPLETE":
        why = f"COMPLETE is wanted; {where}; each update's effect is installed alone, and it never starves"
        return _choice("lca", (), 2, lca_seconds, why)
    if quiet > publish_within:
        why = (
            f"{where}: a moment without open queries would come after {_seconds(quiet)} on average, and a state is "
            f"wanted within {_seconds(publish_within)}, so that ECA would starve; lca does not"
        )
        return _choice("lca", (), 2, lca_seconds, why)
    if keys:
        why = f"{level} is wanted; {where}; the view shows all keys, so that deletes need no query"
        return _choice("eca-key", (), 2, quiet, why)
    why = f"{level} is wanted; {where}; deletes are asked for as inserts are, so that the view need not be read"
    return _choice("eca", (), 2, quiet, why)


def _several_sources(
    level: Consistency,
    sources: Sequence[SourceFacts],
    keys: bool,
    view: View | None,
    auxiliary_views: bool,
    publish_within: float,
) -> Choice:
    relations = sum(source.relations for source in sources)
    rate = sum(source.updates_per_second for source in sources)
    tour = _mean_tour(sources, [sources])
    where = f"{len(sources)} sources with {relations} relations, {_rate(rate)}, {_seconds(tour)} to visit the others"
    messages = 2 * (relations - 1)
    quiet = quiet_after(rate, tour)
    if level != "COMPLETE" and keys and quiet <= publish_within:
        why = (
            f"{level} is wanted; {where}; the view shows all keys, so that deletes need no query and inserts go at once"
        )
        return _choice("strobe", (), messages, quiet, why)
    load = rate * tour
    if load < BUSY:
        why = f"{level} is wanted; {where}; updates one after another keep sweep busy {load:.0%} of the time"
        return _choice("sweep", (), messages, tour, why)
    if not auxiliary_views:
        why = (
            f"{where}: updates one after another would take {load:.0%} of the time, so the view falls behind; "
            "auxiliary views, which are not allowed here, would help"
        )
        return _choice("sweep", (), messages, tour, why)
    return next(_with_groups(sources, view, where, load))


def _with_groups(sources: Sequence[SourceFacts], view: View | None, where: str, load: float) -> Iterator[Choice]:
    """Groups that keep up, with as little stored as possible: large groups first.

    The auxiliary view of a group that does not join would be a product.
    """
    by_name = {source.name: source for source in sources}
    rate = sum(source.updates_per_second for source in sources)
    for count in range(2, len(sources) + 1):
        partition = _partition(sources, view, count)
        groups = [[by_name[name] for name in group] for group in partition]
        tour = _mean_tour(sources, groups)
        loads = [sum(s.updates_per_second for s in group) * _mean_tour(group, [group]) for group in groups]
        messages = _mean(sources, {s.name: 2.0 * (sum(o.relations for o in g) - 1) for g in groups for s in g})
        if view is not None and not connected(view, partition):
            continue
        why = f"{where}: sweep would be busy {load:.0%} of the time; with auxiliary views of {_named(partition)} "
        if sum(loads) < BUSY:
            yield _choice("grouped-by-frequency", partition, messages, tour, f"{why}it is {rate * tour:.0%}")
        if max(loads) < BUSY:
            yield _choice(
                "parallel-groups", partition, messages, tour, f"{why}no group is busy more than {max(loads):.0%}"
            )
    last = equal_partition([source.name for source in sources], 1)
    yield _choice("parallel-groups", last, messages, tour, f"{where}: every source has an auxiliary view of its own")


def _partition(sources: Sequence[SourceFacts], view: View | None, count: int) -> Partition:
    """The better of F_Part and the equal partition, and one whose groups join if there is."""
    rates = _rates(sources)
    if view is not None:
        return by_frequency(view, rates, count)
    falling = sorted(rates, key=lambda name: -rates[name])
    cut = tuple(tuple(falling[i] for i in group) for group in f_part_exact([rates[name] for name in falling], count))
    equal = equal_partition(list(rates), math.ceil(len(rates) / count))
    return min((cut, equal), key=lambda partition: refresh_of(partition, rates))


def _mean_tour(sources: Sequence[SourceFacts], groups: Sequence[Sequence[SourceFacts]]) -> float:
    """The seconds that an update spends visiting the other relations of its group, on average over updates."""
    times = {}
    for group in groups:
        whole = sum(2 * source.latency * source.relations for source in group)
        for source in group:
            times[source.name] = whole - 2 * source.latency
    return _mean(sources, times)


def _mean(sources: Sequence[SourceFacts], values: dict[str, float]) -> float:
    return weighted_mean({source.name: values[source.name] for source in sources}, _rates(sources))


def _rates(sources: Sequence[SourceFacts]) -> dict[str, float]:
    return {source.name: source.updates_per_second for source in sources}


def _choice(algorithm: str, groups: Partition, messages: float, seconds: float, why: str) -> Choice:
    expected = f"about {messages:g} messages an update, refreshed after {_seconds(seconds)}"
    return Choice(algorithm, groups, messages, seconds, f"{algorithm}: {why}; {expected}")


def _named(partition: Partition) -> str:
    return ", ".join("{" + ", ".join(group) + "}" for group in partition)


def _rate(updates_per_second: float) -> str:
    return f"{updates_per_second:g} updates a second"


def _seconds(seconds: float) -> str:
    return "a very long time" if seconds > 1e6 else f"{seconds:.3g} s"
