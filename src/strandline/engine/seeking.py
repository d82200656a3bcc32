"""Few rows of large tables are sought by their keys, without Spark.

To find the rows of some thousand keys, Spark reads all rows of a table whose files are not sorted by them. Here they
are found in columns that are kept in the order of the key (:mod:`strandline.engine.arranged`), for files that a change
left as they were; other files are read by Arrow. The keys are those of stored files, or of rows that were sought
before. What is found may be more than is needed, never less: Spark joins it as it would have joined the table.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
from deltalake.exceptions import DeltaError

from strandline.engine import files
from strandline.engine.arranged import Arranged, Numbers, ReadColumn, as_numbers, can_be_key
from strandline.engine.metrics import Scanned
from strandline.engine.opened import opened
from strandline.engine.places import on_disk
from strandline.engine.statistics import Files

LEAST_ROWS = 500_000
"""Tables of which no more rows than these would be read are left to Spark."""

MOST_KEYS = 500_000
"""By more keys than these nothing is sought."""

MOST_SHARE = 0.1
"""Nor if they are expected to be those of a larger part of the rows."""

MOST_ROWS = 3_000_000
"""So many rows are handed over to Spark at most."""

MANY_ROWS = 20_000
MANY_TIMES = 4
"""Of more rows than these, so many for each value that they are met with, some are left out once they were read."""

Told = Mapping[str, Any]


@dataclass(frozen=True)
class Keys:
    """The values that a column has in the rows that are sought, each once; NULL may be one of them."""

    values: pa.Array

    @cached_property
    def numbers(self) -> Numbers:
        """Those that are not NULL, sorted."""
        return np.sort(as_numbers(self.values.drop_null()))

    def share(self, spans: tuple[Sequence[tuple[Any, Any]], bool] | None) -> float:
        """The part of all rows that is expected to have one of them, by the ranges of files."""
        if not can_be_key(self.values.type) or not spans or not spans[0]:
            return 1.0
        ends = [_number(end) for pair in spans[0] for end in pair]
        return min(len(self.values) / (max(ends) - min(ends) + 1), 1.0)


class Seeking:
    """Seeks rows for one step; what is kept lies below a folder."""

    def __init__(self, kept: Path, options: Mapping[str, str] | None) -> None:
        self._arranged = Arranged(kept)
        self._options = options
        self._known: dict[str, Keys | None] = {}
        self._found: dict[str, pa.Table | None] = {}
        self.read: list[Scanned] = []
        """What was read of tables: files in which rows were found, and those that had to be read whole."""

    def rows(self, path: str, version: int, told: Told) -> pa.Table | None:
        """The rows of a version of a table that are as is told; None if it is better left to Spark."""
        if not self._readable(path, version):
            return None
        size = opened(path, version, self._options).files.size_within(told.get("within", {}))
        if size.rows is None or size.rows <= LEAST_ROWS:
            return None
        return self._once(path, version, told)

    def meeting(
        self, path: str, version: int, told: Told, columns: Sequence[str], met: Mapping[str, pa.ChunkedArray]
    ) -> pa.Table | None:
        """The rows of a version of a table whose columns have values that they are *met* with; NULL meets nothing."""
        if not self._readable(path, version):
            return None
        table = _Table(path, version, told, self._options)
        if table.rows <= LEAST_ROWS or not table.can_be_read([*columns, *met]):
            return None
        known = {name: Keys(pc.unique(_as(values, table.type(name)).drop_null())) for name, values in met.items()}
        return self._found_by(table, known, columns)

    def _once(self, path: str, version: int, told: Told) -> pa.Table | None:
        """The rows, sought once in a step, whether they are handed over or tell what to seek next."""
        said = json.dumps([path, version, {name: told.get(name) for name in ("within", "among", "columns")}])
        if said not in self._found:
            self._found[said] = self._rows(path, version, told, told["columns"])
        return self._found[said]

    def _readable(self, path: str, version: int) -> bool:
        """Whether the rows of a version are those of its files, but for deleted ones, and these lie on a disk."""
        return on_disk(path) is not None and opened(path, version, self._options).readable

    def _rows(self, path: str, version: int, told: Told, columns: Sequence[str]) -> pa.Table | None:
        if not self._readable(path, version):
            return None
        table = _Table(path, version, told, self._options)
        if not table.can_be_read([*columns, *told["among"]]):
            return None
        asked = {name: self._keys(origins, table.type(name)) for name, origins in told["among"].items()}
        known = {name: keys for name, keys in asked.items() if keys is not None}
        return self._found_by(table, known, columns)

    def _found_by(self, table: _Table, known: Mapping[str, Keys], columns: Sequence[str]) -> pa.Table | None:
        """The rows of a table that have *known* values; None if they are too many."""
        shares = {name: keys.share(table.spans(name)) for name, keys in known.items()}
        by = min(shares, key=lambda name: shares[name], default=None)
        if by is None or shares[by] > MOST_SHARE or shares[by] * table.rows > MOST_ROWS:
            return None
        read = list(dict.fromkeys([*columns, *known]))
        settled = table.settled if self._arranged.has_room else []
        arranged = {file: self._by_key(table, file, by, read, known[by]) for file in settled}
        parts = [part for part in arranged.values() if part is not None]
        others = [file for file in table.paths if arranged.get(file) is None]
        self._note(table.path, parts, others)
        parts.append(table.scanned(others, {name: keys.values for name, keys in known.items()}, read))
        schema = table.schema_of(read)
        found = pa.concat_tables([part.cast(schema) for part in parts])
        for name, keys in known.items():
            found = found.filter(pc.is_in(found[name], value_set=keys.values))
        return found.select(list(columns)) if found.num_rows <= MOST_ROWS else None

    def _note(self, path: str, parts: Sequence[pa.Table], others: Sequence[str]) -> None:
        """Note what was read of a table: *parts* of what is kept of its files, and *others* of them whole."""
        held = [part for part in parts if part.num_rows]
        size = sum(part.nbytes for part in held) + sum(os.path.getsize(file) for file in others)
        self.read.append(Scanned(path, len(held) + len(others), size, sum(part.num_rows for part in held)))

    def _by_key(self, table: _Table, file: str, by: str, columns: Sequence[str], keys: Keys) -> pa.Table | None:
        """The rows of a file, by what is kept of it; None if nothing is, or can be."""
        if keys.values.null_count or not can_be_key(keys.values.type):
            return None
        try:
            return self._arranged.rows(file, by, columns, keys.numbers, table.reader(file), table.deleted.get(file))
        except (OSError, pa.ArrowException):  # no space is left for it, or it is larger than an array can be
            return None

    def _keys(self, origins: Sequence[Told], kind: pa.DataType) -> Keys | None:
        """The values of all *origins*, as those of a type; None if they are not to be had, or too many."""
        said = json.dumps([origins, str(kind)])
        if said not in self._known:
            self._known[said] = self._gathered(origins, kind)
        return self._known[said]

    def _gathered(self, origins: Sequence[Told], kind: pa.DataType) -> Keys | None:
        parts = [self._values(origin) for origin in origins]
        known = [part for part in parts if part is not None]
        if len(known) < len(parts):
            return None
        values = pa.chunked_array([chunk for part in known for chunk in _as(part, kind).chunks], kind)
        found = pc.unique(values)
        return Keys(found) if len(found) <= MOST_KEYS else None

    def _values(self, origin: Told) -> pa.ChunkedArray | None:
        column = origin["column"]
        if "files" in origin:
            return files.read_column(origin["files"], column, self._options)
        found = self._once(origin["table"], origin["version"], origin) if "among" in origin else None
        return None if found is None else found[column]


def rows_met(rows: pa.Table, met: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """Of many rows that were read whole those that have values which a column is *met* with; perhaps more.

    That is asked of the key which is met with the fewest values: it takes less than to join rows that meet nothing.
    """
    kinds = {name: rows.schema.field(name).type for name in met if name in rows.schema.names}
    keys = [name for name, kind in kinds.items() if can_be_key(kind) and _is_alike(kind, met[name].type)]
    by = min(keys, key=lambda name: len(met[name]), default=None)
    if by is None or rows.num_rows <= MANY_ROWS or len(met[by]) * MANY_TIMES > rows.num_rows:
        return rows
    return rows.filter(pc.is_in(rows.column(by), value_set=_as(met[by], kinds[by]).drop_null()))


def _is_alike(one: pa.DataType, other: pa.DataType) -> bool:
    return bool(one == other or (pa.types.is_signed_integer(one) and pa.types.is_signed_integer(other)))


class _Table:
    """A version of a table: its files that matter, and how they are read."""

    def __init__(self, path: str, version: int, told: Told, options: Mapping[str, str] | None) -> None:
        known = opened(path, version, options)
        self._opened = known
        self._files: Files = known.files
        self._schema = pa.schema(known.table.schema().to_arrow())
        self._within = self._files.paths_within(told.get("within", {}))
        self._folder = str(on_disk(path))
        self._other = told.get("other")
        self.path = path
        self._table = (path, options)
        self.rows = self._files.size_within(told.get("within", {})).rows or 0

    def can_be_read(self, columns: Sequence[str]) -> bool:
        """Whether its files lie below it, and have nothing but plain values in *columns*."""
        below = not any("://" in path or path.startswith("/") for path in self._within)
        there = set(self._schema.names).issuperset(columns)
        return below and there and all(_is_flat(self.type(column)) for column in columns)

    @cached_property
    def settled(self) -> list[str]:
        """The files that another version has too, so that they are worth being arranged."""
        return [] if self._other is None else [self._at(path) for path in self._within if path in self._others]

    @property
    def paths(self) -> list[str]:
        """All files."""
        return [self._at(path) for path in self._within]

    @cached_property
    def deleted(self) -> dict[str, Numbers]:
        """Where in files deleted rows are."""
        return {self._at(path): places for path, places in self._opened.deleted.items()}

    @cached_property
    def _others(self) -> frozenset[str]:
        path, options = self._table
        try:
            return frozenset(opened(path, self._other, options).files.paths)
        except (DeltaError, OSError):  # the log does not tell any more
            return frozenset()

    def type(self, column: str) -> pa.DataType:
        return _usual(self._schema.field(column).type)

    def schema_of(self, columns: Sequence[str]) -> pa.Schema:
        return pa.schema([pa.field(name, self.type(name)) for name in columns])

    def spans(self, column: str) -> tuple[list[tuple[Any, Any]], bool] | None:
        return self._files.spans(column, self._within)

    def reader(self, file: str) -> ReadColumn:
        """Reads single columns of a file."""

        def read(column: str) -> pa.Array:
            values = self._dataset([file], [column]).to_table().column(0).combine_chunks()
            if isinstance(values, pa.ChunkedArray):
                raise pa.ArrowCapacityError(f"{column} of {file}")
            return values

        return read

    def scanned(self, paths: Sequence[str], among: Mapping[str, pa.Array], columns: Sequence[str]) -> pa.Table:
        """The rows of some files that have these values."""
        if not paths:
            return self.schema_of(columns).empty_table()
        condition = pc.scalar(True)
        for name, values in among.items():
            condition &= pc.field(name).isin(values)
        return pa.concat_tables(
            files.rows_left(lambda some: self._dataset(some, columns), paths, condition, self.deleted)
        )

    def _dataset(self, paths: Sequence[str], columns: Sequence[str]) -> ds.Dataset:
        return ds.dataset(list(paths), schema=self.schema_of(columns), format=files.PARQUET)

    def _at(self, path: str) -> str:
        return f"{self._folder}/{path}"


def _usual(kind: pa.DataType) -> pa.DataType:
    """The type of Arrow that files are read as, for one that delta-rs has."""
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    return pa.binary() if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind) else kind


def _is_flat(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_primitive(kind)
        or pa.types.is_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_decimal128(kind)
    )


def _as(values: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """Values as those of a type; one that it does not have equals none of them, and is left out."""
    if pa.types.is_signed_integer(kind) and pa.types.is_signed_integer(values.type):
        most = 2 ** (kind.bit_width - 1)
        wide = values.cast(pa.int64())
        outside = pc.or_(pc.less(wide, -most), pc.greater(wide, most - 1))
        values = wide.filter(pc.invert(pc.fill_null(outside, False)))
    return values.cast(kind)


def _number(value: Any) -> int:
    """The end of a range of a file, as a number."""
    return value.toordinal() if isinstance(value, date) else int(value)
