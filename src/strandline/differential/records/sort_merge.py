"""Sort-merge outer join: SM, SM-Bag, SMC1, SMC2 and SMC2-Bag (Algorithms 2.2.1 and 2.2.3 to 2.2.5).

The old side comes sorted, as the run before saved it; the new side is sorted into runs that are merged while they are
matched, and saved on the way.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from itertools import groupby, islice
from typing import Any

from strandline.differential.records.compressed import Compress, Compressed, Fetch, Pointed, compressed, pointed
from strandline.differential.records.match import match, match_pointed
from strandline.differential.records.outer_join import K1, K2, Keyed, of_hashes, of_pointers, of_records
from strandline.differential.records.reports import Record, Report, rank

RUN = 1_000
"""Records in a run, for want of blocks of memory."""


def sort_into_runs(records: Iterable[K1], run: int = RUN) -> list[list[K1]]:
    """Sorted stretches of *records*, each as long as fits in memory."""
    source, runs = iter(records), []
    while taken := list(islice(source, run)):
        runs.append(sorted(taken, key=_rank))
    return runs


def sm(
    old_sorted: Iterable[Record], new: Iterable[Record], save: Callable[[Record], None], run: int = RUN
) -> Iterator[Report]:
    """Set differential; *save* gets the new records in their order, which is the next run's *old_sorted*."""
    return of_records(_outer_merge(old_sorted, _merged(sort_into_runs(new, run), save)))


def sm_bag(
    old_sorted: Iterable[Record], new: Iterable[Record], save: Callable[[Record], None], run: int = RUN
) -> Iterator[Report]:
    """Bag differential: records with equal identification attributes go to Match together."""
    for bag1, bag2 in _outer_merge_of_bags(old_sorted, _merged(sort_into_runs(new, run), save)):
        yield from match(bag1, bag2)


def smc1(
    f1_sorted: Iterable[Compressed],
    new: Iterable[Record],
    compress: Compress,
    save: Callable[[Compressed], None],
    run: int = RUN,
) -> Iterator[Report]:
    """Set differential against ``<K, b>``; what is saved is ``<K, b>`` too."""
    runs = _merged(sort_into_runs(new, run), lambda record: save(compressed(record, compress)))
    return of_hashes(_outer_merge(f1_sorted, runs), compress)


def smc2(
    f1_sorted: Iterable[Pointed],
    new: Sequence[Record],
    compress: Compress,
    save: Callable[[Pointed], None],
    run: int = RUN,
) -> Iterator[Report]:
    """Set differential of ``<K, b, p>`` on both sides; full records are fetched for inserts and updates alone."""
    runs = _merged(sort_into_runs(pointed(new, compress), run), save)
    return of_pointers(_outer_merge(f1_sorted, runs), new.__getitem__)


def smc2_bag(
    f1_sorted: Iterable[Pointed],
    old: Fetch,
    new: Sequence[Record],
    compress: Compress,
    save: Callable[[Pointed], None],
    run: int = RUN,
) -> Iterator[Report]:
    """Bag differential of ``<I, b, p>``; old records are fetched from the old snapshot, which must still be there."""
    runs = _merged(sort_into_runs(pointed(new, compress), run), save)
    for bag1, bag2 in _outer_merge_of_bags(f1_sorted, runs):
        yield from match_pointed(bag1, bag2, old, new.__getitem__)


def _merged(runs: Sequence[Sequence[K1]], save: Callable[[K1], None]) -> Iterator[K1]:
    for record in heapq.merge(*runs, key=_rank):
        save(record)
        yield record


def _outer_merge(old: Iterable[K1], new: Iterable[K2]) -> Iterator[tuple[K1 | None, K2 | None]]:
    """Matching records of two sorted sets, and those without a match."""
    left, right = iter(old), iter(new)
    r1, r2 = next(left, None), next(right, None)
    while r1 is not None or r2 is not None:
        if r1 is None or (r2 is not None and rank(r1.key) > rank(r2.key)):
            yield None, r2
            r2 = next(right, None)
        elif r2 is None or rank(r1.key) < rank(r2.key):
            yield r1, None
            r1 = next(left, None)
        else:
            yield r1, r2
            r1, r2 = next(left, None), next(right, None)


class _Bag(tuple[Hashable, list[K1]]):
    """All records with one value of I."""

    @property
    def key(self) -> Hashable:
        return self[0]


def _outer_merge_of_bags(old: Iterable[K1], new: Iterable[K1]) -> Iterator[tuple[list[K1], list[K1]]]:
    """The records of each value of I, of both sides."""
    bags1 = (_Bag((key, list(group))) for key, group in groupby(old, key=_key))
    bags2 = (_Bag((key, list(group))) for key, group in groupby(new, key=_key))
    for r1, r2 in _outer_merge(bags1, bags2):
        yield (r1[1] if r1 is not None else []), (r2[1] if r2 is not None else [])


def _key(record: Keyed) -> Hashable:
    return record.key


def _rank(record: Keyed) -> Any:
    return rank(record.key)
