"""Compressed records: ``<K, b>`` and ``<K, b, p>``, and Match over the latter (2.2.3 to 2.2.5)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from strandline.differential.records.reports import Delete, Insert, Record, Report, Update

Compress: TypeAlias = Callable[[Hashable], Hashable]
"""From the rest of a record to a few bits; different rests seldom have the same."""

Fetch: TypeAlias = Callable[[int], Record]
"""The full record at an address of a snapshot."""


class Compressed(NamedTuple):
    """``<K, b>``."""

    key: Hashable
    bits: Hashable


class Pointed(NamedTuple):
    """``<K, b, p>``: p is the place of the full record in its snapshot."""

    key: Hashable
    bits: Hashable
    pointer: int


def compressed(record: Record, compress: Compress) -> Compressed:
    """``<K, compress(B)>``."""
    return Compressed(record.key, compress(record.rest))


def pointed(records: Sequence[Record], compress: Compress) -> Iterator[Pointed]:
    """``<K, compress(B), p>`` of every record of a snapshot."""
    for place, record in enumerate(records):
        yield Pointed(record.key, compress(record.rest), place)


def match_pointed(bag1: Iterable[Pointed], bag2: Iterable[Pointed], old: Fetch, new: Fetch) -> Iterator[Report]:
    """Match over compressed records: equal (I, b) are unchanged; what is reported is fetched, the old from *old*."""
    bag1, bag2 = list(bag1), list(bag2)
    left: dict[Hashable, list[Pointed]] = {}
    for r2 in _monus(bag2, bag1):
        left.setdefault(r2.key, []).append(r2)
    for r1 in _monus(bag1, bag2):
        if left.get(r1.key):
            yield Update(r1.key, new(left[r1.key].pop().pointer).rest, old(r1.pointer).rest)
        else:
            yield Delete(r1.key, old(r1.pointer).rest)
    for rest in left.values():
        for r2 in rest:
            yield Insert(r2.key, new(r2.pointer).rest)


def _monus(left: Iterable[Pointed], right: Iterable[Pointed]) -> Iterator[Pointed]:
    cancelled = Counter((record.key, record.bits) for record in right)
    for record in left:
        if cancelled[record.key, record.bits] > 0:
            cancelled[record.key, record.bits] -= 1
        else:
            yield record
