"""Rows compared and compressed on Spark, as expressions of its SQL: the one place that says what b is.

``xxhash64`` passes over NULL, so that (NULL, 'a') and ('a', NULL) would have one hash: which columns are NULL is hashed
along. 128 bits are two such hashes that begin differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

Bits = Literal[64, 128]
Column = tuple[str, pa.DataType]
"""An expression and its type."""

_MASK = 60
"""Columns whose NULLs one number tells."""


def compressed(columns: Sequence[Column], bits: Bits) -> list[str]:
    """b: expressions of 64 bits each; no columns, no bits to compare."""
    return [_hash(columns, seed) for seed in range(bits // 64)]


def equal(old: Sequence[Column], new: Sequence[Column]) -> str:
    """A condition: all columns are equal, as Spark groups values."""
    pairs = [f"{comparable(*a)} <=> {comparable(*b)}" for a, b in zip(old, new, strict=True)]
    return " AND ".join(pairs) or "true"


def comparable(expression: str, kind: pa.DataType) -> str:
    """An expression that Spark can compare and hash, with equal values for equal values; maps are sorted by key."""
    if pa.types.is_map(kind):
        return f"to_json(named_struct('v', array_sort(map_entries({expression}))))"
    if pa.types.is_nested(kind):
        return f"to_json(named_struct('v', {expression}))"
    return expression


def _hash(columns: Sequence[Column], seed: int) -> str:
    values = [comparable(*column) for column in columns]
    masks = []
    for start in range(0, len(columns), _MASK):
        part = columns[start : start + _MASK]
        masks.append(" + ".join(f"if({name} IS NULL, {1 << place}L, 0L)" for place, (name, _) in enumerate(part)))
    return f"xxhash64({', '.join([f'{seed}L', *values, *masks])})"
