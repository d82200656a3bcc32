"""Rows of two inputs that match by their keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.scalar import Scalar
from strandline.columnar.conditions import compared_as
from strandline.columnar.scalars import column
from strandline.columnar.types import NotHere
from strandline.columnar.values import Array, Value

MOST_PAIRS = 20_000_000
"""More pairs of rows than these are not held in memory here."""

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Keys:
    """A number for each row of either input, the same for keys that are equal; and the rows that match none."""

    left: Numbers
    right: Numbers


def keys(left: Sequence[Array], right: Sequence[Array], *, nulls_match: bool) -> Keys:
    """The keys of two inputs, by columns of either that stand side by side."""
    rows = len(left[0])
    both, missing = np.zeros(rows + len(right[0]), np.int64), np.zeros(rows + len(right[0]), np.bool_)
    known = 1
    for ours, theirs in zip(left, right, strict=True):
        one, other = compared_as(Value(ours), Value(theirs))
        numbers, nulls, count = _numbered(_chained(one.data, other.data))
        both, known = _combined(both, known, numbers, count)
        missing |= nulls
    if not nulls_match:
        # What is NULL equals nothing, on either side.
        both[:rows][missing[:rows]], both[rows:][missing[rows:]] = -1, -2
    return Keys(both[:rows], both[rows:])


def _chained(one: Array, other: Array) -> pa.ChunkedArray:
    chunks = [
        chunk for each in (one, other) for chunk in (each.chunks if isinstance(each, pa.ChunkedArray) else [each])
    ]
    return pa.chunked_array(chunks, one.type)


def _numbered(values: pa.ChunkedArray) -> tuple[Numbers, Flags, int]:
    """A number for each value, below a bound, which of them are NULL, and the bound."""
    if not len(values):  # Arrow has no empty dictionaries of every type
        return np.empty(0, np.int64), np.empty(0, np.bool_), 1
    encoded = pc.dictionary_encode(values, null_encoding="encode").combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):
        raise NotHere("keys that fill more than one array")
    nulls = np.asarray(pc.is_null(values).combine_chunks().to_numpy(zero_copy_only=False), np.bool_)
    return encoded.indices.to_numpy().astype(np.int64), nulls, len(encoded.dictionary) + 1


def _combined(one: Numbers, known: int, other: Numbers, count: int) -> tuple[Numbers, int]:
    """A number for each pair of numbers."""
    if known == 1:
        return other, count
    if known * count < 2**62:
        return one * count + other, known * count
    _, dense = np.unique(one, return_inverse=True)
    return dense.astype(np.int64) * count + other, (int(dense.max(initial=0)) + 1) * count


def pairs(found: Keys) -> tuple[Numbers, Numbers]:
    """The places of rows that match, in either input, pair by pair."""
    if len(found.left) < len(found.right):
        right, left = _looked_up(found.right, found.left)
        return left, right
    return _looked_up(found.left, found.right)


def _looked_up(many: Numbers, few: Numbers) -> tuple[Numbers, Numbers]:
    order = np.argsort(few, kind="stable")
    ordered = few[order]
    first = np.searchsorted(ordered, many, "left")
    counts = np.searchsorted(ordered, many, "right") - first
    total = int(counts.sum())
    if total > MOST_PAIRS:
        raise NotHere(f"a join of {total} rows")
    places = np.repeat(np.arange(len(many)), counts)
    ends = np.cumsum(counts)
    within = np.arange(total) - np.repeat(ends - counts, counts)
    return places, order[np.repeat(first, counts) + within]


def matched(found: Keys) -> Flags:
    """Whether each row on the left matches one on the right."""
    return np.isin(found.left, found.right)


def keys_of(
    left: pa.Table, ours: Sequence[Scalar], right: pa.Table, theirs: Sequence[Scalar], *, nulls_match: bool
) -> Keys:
    """The keys of two inputs, by values of either that stand side by side; without any, all rows match."""
    if not ours:
        return all_alike(left, right)
    by_left = [column(value, left) for value in ours]
    return keys(by_left, [column(value, right) for value in theirs], nulls_match=nulls_match)


def all_alike(left: pa.Table, right: pa.Table) -> Keys:
    """Keys by which every row matches every other."""
    return Keys(np.zeros(left.num_rows, np.int64), np.zeros(right.num_rows, np.int64))
