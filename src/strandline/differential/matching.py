"""Pairing the rows of two buffers, a whole buffer at a time.

A *pass* says by what rows are paired and what becomes of a pair. A set has one: rows with equal keys, which are an
update if they differ. A bag has two, as Match has (2.2.2): equal rows first, of which nothing is reported, then rows
with equal identification attributes, which are updates; the i-th copy on one side is paired with the i-th on the other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from strandline.differential.arrow_rows import different, encoded, found_in, key_array, numbered

Places = np.ndarray[Any, Any]


class Updates(Protocol):
    """Where updated rows go, as they were and as they are."""

    def updates(self, old: pa.Table, new: pa.Table) -> None: ...


@dataclass(frozen=True)
class Pass:
    """*key* makes of rows what they are paired by, *number* tells equal ones apart; *settle* gets the pairs."""

    key: Callable[[pa.Table], pa.Array]
    number: Callable[[pa.Array], pa.Array]
    settle: Callable[[pa.Table, pa.Table, Updates], None] | None


def set_passes(columns: Sequence[str], key: Sequence[str]) -> tuple[Pass, ...]:
    """Rows of a set are paired by their key."""
    rest = [name for name in columns if name not in key]

    def if_different(old: pa.Table, new: pa.Table, report: Updates) -> None:
        changed = different(old, new, rest)
        if changed.any():
            chosen = pa.array(changed)
            report.updates(old.filter(chosen), new.filter(chosen))

    return (Pass(lambda rows: key_array(rows, key), lambda keys: keys, if_different),)


def bag_passes(columns: Sequence[str], identification: Sequence[str]) -> tuple[Pass, ...]:
    """Rows of a bag are paired with equal ones, then by their identification attributes."""

    def updated(old: pa.Table, new: pa.Table, report: Updates) -> None:
        report.updates(old, new)

    return (
        Pass(lambda rows: encoded(rows, columns), numbered, None),
        Pass(lambda rows: encoded(rows, identification), numbered, updated),
    )


class Buffer:
    """Rows, their keys for each pass, and which of them have found no match so far."""

    def __init__(self, rows: pa.Table, passes: Sequence[Pass]) -> None:
        self.rows = rows
        self._passes = tuple(passes)
        self._keys: list[pa.Array | None] = [None] * len(self._passes)
        self.alive = np.ones(rows.num_rows, bool)

    @property
    def live(self) -> int:
        """How many rows have found no match."""
        return int(self.alive.sum())

    def keys(self, number: int) -> tuple[pa.Array, Places]:
        """For a pass, the keys of the live rows and the places of these rows."""
        all_keys, places = self._all_keys(number), np.flatnonzero(self.alive)
        return (all_keys if len(places) == len(self.alive) else all_keys.take(pa.array(places))), places

    def _all_keys(self, number: int) -> pa.Array:
        if (keys := self._keys[number]) is None:
            keys = self._keys[number] = self._passes[number].key(self.rows)
        return keys

    def at(self, places: Places) -> pa.Table:
        """The rows at *places*."""
        whole = len(places) == self.rows.num_rows and bool((places == np.arange(len(places))).all())
        return self.rows if whole else self.rows.take(pa.array(places))

    def remove(self, places: Places) -> None:
        """These rows have found their match."""
        self.alive[places] = False

    def left(self) -> pa.Table:
        """The rows that have found no match."""
        return self.rows if self.alive.all() else self.rows.filter(pa.array(self.alive))


def pair_off(passes: Sequence[Pass], number: int, old: Buffer, new: Buffer, report: Updates) -> None:
    """One pass over two buffers: pairs are settled and removed from both."""
    one = passes[number]
    (keys1, places1), (keys2, places2) = old.keys(number), new.keys(number)
    if not len(keys1) or not len(keys2):
        return
    # Snapshots in the same order, mostly: nothing to look up.
    if not keys1.equals(keys2):
        found = found_in(one.number(keys1), one.number(keys2))
        places1, places2 = places1[found >= 0], places2[found[found >= 0]]
    if len(places1) and one.settle is not None:
        one.settle(old.at(places1), new.at(places2), report)
    old.remove(places1)
    new.remove(places2)


def match_all(passes: Sequence[Pass], old: pa.Table, new: pa.Table, report: Updates) -> tuple[pa.Table, pa.Table]:
    """All passes over two tables; the rows without a match."""
    buffer1, buffer2 = Buffer(old, passes), Buffer(new, passes)
    for number in range(len(passes)):
        pair_off(passes, number, buffer1, buffer2, report)
    return buffer1.left(), buffer2.left()
