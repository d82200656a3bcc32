"""The files of a version of a Delta table, and which of them may hold given keys, by the statistics in its log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import Any


class Files:
    """The files of a version; *adds* are the actions of its log, flattened."""

    def __init__(self, adds: Any) -> None:
        self._adds = adds
        sizes = adds.column("size_bytes").to_pylist()
        self.count = len(sizes)
        self.bytes = sum(sizes)
        self._ranges: dict[str, list[tuple[Any, Any]] | None] = {}

    def holding(self, column: str, keys: Sequence[Any]) -> frozenset[int] | None:
        """The files, by their places, whose range of *column* has one of the sorted *keys* in it.

        None if the log does not tell these ranges; a file of which it does not may hold any key.
        """
        ranges = self._of(column)
        if ranges is None:
            return None
        try:
            return frozenset(place for place, ends in enumerate(ranges) if _between(keys, *ends))
        except TypeError:  # keys of another type than the statistics
            return None

    def _of(self, column: str) -> list[tuple[Any, Any]] | None:
        if column not in self._ranges:
            named = (f"min.{column}", f"max.{column}")
            known = all(name in self._adds.schema.names for name in named)
            ends = [self._adds.column(name).to_pylist() for name in named] if known else []
            self._ranges[column] = list(zip(*ends, strict=True)) if known else None
        return self._ranges[column]


def _between(keys: Sequence[Any], low: Any, high: Any) -> bool:
    if low is None or high is None:
        return True
    return bisect_left(keys, low) < bisect_right(keys, high)
