"""Whether a key is one: errors that name the keys that are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from strandline.differential.arrow_rows import found_in, key_array, strictly_increasing
from strandline.differential.matching import Buffer
from strandline.errors import DifferentialError

SHOWN = 5
"""Keys that an error names."""


def duplicate_key(side: str, key: Sequence[str], found: Sequence[Sequence[Any]]) -> DifferentialError:
    """The error for keys that several rows have."""
    shown = "; ".join(", ".join(f"{name}={value!r}" for name, value in zip(key, row, strict=True)) for row in found)
    return DifferentialError(
        "KEY_NOT_UNIQUE",
        f"several rows of the {side} snapshot have the same key ({', '.join(key)}), for example {shown}; name columns "
        "that tell all rows apart, or compare as a bag (--bag, with --identify for columns that few rows share).",
    )


class KeyOrder:
    """Sees the rows of a snapshot go by, and objects to two with the same key within the window.

    As long as keys come in ascending order, no two are equal and there is nothing to look up.
    """

    def __init__(self, key: Sequence[str], side: str) -> None:
        self._key, self._side = tuple(key), side
        self._last: pa.Scalar | None = None
        self._ascending = True

    def check(self, rows: pa.Table, aging: Buffer) -> None:
        """Look at an input buffer, before its rows are matched."""
        if not rows.num_rows:
            return
        keys = key_array(rows, self._key)
        self._ascending = self._ascending and self._follows(keys)
        self._last = keys[-1]
        if self._ascending:
            return
        if pc.count_distinct(keys, mode="all").as_py() < len(keys):
            counted = pc.value_counts(keys)
            again = counted.field("values").filter(pc.greater(counted.field("counts"), 1))
            raise self._error(rows, found_in(again, keys))
        waiting, _ = aging.keys(0)
        if len(waiting) and (found := found_in(waiting, keys)).max() >= 0:
            raise self._error(rows, found[found >= 0])

    def _follows(self, keys: pa.Array) -> bool:
        begins_later = self._last is None or bool(pc.less(self._last, keys[0]).as_py())
        return strictly_increasing(keys) and begins_later

    def _error(self, rows: pa.Table, places: np.ndarray[Any, Any]) -> DifferentialError:
        named = rows.select(list(self._key)).take(pa.array(places[:SHOWN])).to_pylist()
        return duplicate_key(self._side, self._key, [list(row.values()) for row in named])
