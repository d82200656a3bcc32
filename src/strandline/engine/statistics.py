"""The files of a version of a Delta table, and which of them may hold given values, by the statistics in its log."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any
from urllib.parse import unquote

Ends = tuple[Any, Any]
"""The least and the greatest value of a column."""


@dataclass(frozen=True)
class TableSize:
    """How much a version of a table holds; rows are None where the writer kept no statistics."""

    rows: int | None
    bytes: int
    files: int


def added_up(sizes: Iterable[TableSize]) -> TableSize:
    """Several parts of a table as one."""
    parts = list(sizes)
    rows = [part.rows for part in parts if part.rows is not None]
    return TableSize(
        sum(rows) if len(rows) == len(parts) else None,
        sum(part.bytes for part in parts),
        sum(part.files for part in parts),
    )


LEAST_SHARE = 0.05
"""Of a file, that much is read at least: parts of files are skipped whole."""


class Files:
    """The files of a version; *adds* are the actions of its log, flattened."""

    def __init__(self, adds: Any) -> None:
        self._adds = adds
        self._sizes: list[int] = adds.column("size_bytes").to_pylist()
        counted = "num_records" in adds.schema.names
        self._rows: list[int | None] = adds.column("num_records").to_pylist() if counted else [None] * len(self._sizes)
        self.count = len(self._sizes)
        self.bytes = sum(self._sizes)
        self._ranges: dict[str, list[Ends] | None] = {}

    @property
    def size(self) -> TableSize:
        """All of them."""
        return self.sized(range(self.count))

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

    def within(self, limits: Mapping[str, Collection[Ends]]) -> TableSize:
        """What is left of them if each column that *limits* names has to lie between one of its pairs of ends.

        A date is given as its text. A file of which the log does not tell the range of a column may hold any value.
        Numbers are taken to be spread evenly in a file: of its rows and bytes only a share is counted, as readers skip
        parts of files as well.
        """
        left = self._left(limits)
        shares = [min((self._share(place, c, pairs) for c, pairs in limits.items()), default=1.0) for place in left]
        rows = [(self._rows[place], share) for place, share in zip(left, shares, strict=True)]
        counted = [count * share for count, share in rows if count is not None]
        size = sum(self._sizes[place] * share for place, share in zip(left, shares, strict=True))
        return TableSize(int(sum(counted)) if len(counted) == len(rows) else None, int(size), len(left))

    def size_within(self, limits: Mapping[str, Collection[Ends]]) -> TableSize:
        """The same with all of each file that is left: who changes rows in a file reads it whole."""
        return self.sized(self._left(limits))

    def apart(self, column: str) -> list[tuple[Any, TableSize]] | None:
        """The files in groups whose ranges of *column* do not overlap, in their order: least value, and size of each.

        None if a value is NULL, or the log does not tell of one of the files.
        """
        found = self.spans(column, self.paths)
        ranges = self._of(column)
        if found is None or found[1] or ranges is None or any(low is None for low, _ in ranges):
            return None
        groups: list[tuple[Any, Any, list[int]]] = []
        for place in sorted(range(self.count), key=lambda place: ranges[place][0]):
            low, high = ranges[place]
            if groups and low <= groups[-1][1]:
                first, last, places = groups[-1]
                groups[-1] = (first, max(last, high), [*places, place])
            else:
                groups.append((low, high, [place]))
        return [(first, self.sized(places)) for first, _, places in groups]

    def _share(self, place: int, column: str, pairs: Collection[Ends]) -> float:
        ranges = self._of(column)
        ends: Ends = (None, None) if ranges is None else ranges[place]
        if not all(isinstance(value, int) for value in (*ends, *(end for pair in pairs for end in pair))):
            return 1.0
        low, high = ends
        inside: int = sum(max(0, min(high, last) - max(low, first) + 1) for first, last in pairs)
        share: float = inside / (high - low + 1)
        return min(max(share, LEAST_SHARE), 1.0)

    def paths_within(self, limits: Mapping[str, Collection[Ends]]) -> list[str]:
        """The same, by where they are."""
        paths = self.paths
        return [paths[place] for place in self._left(limits)]

    def _left(self, limits: Mapping[str, Collection[Ends]]) -> list[int]:
        left = list(range(self.count))
        for column, pairs in limits.items():
            ranges = self._of(column)
            if ranges is not None:
                left = [place for place in left if _overlaps(ranges[place], pairs)]
        return left

    def spans(self, column: str, paths: Collection[str]) -> tuple[list[Ends], bool] | None:
        """The ranges of *column* in the files of these *paths*, and whether a NULL is among its values.

        None if the log does not tell of one of them.
        """
        ranges = self._of(column)
        there = [place for place, path in enumerate(self.paths) if path in paths]
        if ranges is None:
            return None if there else ([], False)
        nulls = f"null_count.{column}"
        counts = self._adds.column(nulls).to_pylist() if nulls in self._adds.schema.names else [None] * self.count
        known = [place for place in there if ranges[place][0] is not None and ranges[place][1] is not None]
        empty = [place for place in there if counts[place] is not None and counts[place] == self._rows[place]]
        if set(known) | set(empty) != set(there):
            return None
        return [ranges[place] for place in known], any(counts[place] != 0 for place in there)

    @property
    def paths(self) -> list[str]:
        """Where they are, from the table's folder on."""
        return [unquote(path) for path in self._adds.column("path").to_pylist()]

    def sized(self, places: Iterable[int]) -> TableSize:
        """Some of them, by their places."""
        chosen = list(places)
        rows = [self._rows[place] for place in chosen]
        known = [count for count in rows if count is not None]
        return TableSize(
            sum(known) if len(known) == len(rows) else None, sum(self._sizes[place] for place in chosen), len(chosen)
        )

    def _of(self, column: str) -> list[Ends] | None:
        if column not in self._ranges:
            named = (f"min.{column}", f"max.{column}")
            known = all(name in self._adds.schema.names for name in named)
            try:
                ends = [self._adds.column(name).to_pylist() for name in named] if known else []
            except (ValueError, OverflowError):  # dates that Python has none of
                known = False
            self._ranges[column] = list(zip(*ends, strict=True)) if known else None
        return self._ranges[column]


def _between(keys: Sequence[Any], low: Any, high: Any) -> bool:
    if low is None or high is None:
        return True
    return bisect_left(keys, low) < bisect_right(keys, high)


def _overlaps(ends: Ends, pairs: Collection[Ends]) -> bool:
    low, high = ends
    if low is None or high is None:
        return True
    try:
        return any(low <= _like(low, last) and _like(low, first) <= high for first, last in pairs)
    except (TypeError, ValueError):  # values of another type than the statistics, or days that Python has none of
        return True


def _like(known: Any, value: Any) -> Any:
    return date.fromisoformat(value) if isinstance(known, date) and isinstance(value, str) else value
