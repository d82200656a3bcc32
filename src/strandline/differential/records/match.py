"""Match: the differential of two small bags (Algorithm 2.2.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Iterator

from strandline.differential.records.reports import Delete, Insert, Record, Report, Update


def monus(left: Iterable[Record], right: Iterable[Record]) -> list[Record]:
    """*left* without as many copies of each record as *right* has."""
    return list((Counter(left) - Counter(right)).elements())


def match(bag1: Iterable[Record], bag2: Iterable[Record]) -> Iterator[Report]:
    """What leads from *bag1* to *bag2*; unchanged records go first, so that no update is unnecessary."""
    bag1, bag2 = list(bag1), list(bag2)
    left: dict[Hashable, list[Record]] = {}
    for r2 in monus(bag2, bag1):
        left.setdefault(r2.key, []).append(r2)
    for r1 in monus(bag1, bag2):
        if left.get(r1.key):
            yield Update(r1.key, left[r1.key].pop().rest, r1.rest)
        else:
            yield Delete(r1.key, r1.rest)
    for rest in left.values():
        for r2 in rest:
            yield Insert(r2.key, r2.rest)
