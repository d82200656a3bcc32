"""Rows in Arrow: keys to look up, rows compared column by column, all as Spark groups values.

NULL equals NULL, NaN equals NaN, and 0.0 equals -0.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def key_array(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """What rows are looked up by: the column itself if it is one, else all of them encoded."""
    if len(columns) == 1 and not pa.types.is_nested(rows.schema.field(columns[0]).type):
        return _zero(one_chunk(rows.column(columns[0])))
    return encoded(rows, columns)


def encoded(rows: pa.Table, columns: Sequence[str]) -> pa.Array:
    """The values of *columns* in one value each row: two are equal if, and only if, all columns are."""
    if not columns:
        return pa.array([b""] * rows.num_rows, pa.binary())
    parts: list[pa.Array | pa.Scalar] = []
    for name in columns:
        text = _as_binary(one_chunk(rows.column(name)))
        length = pc.binary_length(text).cast(pa.string()).cast(pa.binary())
        # A length before each value tells ("ab", "c") from ("a", "bc"); NULL has none.
        parts += [pc.fill_null(length, b"-"), pa.scalar(b":"), pc.fill_null(text, b"")]
    return one_chunk(pc.binary_join_element_wise(*parts, pa.scalar(b"")))


def numbered(keys: pa.Array) -> pa.Array:
    """*keys* told apart by how many equal ones come before: the copies of a record in a bag."""
    codes = pc.fill_null(keys.dictionary_encode(null_encoding="encode").indices, -1).to_numpy(zero_copy_only=False)
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if len(codes) else np.array([], int)
    copies = np.empty(len(codes), np.int64)
    copies[order] = np.arange(len(codes)) - np.repeat(starts, np.diff(np.r_[starts, len(codes)]))
    number = pa.array(copies).cast(pa.string()).cast(pa.binary())
    return one_chunk(pc.binary_join_element_wise(number, pa.scalar(b"/"), keys, pa.scalar(b"")))


def found_in(keys: pa.Array, among: pa.Array) -> np.ndarray[Any, Any]:
    """For each of *keys* its place in *among*, which has no two equal; -1 where it is not."""
    if not len(among) or not len(keys):
        return np.full(len(keys), -1, np.int64)
    places = one_chunk(pc.index_in(keys, value_set=among))
    return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), np.int64)


def different(old: pa.Table, new: pa.Table, columns: Sequence[str]) -> np.ndarray[Any, Any]:
    """Which rows, pair by pair, differ in one of *columns*."""
    found = np.zeros(old.num_rows, bool)
    for name in columns:
        a, b = one_chunk(old.column(name)), one_chunk(new.column(name))
        if a is not b and not a.equals(b):
            found |= _different_values(a, b)
    return found


def strictly_increasing(keys: pa.Array) -> bool:
    """Whether keys come in order, without NULL, and so without two equal ones."""
    if keys.null_count or pa.types.is_floating(keys.type):
        return False
    return len(keys) < 2 or bool(pc.all(pc.less(keys[:-1], keys[1:])).as_py())


def one_chunk(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """A column in one piece, without dictionary."""
    if isinstance(column, pa.ChunkedArray):
        column = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def plain_value(value: Any) -> Any:
    """A value of a nested column such that equal ones are equal in Python too; maps are sorted by key."""
    if isinstance(value, dict):
        return tuple((name, plain_value(item)) for name, item in value.items())
    if isinstance(value, tuple):
        return tuple(plain_value(item) for item in value)
    if isinstance(value, list):
        items = [plain_value(item) for item in value]
        # Arrow gives the entries of a map as tuples, structs as dicts.
        is_map = any(isinstance(item, tuple) for item in value)
        return tuple(sorted(items, key=repr) if is_map else items)
    if isinstance(value, float):
        return "NaN" if value != value else value + 0.0
    return value


def _different_values(a: pa.Array, b: pa.Array) -> np.ndarray[Any, Any]:
    if pa.types.is_nested(a.type):
        pairs = zip(a.to_pylist(), b.to_pylist(), strict=True)
        return np.array([plain_value(x) != plain_value(y) for x, y in pairs], bool)
    unequal = pc.not_equal(a, b)
    if pa.types.is_floating(a.type):
        unequal = pc.and_kleene(unequal, pc.invert(pc.and_kleene(pc.is_nan(a), pc.is_nan(b))))
    if a.null_count or b.null_count:
        absent = pc.xor(pc.is_null(a), pc.is_null(b))
        unequal = pc.if_else(pc.or_(pc.is_null(a), pc.is_null(b)), absent, unequal)
    return np.asarray(unequal.to_numpy(zero_copy_only=False), bool)


def _zero(values: pa.Array) -> pa.Array:
    return pc.add(values, pa.scalar(0.0, values.type)) if pa.types.is_floating(values.type) else values


def _as_binary(values: pa.Array) -> pa.Array:
    kind = values.type
    if pa.types.is_nested(kind):
        texts = (None if value is None else repr(plain_value(value)).encode() for value in values.to_pylist())
        return pa.array(texts, pa.binary())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        return values.cast(pa.binary())
    return _zero(values).cast(pa.string()).cast(pa.binary())
