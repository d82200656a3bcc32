"""Columns of a data file in the order of a key that it is not sorted by: few keys are found without reading all.

A data file of a Delta table never changes, so what is made of it is never out of date: it may be dropped at any time,
and is made again when it is asked for. Each column is a file of Arrow's own format, which is mapped into memory: only
the pages that are looked at are read.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Numbers = np.ndarray[Any, Any]

ReadColumn = Callable[[str], pa.Array]
"""Reads a column of the data file."""

LEAST_FREE = 0.1
"""So much of the disk is left free for others."""

MOST_OPEN = 20_000
"""So many columns stay mapped into memory; a process may have some 65,000 mappings."""

_DIGITS = 18
"""Decimals of no more digits fit into 64 bits."""

_WORDS = 1_000
"""Texts of which there are no more than these are stored as numbers."""

_FILE = "of"
_ORDER = "order"


def can_be_key(kind: pa.DataType) -> bool:
    """Whether values of a type are numbers, in the order of which columns can be kept."""
    return bool(pa.types.is_signed_integer(kind) or pa.types.is_date32(kind))


def as_numbers(values: pa.Array) -> Numbers:
    """Values of such a type as numbers; none is NULL."""
    number = pa.int32() if pa.types.is_date32(values.type) else values.type
    found: Numbers = values.cast(number).to_numpy(zero_copy_only=False)
    return found


def rows_with(keys: Numbers, values: Numbers) -> Numbers:
    """The places in sorted *keys* of those that are among *values*, which are sorted and told once each."""
    if len(keys):
        values = values[np.searchsorted(values, keys[0]) : np.searchsorted(values, keys[-1], "right")]
    if not len(keys) or not len(values):
        return np.empty(0, np.int64)
    first, last = np.searchsorted(keys, values[0], "left"), np.searchsorted(keys, values[-1], "right")
    if last - first <= 4 * len(values):
        near = keys[first:last]
        there = values[np.minimum(np.searchsorted(values, near), len(values) - 1)] == near
        found: Numbers = np.flatnonzero(there) + first
        return found
    lows, highs = np.searchsorted(keys, values, "left"), np.searchsorted(keys, values, "right")
    counts = highs - lows
    ends = np.cumsum(counts)
    places: Numbers = np.arange(int(ends[-1])) + np.repeat(lows - (ends - counts), counts)
    return places


class Arranged:
    """Below a folder: columns of data files, in the order of keys."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rows(
        self,
        file: str,
        key: str,
        columns: Sequence[str],
        values: Numbers,
        read: ReadColumn,
        deleted: Numbers | None = None,
    ) -> pa.Table:
        """The rows of a data *file* whose *key* is among *values*, which are sorted; NULL is none of them.

        Those at places of the file where rows are *deleted* are none either. Their columns may have other types than in
        the file, from which they can be cast.
        """
        place = self._place(file, key)
        keys = self._column(file, place, key, key, read)
        numbers = as_numbers(keys.slice(0, len(keys) - keys.null_count))
        found = rows_with(numbers, values.astype(numbers.dtype, copy=False))
        if deleted is not None:
            order = _mapped(f"{place}/{_ORDER}")
            if order is None:
                raise FileNotFoundError(f"{place}/{_ORDER}")
            found = found[~np.isin(order.take(pa.array(found)).to_numpy(), deleted)]
        chosen = pa.array(found)
        return pa.table({name: self._column(file, place, key, name, read).take(chosen) for name in columns})

    @property
    def has_room(self) -> bool:
        """Whether more may be kept."""
        there = next(folder for folder in (self._folder, *self._folder.parents) if folder.exists())
        disk = shutil.disk_usage(there)
        return disk.free >= LEAST_FREE * disk.total

    def needed(self) -> set[str]:
        """The folders, by name, that hold columns of a data file which is still there."""
        return {place.name for place in self._folder.iterdir() if _is_needed(place)} if self._folder.is_dir() else set()

    def _place(self, file: str, key: str) -> str:
        """Where columns of a data file are in the order of a key; another file of the same name has another place."""
        seen = os.stat(file)
        return _folder_of(str(self._folder), file, seen.st_size, seen.st_mtime_ns, key)

    def _column(self, file: str, place: str, key: str, name: str, read: ReadColumn) -> pa.Array:
        """A column in the order of the key to which *place* belongs."""
        kept = f"{place}/{_digest(name)}"
        found = _mapped(kept)
        if found is not None:
            return found
        _note(file, Path(place).parent)
        order = _mapped(f"{place}/{_ORDER}")
        values = read(name)
        if order is None:
            # Always that of the key, which may be mapped still though its folder was removed.
            keys = values if name == key else read(key)
            order = pc.sort_indices(keys).cast(pa.int32() if len(keys) < 1 << 31 else pa.int64())
            _write(order, Path(place) / _ORDER)
        arranged = _compact(values).take(order)
        _write(arranged, Path(kept))
        return arranged


@lru_cache(maxsize=MOST_OPEN)
def _folder_of(folder: str, file: str, size: int, modified: int, key: str) -> str:
    """The place below *folder* of what is kept of a data file by a key; many files are asked for in each step."""
    return str(Path(folder) / _digest(f"{file}\0{size}\0{modified}") / _digest(key))


def _note(file: str, place: Path) -> None:
    """Note of which data file something is kept at a place, before anything is."""
    if not (place / _FILE).exists():
        place.mkdir(parents=True, exist_ok=True)
        (place / _FILE).write_text(file, encoding="utf-8")


def _is_needed(place: Path) -> bool:
    try:
        return Path((place / _FILE).read_text(encoding="utf-8")).exists()
    except OSError:  # begun by a process that was killed
        return False


def _compact(values: pa.Array) -> pa.Array:
    """The same values in half the space or less, where that can be: they are not compressed when they are stored."""
    kind = values.type
    if pa.types.is_decimal128(kind) and kind.precision <= _DIGITS:
        return values.cast(pa.decimal64(kind.precision, kind.scale))
    if pa.types.is_string(kind):
        encoded = values.dictionary_encode()
        if len(encoded.dictionary) <= _WORDS:
            return encoded.cast(pa.dictionary(pa.int16(), kind))
    return values


def _mapped(file: str) -> pa.Array | None:
    """A stored column; None if it is not there, or not whole."""
    try:
        return _opened(file)
    except (OSError, pa.ArrowInvalid):
        return None


@lru_cache(maxsize=MOST_OPEN)
def _opened(file: str) -> pa.Array:
    """A stored column, which never changes, mapped into memory: opening one takes longer than finding rows in it."""
    with pa.memory_map(file) as stream:
        return pa.ipc.open_file(stream).get_batch(0).column(0)


def _write(values: pa.Array, file: Path) -> None:
    """Store a column, whole or not at all; of several who do so the last one stays."""
    file.parent.mkdir(parents=True, exist_ok=True)
    fresh = file.with_name(f"{file.name}-{uuid.uuid4().hex}")
    batch = pa.record_batch([values], names=["column"])
    with pa.OSFile(str(fresh), "wb") as stream, pa.ipc.new_file(stream, batch.schema) as writer:
        writer.write_batch(batch)
    fresh.replace(file)


@lru_cache(maxsize=MOST_OPEN)
def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
