"""Rows compared and compressed on Spark, as expressions of its SQL: the one place that says what b is.

``xxhash64`` passes over NULL, so that (NULL, 'a') and ('a', NULL) would have one hash: which columns are NULL is hashed
along. 128 bits are two such hashes that begin differently.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pyarrow as pa

from strandline.sql.names import literal, quoted

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
    if not pa.types.is_nested(kind):
        return expression
    return f"to_json(named_struct('v', {_plain(expression, kind)}), {_TO_THE_MICROSECOND})"


_TO_THE_MICROSECOND = "map({})".format(
    ", ".join(f"'{name}', 'yyyy-MM-dd HH:mm:ss.SSSSSS'" for name in ("timestampFormat", "timestampNTZFormat"))
)
"""Without it texts of moments have milliseconds."""


def _plain(expression: str, kind: pa.DataType, depth: int = 0) -> str:
    """A part of a nested value: a map as its sorted entries, and one kind of zero."""
    item = f"x{depth}"
    if pa.types.is_map(kind):
        key, value = _plain(f"{item}.key", kind.key_type, depth + 1), _plain(f"{item}.value", kind.item_type, depth + 1)
        return f"array_sort(transform(map_entries({expression}), {item} -> struct({key} AS k, {value} AS v)))"
    if pa.types.is_struct(kind):
        fields = [
            f"{literal(field.name)}, {_plain(f'{expression}.{quoted(field.name)}', field.type, depth)}"
            for field in kind
        ]
        return f"if({expression} IS NULL, NULL, named_struct({', '.join(fields)}))"
    if pa.types.is_nested(kind):
        return f"transform({expression}, {item} -> {_plain(item, kind.value_type, depth + 1)})"
    if pa.types.is_floating(kind):
        return f"{expression} + {'0.0D' if kind == pa.float64() else '0.0F'}"
    return expression


def _hash(columns: Sequence[Column], seed: int) -> str:
    values = [comparable(*column) for column in columns]
    masks = []
    for start in range(0, len(columns), _MASK):
        part = columns[start : start + _MASK]
        masks.append(" + ".join(f"if({name} IS NULL, {1 << place}L, 0L)" for place, (name, _) in enumerate(part)))
    return f"xxhash64({', '.join([f'{seed}L', *values, *masks])})"
