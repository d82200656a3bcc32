"""Signed bags (Z-sets): rows with an integer multiplicity.

A delta is a signed bag: a positive multiplicity inserts copies of a row, a negative one deletes them. Signed
rows may name the same row several times; the *net effect* adds their multiplicities and drops zeros. It
commutes with selection, projection, union and product, which is why a delta may be netted, or not, at any
place.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

Row = tuple[Any, ...]
SignedRow = tuple[Row, int]

_NAN = float("nan")


def canonical(value: Any) -> Any:
    """*value* under Spark's grouping equality: all NaN are one value, and -0.0 is 0.0."""
    if isinstance(value, float):
        if value != value:
            return _NAN
        return 0.0 if value == 0 else value
    return value


def _canonical_row(row: Row) -> Row:
    return tuple(canonical(value) for value in row)


class SignedBag(Mapping[Row, int]):
    """A netted signed bag: each row once, never with multiplicity 0."""

    __slots__ = ("_counts",)

    def __init__(self, rows: Iterable[SignedRow] = ()) -> None:
        counts: dict[Row, int] = {}
        for row, count in rows:
            key = _canonical_row(row)
            counts[key] = counts.get(key, 0) + count
        self._counts = {row: count for row, count in counts.items() if count}

    @classmethod
    def of(cls, rows: Iterable[Row]) -> SignedBag:
        """The bag of *rows*, each inserted once."""
        return cls((row, 1) for row in rows)

    def __getitem__(self, row: Row) -> int:
        return self._counts[_canonical_row(row)]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._counts)

    def __len__(self) -> int:
        return len(self._counts)

    def __repr__(self) -> str:
        return f"SignedBag({self._counts!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SignedBag) and self._counts == other._counts

    def __hash__(self) -> int:
        return hash(frozenset(self._counts.items()))

    def __add__(self, other: SignedBag) -> SignedBag:
        return SignedBag([*self.items(), *other.items()])

    def __neg__(self) -> SignedBag:
        return SignedBag(negate(self.items()))

    def __sub__(self, other: SignedBag) -> SignedBag:
        return self + -other

    @property
    def inserted(self) -> SignedBag:
        """The rows with positive multiplicity."""
        return SignedBag((row, count) for row, count in self.items() if count > 0)

    @property
    def deleted(self) -> SignedBag:
        """The rows with negative multiplicity, with the number of copies to delete."""
        return SignedBag((row, -count) for row, count in self.items() if count < 0)

    def rows(self) -> list[Row]:
        """The rows of an ordinary bag, each as often as it occurs."""
        if any(count < 0 for count in self.values()):
            raise ValueError("a bag with negative multiplicities has no list of rows")
        return [row for row, count in self.items() for _ in range(count)]


def negate(rows: Iterable[SignedRow]) -> list[SignedRow]:
    """Deletions for insertions and the other way round."""
    return [(row, -count) for row, count in rows]


def select(rows: Iterable[SignedRow], condition: Callable[[Row], bool]) -> list[SignedRow]:
    """The signed rows that satisfy *condition*; multiplicities are kept."""
    return [(row, count) for row, count in rows if condition(row)]


def project(rows: Iterable[SignedRow], output: Callable[[Row], Row]) -> list[SignedRow]:
    """Each signed row mapped by *output*; multiplicities are kept."""
    return [(output(row), count) for row, count in rows]


def product(left: Iterable[SignedRow], right: Iterable[SignedRow]) -> list[SignedRow]:
    """All pairs; multiplicities are multiplied."""
    right = list(right)
    return [(a + b, m * n) for a, m in left for b, n in right]
