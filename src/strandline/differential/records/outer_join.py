"""From the pairs of an outer join on the key to reports: the same however the pairs were found, sorted or hashed.

A pair has the old record and the new one with a key; where one side has none, it is None.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Protocol, TypeVar

from strandline.differential.records.compressed import Compress, Compressed, Fetch, Pointed
from strandline.differential.records.reports import Delete, Insert, Record, Report, Update


class Keyed(Hashable, Protocol):
    """Whatever is joined by its key."""

    @property
    def key(self) -> Hashable: ...


K1 = TypeVar("K1", bound=Keyed)
K2 = TypeVar("K2", bound=Keyed)


def of_records(pairs: Iterable[tuple[Record | None, Record | None]]) -> Iterator[Report]:
    """Reports of whole records on both sides."""
    return _reports(pairs, lambda r1, r2: r1.rest != r2.rest, _rest, _rest)


def of_hashes(pairs: Iterable[tuple[Compressed | None, Record | None]], compress: Compress) -> Iterator[Report]:
    """Reports of ``<K, b>`` on the old side and whole records on the new one; old records are not known (C1)."""
    return _reports(pairs, lambda r1, r2: r1.bits != compress(r2.rest), _unknown, _rest)


def of_pointers(
    pairs: Iterable[tuple[Pointed | None, Pointed | None]], new: Fetch, old: Fetch | None = None
) -> Iterator[Report]:
    """Reports of ``<K, b, p>`` on both sides; what is reported is fetched, old records if *old* is there (C2)."""
    before = _unknown if old is None else lambda r1: old(r1.pointer).rest
    return _reports(pairs, lambda r1, r2: r1.bits != r2.bits, before, lambda r2: new(r2.pointer).rest)


def _reports(
    pairs: Iterable[tuple[K1 | None, K2 | None]],
    differ: Callable[[K1, K2], bool],
    before: Callable[[K1], Hashable],
    after: Callable[[K2], Hashable],
) -> Iterator[Report]:
    for r1, r2 in pairs:
        if r1 is not None and r2 is not None:
            if differ(r1, r2):
                yield Update(r2.key, after(r2), before(r1))
        elif r1 is not None:
            yield Delete(r1.key, before(r1))
        elif r2 is not None:
            yield Insert(r2.key, after(r2))


def _rest(record: Record) -> Hashable:
    return record.rest


def _unknown(record: Keyed) -> Hashable:
    return None
