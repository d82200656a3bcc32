"""Records, the reports of a differential, and what a receiver makes of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias


class Record(NamedTuple):
    """``<K, B>`` of a set, ``<I, B>`` of a bag: *key* is the key or the identification attributes, *rest* all else."""

    key: Hashable
    rest: Hashable


@dataclass(frozen=True)
class Insert:
    """One record came."""

    key: Hashable
    new: Hashable


@dataclass(frozen=True)
class Delete:
    """One record went; *old* is None where the algorithm does not know it (a compressed one, of sets)."""

    key: Hashable
    old: Hashable = None


@dataclass(frozen=True)
class Update:
    """One record has another rest now; *old* is None where the algorithm does not know it."""

    key: Hashable
    new: Hashable
    old: Hashable = None


Report: TypeAlias = Insert | Delete | Update


def rank(key: Hashable) -> Any:
    """What records are sorted by: NULL, also inside a composed key, comes after every value."""
    parts = key if isinstance(key, tuple) else (key,)
    return tuple((part is None, 0 if part is None else part) for part in parts)


def applied_to_set(old: Iterable[Record], reports: Iterable[Report]) -> dict[Hashable, Hashable]:
    """What a keyed copy of *old* holds after *reports*; an insert of a key that is there is ignored (2.1.1)."""
    held = {record.key: record.rest for record in old}
    for report in reports:
        match report:
            case Insert(key, new):
                held.setdefault(key, new)
            case Delete(key):
                held.pop(key, None)
            case Update(key, new):
                held[key] = new
    return held


def applied_to_bag(old: Iterable[Record], reports: Iterable[Report]) -> Counter[Record]:
    """What a copy of the bag *old* holds after *reports*, in whatever order they come."""
    held = Counter(old)
    for report in reports:
        if not isinstance(report, Insert):
            held[Record(report.key, report.old)] -= 1
        if not isinstance(report, Delete):
            held[Record(report.key, report.new)] += 1
    if any(count < 0 for count in held.values()):
        raise ValueError("a report removes a record that is not there")
    return +held


def fewest_reports(old: Iterable[Record], new: Iterable[Record]) -> int:
    """The smallest number of reports that lead from *old* to *new*, sets or bags."""
    before, after = Counter(old), Counter(new)
    gone = Counter(record.key for record in (before - after).elements())
    came = Counter(record.key for record in (after - before).elements())
    return sum((gone | came).values())
