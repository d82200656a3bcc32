"""Compressed records: ``<K, b>`` and ``<K, b, p>`` (2.2.3 to 2.2.5)."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

from strandline.differential.records.reports import Record

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
