"""Which sources go into one group (Wang et al., sections 4.3 and 4.4)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from strandline.integrate.view import View

Partition = tuple[tuple[str, ...], ...]


def equal_partition(sources: Sequence[str], size: int) -> Partition:
    """Groups of *size* neighbours; the last has what is left, ``n - size * (K - 1)``."""
    return tuple(tuple(sources[start : start + size]) for start in range(0, len(sources), size))


def f_part(frequencies: Sequence[float], groups: int) -> tuple[tuple[int, ...], ...]:
    """F_Part as printed: numbers of sources, given with falling *frequencies*, in groups of about equal sums.

    At most *groups*, and fewer in about a third of cases. The floor makes frequencies that sum to 1 meaningless.
    """
    threshold = math.floor(sum(frequencies) / groups)
    return _filled(frequencies, lambda reached: reached > threshold)


def f_part_exact(frequencies: Sequence[float], groups: int) -> tuple[tuple[int, ...], ...]:
    """F_Part without the floor, closing a group as soon as it reaches its share: uses more of the groups."""
    share = sum(frequencies) / groups
    return _filled(frequencies, lambda reached: reached >= share)


def _filled(frequencies: Sequence[float], full: Callable[[float], bool]) -> tuple[tuple[int, ...], ...]:
    groups: list[list[int]] = [[]]
    reached = 0.0
    for number, frequency in enumerate(frequencies):
        groups[-1].append(number)
        reached += frequency
        if full(reached):
            groups.append([])
            reached = 0.0
    return tuple(tuple(group) for group in groups if group)


def mean_refresh(sizes: Mapping[str, int], frequencies: Mapping[str, float]) -> float:
    """The refresh time of an update, on average over the updates, in one-way message times; local joins are free.

    ``sum(f_i t_i) / sum(f_i)`` with ``t_i = 2 (size of its group - 1)``. (The printed mean divides by n besides.)
    """
    return weighted_mean({source: 2.0 * (size - 1) for source, size in sizes.items()}, frequencies)


def weighted_mean(values: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """The mean of *values* by *weights*, which count alike if all of them are 0."""
    if not any(weights[name] for name in values):
        return sum(values.values()) / len(values)
    return sum(weights[name] * value for name, value in values.items()) / sum(weights[name] for name in values)


def refresh_of(partition: Partition, frequencies: Mapping[str, float]) -> float:
    """The mean refresh time under *partition*."""
    return mean_refresh({source: len(group) for group in partition for source in group}, frequencies)


def busy(partition: Partition, frequencies: Mapping[str, float]) -> tuple[int, ...]:
    """The groups with at least their share of the updates: those that gain most from keys (section 5.2)."""
    sums = [sum(frequencies[source] for source in group) for group in partition]
    return tuple(number for number, own in enumerate(sums) if own * len(sums) >= sum(sums))


def by_frequency(view: View, frequencies: Mapping[str, float], groups: int) -> Partition:
    """The best of F_Part and the equal partition, with at most *groups* groups: least mean refresh time.

    F_Part follows frequencies, not joins: members of a group may not join each other, and its auxiliary view would be
    a product. A partition whose groups are all connected is preferred to any that is not.
    """
    falling = sorted(view.sources, key=lambda source: -frequencies[source])
    ordered = [frequencies[source] for source in falling]
    candidates = [
        tuple(tuple(falling[i] for i in group) for group in cut(ordered, groups)) for cut in (f_part, f_part_exact)
    ]
    candidates = [candidate for candidate in candidates if len(candidate) <= groups]
    candidates.append(equal_partition(view.sources, math.ceil(len(view.sources) / groups)))
    return min(candidates, key=lambda found: (not connected(view, found), refresh_of(found, frequencies)))


def connected(view: View, partition: Partition) -> bool:
    """Whether the relations of each group are tied together by conditions of the view."""
    return all(_connected(view, [p for p, home in enumerate(view.homes) if home in group]) for group in partition)


def _connected(view: View, places: list[int]) -> bool:
    reached, left = places[:1], places[1:]
    while left:
        tied = next((place for place in left if view.connected(reached, place)), None)
        if tied is None:
            return False
        reached.append(tied)
        left.remove(tied)
    return True
