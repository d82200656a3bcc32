"""Window: one pass over both snapshots (2.3).

Each side has an input buffer and an *aging buffer*, a hash table on the key with a queue through it, oldest first
(a Python dict is both). A record that finds no match ages until it falls out, and is then reported as deleted or
inserted. A record that moved farther than its aging buffer reaches is reported twice, as a useless pair.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from itertools import islice

from strandline.differential.records.reports import Delete, Insert, Record, Report, Update
from strandline.differential.records.second_pass import without_insert_delete_pairs


class Aging:
    """Records by key, oldest first; never more than *capacity*."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._queue: dict[int, Record] = {}
        self._places: dict[Hashable, list[int]] = {}
        self._next = 0

    def take(self, key: Hashable) -> Record | None:
        """Remove the oldest record with *key*."""
        return self._remove(self._places[key][0]) if self._places.get(key) else None

    def take_equal(self, record: Record) -> Record | None:
        """Remove the oldest record that equals *record*."""
        for place in self._places.get(record.key, ()):
            if self._queue[place] == record:
                return self._remove(place)
        return None

    def enqueue(self, record: Record) -> Record | None:
        """Put *record* at the tail; the head that had to go for it, if the buffer was full."""
        if self._capacity == 0:
            return record
        dropped = self._remove(next(iter(self._queue))) if len(self._queue) == self._capacity else None
        self._queue[self._next] = record
        self._places.setdefault(record.key, []).append(self._next)
        self._next += 1
        return dropped

    def drain(self) -> Iterator[Record]:
        """Everything left, oldest first."""
        yield from self._queue.values()

    def _remove(self, place: int) -> Record:
        record = self._queue.pop(place)
        places = self._places[record.key]
        places.remove(place)
        if not places:
            del self._places[record.key]
        return record


def window(old: Iterable[Record], new: Iterable[Record], *, block: int, aging: int) -> Iterator[Report]:
    """Set differential: input buffers of *block* records, aging buffers of *aging*, and the second pass."""
    return without_insert_delete_pairs(first_pass(old, new, block=block, aging=aging))


def first_pass(old: Iterable[Record], new: Iterable[Record], *, block: int, aging: int) -> Iterator[Report]:
    """Window without the second pass: its report may have useless pairs in either order."""
    files, aging1, aging2 = (iter(old), iter(new)), Aging(aging), Aging(aging)
    while True:
        in1, in2 = (list(islice(file, block)) for file in files)
        if not in1 and not in2:
            break
        table2 = {record.key: record for record in in2}
        left1 = []
        for r1 in in1:
            if (r2 := table2.pop(r1.key, None) or aging2.take(r1.key)) is None:
                left1.append(r1)
            elif r1.rest != r2.rest:
                yield Update(r1.key, r2.rest, r1.rest)
        left2 = []
        for r2 in table2.values():
            if (r1 := aging1.take(r2.key)) is None:  # type: ignore[assignment]
                left2.append(r2)
            elif r1.rest != r2.rest:
                yield Update(r2.key, r2.rest, r1.rest)
        yield from _aged(left1, left2, aging1, aging2)
    yield from (Delete(record.key, record.rest) for record in aging1.drain())
    yield from (Insert(record.key, record.rest) for record in aging2.drain())


def window_bag(old: Iterable[Record], new: Iterable[Record], *, block: int, aging: int) -> Iterator[Report]:
    """Bag differential: in each round unchanged pairs go first, then updated ones are paired.

    It avoids unnecessary updates within the window only: of records that are not in it together nothing is known.
    """
    files, aging1, aging2 = (iter(old), iter(new)), Aging(aging), Aging(aging)
    while True:
        in1, in2 = (list(islice(file, block)) for file in files)
        if not in1 and not in2:
            break
        table2 = Aging(len(in2))
        for r2 in in2:
            table2.enqueue(r2)
        in1 = [r1 for r1 in in1 if table2.take_equal(r1) is None and aging2.take_equal(r1) is None]
        unequal = [r2 for r2 in table2.drain() if aging1.take_equal(r2) is None]
        table2 = Aging(len(unequal))
        for r2 in unequal:
            table2.enqueue(r2)
        left1 = []
        for r1 in in1:
            if (pair := table2.take(r1.key) or aging2.take(r1.key)) is None:
                left1.append(r1)
            else:
                yield Update(r1.key, pair.rest, r1.rest)
        left2 = []
        for r2 in table2.drain():
            if (pair := aging1.take(r2.key)) is None:
                left2.append(r2)
            else:
                yield Update(r2.key, r2.rest, pair.rest)
        yield from _aged(left1, left2, aging1, aging2)
    yield from (Delete(record.key, record.rest) for record in aging1.drain())
    yield from (Insert(record.key, record.rest) for record in aging2.drain())


def _aged(left1: list[Record], left2: list[Record], aging1: Aging, aging2: Aging) -> Iterator[Report]:
    """Records without a match begin to age; those that they push out are reported."""
    for record in left1:
        if (dropped := aging1.enqueue(record)) is not None:
            yield Delete(dropped.key, dropped.rest)
    for record in left2:
        if (dropped := aging2.enqueue(record)) is not None:
            yield Insert(dropped.key, dropped.rest)
