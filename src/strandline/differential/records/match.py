"""Match: the differential of two small bags (Algorithm 2.2.2), of whole records or of compressed ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TypeVar

from strandline.differential.records.compressed import Fetch, Pointed
from strandline.differential.records.outer_join import Keyed, of_pointers, of_records
from strandline.differential.records.reports import Record, Report

K = TypeVar("K", bound=Keyed)


def match(bag1: Iterable[Record], bag2: Iterable[Record]) -> Iterator[Report]:
    """What leads from *bag1* to *bag2*."""
    return of_records(_pairs(list(bag1), list(bag2), lambda record: record))


def match_pointed(bag1: Iterable[Pointed], bag2: Iterable[Pointed], old: Fetch, new: Fetch) -> Iterator[Report]:
    """The same over ``<I, b, p>``: equal (I, b) are unchanged; what is reported is fetched, the old from *old*."""
    return of_pointers(_pairs(list(bag1), list(bag2), lambda record: (record.key, record.bits)), new, old)


def monus(left: Iterable[K], right: Iterable[K], same: Callable[[K], Hashable] = lambda record: record) -> list[K]:
    """*left* without as many copies of each record as *right* has; *same* says what makes two records copies."""
    cancelled = Counter(map(same, right))
    kept = []
    for record in left:
        if cancelled[same(record)] > 0:
            cancelled[same(record)] -= 1
        else:
            kept.append(record)
    return kept


def _pairs(bag1: list[K], bag2: list[K], same: Callable[[K], Hashable]) -> Iterator[tuple[K | None, K | None]]:
    """Records with equal I in pairs; unchanged ones go first, so that no update is unnecessary."""
    left: dict[Hashable, list[K]] = {}
    for r2 in monus(bag2, bag1, same):
        left.setdefault(r2.key, []).append(r2)
    for r1 in monus(bag1, bag2, same):
        yield r1, left[r1.key].pop() if left.get(r1.key) else None
    yield from ((None, r2) for rest in left.values() for r2 in rest)
