"""Partitioned hash outer join: PH, PH-Bag, PHC1, PHC2, PHC2-Bag, and PHC in memory (2.2.1, 2.2.2, 2.2.4, 2.2.5).

The old side comes in buckets, as the run before left them; the new side is put into as many by the same hash, and a
bucket of one is matched with that bucket of the other.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import TypeVar

from strandline.differential.records.compressed import Compress, Compressed, Fetch, Pointed, compressed, pointed
from strandline.differential.records.match import match, match_pointed
from strandline.differential.records.outer_join import Keyed, of_pointers, of_records
from strandline.differential.records.reports import Delete, Insert, Record, Report, Update

K = TypeVar("K", bound=Keyed)
Hash = Callable[[Hashable], int]


def partition(records: Iterable[K], buckets: int, hashed: Hash = hash) -> list[list[K]]:
    """*records* by the hash of their key."""
    made: list[list[K]] = [[] for _ in range(buckets)]
    for record in records:
        made[hashed(record.key) % buckets].append(record)
    return made


def ph(old_buckets: Sequence[Iterable[Record]], new_buckets: Sequence[Iterable[Record]]) -> Iterator[Report]:
    """Set differential; *new_buckets* are the next run's *old_buckets*."""
    return of_records(_outer_hash_join(old_buckets, new_buckets))


def ph_bag(old_buckets: Sequence[Iterable[Record]], new_buckets: Sequence[Iterable[Record]]) -> Iterator[Report]:
    """Bag differential: each pair of buckets goes to Match."""
    for bucket1, bucket2 in zip(old_buckets, new_buckets, strict=True):
        yield from match(bucket1, bucket2)


def phc1(
    f1_buckets: Sequence[Iterable[Compressed]],
    new_buckets: Sequence[Iterable[Record]],
    compress: Compress,
    save: Callable[[Compressed], None],
) -> Iterator[Report]:
    """Set differential against buckets of ``<K, b>``; new buckets of them are written while matching."""
    for bucket1, bucket2 in zip(f1_buckets, new_buckets, strict=True):
        yield from phc_in_memory(bucket1, bucket2, compress, save)


def phc2(
    f1_buckets: Sequence[Iterable[Pointed]], f2_buckets: Sequence[Iterable[Pointed]], new: Fetch
) -> Iterator[Report]:
    """Set differential of buckets of ``<K, b, p>``; full records are fetched for inserts and updates alone."""
    return of_pointers(_outer_hash_join(f1_buckets, f2_buckets), new)


def phc2_bag(
    f1_buckets: Sequence[Iterable[Pointed]], f2_buckets: Sequence[Iterable[Pointed]], old: Fetch, new: Fetch
) -> Iterator[Report]:
    """Bag differential of ``<I, b, p>``; old records are fetched from the old snapshot, which must still be there."""
    for bucket1, bucket2 in zip(f1_buckets, f2_buckets, strict=True):
        yield from match_pointed(bucket1, bucket2, old, new)


def phc_in_memory(
    f1: Iterable[Compressed], new: Iterable[Record], compress: Compress, save: Callable[[Compressed], None]
) -> Iterator[Report]:
    """Set differential with all of *f1* in a hash table: one pass over *new*, which is not put into buckets."""
    held = {r1.key: r1.bits for r1 in f1}
    marked = set()
    for r2 in new:
        small = compressed(r2, compress)
        save(small)
        if r2.key not in held:
            yield Insert(r2.key, r2.rest)
            continue
        marked.add(r2.key)
        if held[r2.key] != small.bits:
            yield Update(r2.key, r2.rest)
    yield from (Delete(key) for key in held if key not in marked)


def f2_buckets(new: Sequence[Record], compress: Compress, buckets: int, hashed: Hash = hash) -> list[list[Pointed]]:
    """The new snapshot put straight into compressed buckets."""
    return partition(pointed(new, compress), buckets, hashed)


def _outer_hash_join(
    buckets1: Sequence[Iterable[K]], buckets2: Sequence[Iterable[K]]
) -> Iterator[tuple[K | None, K | None]]:
    """Records with equal keys, bucket by bucket, and those without a match."""
    for bucket1, bucket2 in zip(buckets1, buckets2, strict=True):
        left = {r2.key: r2 for r2 in bucket2}
        yield from ((r1, left.pop(r1.key, None)) for r1 in bucket1)
        yield from ((None, r2) for r2 in left.values())
