"""Without ceremony: pinned versions of Delta tables are read by their files, and little data is written here.

Spark runs several jobs to find out which files make up a version of a Delta table, for each place where it is read, and
more to commit one; delta-rs does either in milliseconds. What comes out is the same; so versions are read like this by
every step, and results written by small ones. Tables with features that their files alone do not show are left to
Spark.
"""

from __future__ import annotations

import json
import re
import shutil
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from functools import reduce
from itertools import count
from operator import and_, or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import CommitProperties, write_deltalake
from deltalake.exceptions import DeltaError

from strandline.engine import files, places, vectors
from strandline.engine.metrics import Scanned
from strandline.engine.opened import Opened, opened
from strandline.engine.seeking import Seeking, rows_met
from strandline.engine.statistics import Ends
from strandline.engine.tables import FEED
from strandline.stopwatch import spending

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

MOST_FILES = 500
"""A version with more files is left to Spark, which reads their statistics too."""

_APART = re.compile(r"delta\.`((?:[^`]|``)+)` VERSION AS OF (\d+) /\* without files of version (\d+) \*/")
_PINNED = re.compile(
    r"delta\.`((?:[^`]|``)+)` VERSION AS OF (\d+)(?! /\* without)\b(?: /\* near (\{(?:[^*]|\*(?!/))*\}) \*/)?"
)
_STORED = re.compile(r"parquet\.`((?:[^`]|``)+)`")
_NOT_IN_ARROW = ("interval", "variant", "void", "geometry", "geography", "time(")
_NUMBERS = count(1)

MOST_ROWS = 4_000_000
MOST_BYTES = 512 << 20
MOST_BYTES_FETCHED = 64 << 20
"""Of a table that more rows, or files of more bytes, would be read of, none are read here; fewer from elsewhere."""

ARRANGED, FOUND = "arranged", "found"
"""Folders of what is kept for seeking, and of rows that were found, as long as a step lasts."""


def pinned_tables(sql: str) -> set[tuple[str, int]]:
    """The Delta tables that a text reads at pinned versions."""
    return {(found[1].replace("``", "`"), int(found[2])) for form in (_PINNED, _APART) for found in form.finditer(sql)}


class PinnedReads:
    """Names, in one session, for pinned versions of tables, stored files and change feeds; as long as a step lasts.

    Change feeds pass through this process: they are named only if *feeds* are small. Where there is a folder for what
    is *kept*, few rows of large tables are sought here.
    """

    def __init__(
        self, session: SparkSession, storage_options: Mapping[str, str], *, feeds: bool, kept: Path | None = None
    ) -> None:
        self._session = session
        self._options = dict(storage_options) or None
        self._feeds = feeds
        self._names: dict[str, str | None] = {}
        self._apart: dict[tuple[str, int, int], Any] = {}
        self._here: dict[str, pa.Table | None] = {}
        self._read_here: list[Scanned] = []
        self._seeking = None if kept is None else Seeking(kept / ARRANGED, self._options)
        self._sought = None if kept is None else kept / FOUND / uuid.uuid4().hex

    def replaced(self, sql: str) -> str:
        """*sql* with what it reads by those names, where that can be."""
        for form, read in self._forms():
            sql = form.sub(lambda found, read=read: self._name(found, read), sql)  # type: ignore[misc]
        return sql

    def close(self) -> None:
        """Forget the names."""
        for name in self._names.values():
            if name is not None:
                self._session.catalog.dropTempView(name)
        self._names = {}
        if self._sought is not None:
            shutil.rmtree(self._sought, ignore_errors=True)

    def _name(self, found: re.Match[str], read: Callable[..., DataFrame | None]) -> str:
        text = found[0]
        if text not in self._names:
            frame = read(found[1].replace("``", "`"), *found.groups()[1:])
            name = None
            if frame is not None:
                name = f"strandline_pinned_{next(_NUMBERS)}"
                frame.createOrReplaceTempView(name)
            self._names[text] = name
        return self._names[text] or text

    def _forms(self) -> list[tuple[re.Pattern[str], Callable[..., DataFrame | None]]]:
        """What is recognised in a text, and how it is read."""
        feeds = [(FEED, self._feed)] if self._feeds else []
        return [(_APART, self._version_apart), (_PINNED, self._version), (_STORED, self._files), *feeds]

    def _version_apart(self, path: str, one: str, another: str) -> DataFrame | None:
        """A version without the files of *another*."""
        version, other = int(one), int(another)
        pair = (path, min(version, other), max(version, other))
        if pair not in self._apart:
            self._apart[pair] = _told_apart(*pair, self._options)
        both = self._apart[pair]
        return None if both is None else self._read(*both[0 if version < other else 1])

    def _version(self, path: str, version: str, near: str | None) -> DataFrame | None:
        told = json.loads(near) if near else {}
        if self._seeking is not None and "among" in told and (rows := self._rows(path, int(version), told)) is not None:
            return rows
        found = plain_files(path, int(version), self._options, told.get("within"))
        return self._read(*found) if found is not None and len(found[0]) <= MOST_FILES else None

    @property
    def scanned(self) -> tuple[Scanned, ...]:
        """What was read without Spark: to seek rows, or to compute with them here."""
        return (*self._read_here, *(() if self._seeking is None else self._seeking.read))

    def rows(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        told: Mapping[str, Any],
        met: Mapping[str, pa.ChunkedArray],
    ) -> pa.Table | None:
        """The rows of a version that are as is *told*, and have values that columns are *met* with; perhaps more.

        None if they are many, or not to be had here. All of them are read once, however often they are asked for.
        """
        if met and self._seeking is not None:
            with spending("seeking"):
                found = self._seeking.meeting(path, version, told, columns, met)
            if found is not None:
                return found
        said = json.dumps([path, version, list(columns), told])
        if said not in self._here:
            self._here[said] = self._rows_here(path, version, columns, told)
        rows = self._here[said]
        return None if rows is None else rows_met(rows, met)

    def stored_rows(self, path: str, columns: Sequence[str]) -> pa.Table:
        """Columns of all rows of stored files."""
        rows = files.read_rows(path, self._options, columns)
        stored = files.sizes(path, self._options)
        self._read_here.append(Scanned(path, len(stored), sum(stored), rows.num_rows))
        return rows

    def _rows_here(self, path: str, version: int, columns: Sequence[str], told: Mapping[str, Any]) -> pa.Table | None:
        within = told.get("within") or {}
        found = readable_files(path, version, self._options, within)
        if found is None:
            return None
        if self._seeking is not None and "among" in told:
            with spending("seeking"):
                sought = self._seeking.rows(path, version, told)
            if sought is not None:
                return sought.select(list(columns))
        size = opened(path, version, self._options).files.within(within)
        most = MOST_BYTES_FETCHED if places.on_disk(path) is None else MOST_BYTES
        if size.rows is None or size.rows > MOST_ROWS or size.bytes > most:
            return None
        with spending("files"):
            rows = self._rows_of_files(path, version, found, columns, within)
        self._read_here.append(Scanned(path, size.files, size.bytes, rows.num_rows))
        return rows

    def _rows_of_files(
        self, path: str, version: int, paths: Sequence[str], columns: Sequence[str], within: Mapping[str, Any]
    ) -> pa.Table:
        """The rows of some files of a version that lie *within* ranges."""
        known = opened(path, version, self._options)
        kinds = pa.schema(known.table.schema().to_arrow())
        read = dict.fromkeys([*columns, *(name for name, pairs in within.items() if pairs)])
        schema = pa.schema([pa.field(name, usual_type(kinds.field(name).type)) for name in read])
        deleted = {f"{path.rstrip('/')}/{file}": places for file, places in known.deleted.items()}
        parts = files.rows_left(
            lambda some: files.dataset(path, some, schema, self._options), paths, inside(within, schema), deleted
        )
        return pa.concat_tables([schema.empty_table(), *parts]).select(list(columns))

    def _rows(self, path: str, version: int, told: Mapping[str, Any]) -> DataFrame | None:
        """The rows that are sought in a version, handed over in a file; None if that is better left to Spark."""
        from pyspark.sql.types import StructType

        assert self._seeking is not None and self._sought is not None
        with spending("seeking"):
            try:
                rows = self._seeking.rows(path, version, told)
            except (DeltaError, OSError, pa.ArrowException):  # what is wrong with the files Spark tells better
                rows = None
            if rows is None:
                return None
            schema = StructType.fromJson(json.loads(opened(path, version, self._options).table.schema().to_json()))
            kept = StructType([field for field in schema.fields if field.name in rows.schema.names])
            if not rows.num_rows:
                return no_rows(self._session, kept)
            place = self._sought / str(len(self._names))
            files.write_rows(rows, str(place))
        return self._session.read.schema(kept).parquet(str(place))

    def _files(self, path: str) -> DataFrame | None:
        """Files that a step stored; Spark would run a job to find out their columns.

        They are named one by one: a folder from which they are removed meanwhile would be taken for an empty one.
        """
        from pyspark.sql.pandas.types import from_arrow_schema

        stored, found = files.parquet_files(path, self._options), files.columns(path, self._options)
        if not stored or found is None:
            return None
        return self._session.read.schema(from_arrow_schema(found)).parquet(*stored)

    def _feed(self, path: str, first: str, last: str) -> DataFrame | None:
        rows = read_feed(path, int(first), int(last), self._options)
        return self._session.createDataFrame(rows) if rows is not None and rows.num_rows else None

    def _read(self, files: list[str], schema_json: str) -> DataFrame:
        from pyspark.sql.types import StructType

        schema = StructType.fromJson(json.loads(schema_json))
        return self._session.read.schema(schema).parquet(*files) if files else no_rows(self._session, schema)


def no_rows(session: SparkSession, schema: StructType) -> DataFrame:
    """An empty frame that Spark knows to be empty, so that what is joined with it is not even read.

    Of an empty list Spark would make one that processes of Python have to be started for.
    """
    from pyspark.sql.pandas.types import to_arrow_schema

    if any(kind in schema.simpleString() for kind in _NOT_IN_ARROW):
        return session.createDataFrame([], schema)
    return session.createDataFrame(to_arrow_schema(schema).empty_table(), schema)


def _told_apart(
    path: str, first: int, second: int, options: Mapping[str, str] | None
) -> tuple[tuple[list[str], str], tuple[list[str], str]] | None:
    """Of two versions the files that the other does not have, and their schemas.

    It is one decision for both: rows of common files cancel out only if neither side reads them.
    """
    a, b = plain_files(path, first, options), plain_files(path, second, options)
    if a is None or b is None:
        return None
    common = set(a[0]) & set(b[0])
    if max(len(a[0]), len(b[0])) - len(common) > MOST_FILES:
        return None
    return ([f for f in a[0] if f not in common], a[1]), ([f for f in b[0] if f not in common], b[1])


def plain_files(
    path: str, version: int, options: Mapping[str, str] | None, limits: Mapping[str, Sequence[Ends]] | None = None
) -> tuple[list[str], str] | None:
    """The files of a version, those that may lie within *limits*, and its schema as JSON.

    None if there is more to its rows than these files hold.
    """
    known = _known(path, version, options)
    found = _below(path, known, limits) if known is not None and known.plain else None
    return None if found is None or known is None else (found, known.table.schema().to_json())


def readable_files(
    path: str, version: int, options: Mapping[str, str] | None, limits: Mapping[str, Sequence[Ends]] | None = None
) -> list[str] | None:
    """The same of a version some of whose rows may be marked as deleted in these files; without its schema."""
    known = _known(path, version, options)
    return _below(path, known, limits) if known is not None and known.readable else None


def _known(path: str, version: int, options: Mapping[str, str] | None) -> Opened | None:
    with spending("log"):
        try:
            return opened(path, version, options)
        except (DeltaError, OSError):
            return None


def _below(path: str, known: Opened, limits: Mapping[str, Sequence[Ends]] | None) -> list[str] | None:
    """The files of a version that may lie within *limits*; None if one is not below the table's folder."""
    with spending("log"):
        found = known.files.paths_within(limits or {})
    if any("://" in file or file.startswith("/") for file in found):
        return None
    return [f"{path.rstrip('/')}/{file}" for file in found]


def usual(table: pa.Table) -> pa.Table:
    """Rows in the types of Arrow that Spark reads (delta-rs has newer ones), any value of which may be NULL."""
    return table.cast(pa.schema([pa.field(field.name, usual_type(field.type)) for field in table.schema]))


def usual_type(kind: pa.DataType) -> pa.DataType:
    """The type of Arrow that Spark reads, for one that delta-rs or a file has."""
    if pa.types.is_dictionary(kind):
        return usual_type(kind.value_type)
    if pa.types.is_uint64(kind):
        return pa.int64()
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_binary_view(kind) or pa.types.is_large_binary(kind):
        return pa.binary()
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(field.name, usual_type(field.type)) for field in kind])
    if pa.types.is_map(kind):
        return pa.map_(usual_type(kind.key_type), usual_type(kind.item_type))
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_list_view(kind):
        return pa.list_(usual_type(kind.value_type))
    return kind


def read_version(
    path: str,
    version: int,
    columns: Sequence[str],
    options: Mapping[str, str] | None = None,
    within: Any = None,
) -> pa.Table | None:
    """The rows of a version of a table, those *within* a condition of Arrow's or all.

    None if there is more to them than its files hold.
    """
    try:
        known = opened(path, version, options)
        return usual(known.table.to_pyarrow_table(columns=list(columns), filters=within)) if known.plain else None
    except (DeltaError, OSError):
        return None


def inside(within: Mapping[str, Sequence[Ends]], schema: pa.Schema) -> pc.Expression | None:
    """For Arrow: that columns lie within ranges; None if nothing is known of any, or it is of no use to Arrow."""
    tests = [_lies(name, schema.field(name).type, pairs) for name, pairs in within.items() if pairs]
    known = [test for test in tests if test is not None]
    return reduce(and_, known) if known else None


def _lies(name: str, kind: pa.DataType, pairs: Sequence[Ends]) -> pc.Expression | None:
    if not pa.types.is_signed_integer(kind) and not pa.types.is_date(kind):
        return None
    read = date.fromisoformat if pa.types.is_date(kind) else int
    try:
        ends = [(pa.scalar(read(low), kind), pa.scalar(read(high), kind)) for low, high in pairs]
    except ValueError:  # days that Python has none of
        return None
    return reduce(or_, [(pc.field(name) >= low) & (pc.field(name) <= high) for low, high in ends])


def read_feed(path: str, first: int, last: int, options: Mapping[str, str] | None = None) -> pa.Table | None:
    """The changed rows of a table from one version to another; None if there is more to them than its files hold."""
    try:
        # Later the columns may have other types; the rows of this interval are to have those of its end.
        known = opened(path, last, options)
        if not known.plain:
            return None
        return usual(pa.table(known.table.load_cdf(starting_version=first, ending_version=last).read_all()))
    except (DeltaError, OSError):
        return None


def collected(frame: DataFrame) -> pa.Table | None:
    """The rows of a small result; None if Arrow does not have its types, or it is not small after all."""
    if any(kind in frame.schema.simpleString() for kind in _NOT_IN_ARROW):
        return None
    try:
        table = frame.toArrow()
    except Exception as error:
        if "maxResultSize" in str(error):
            return None
        raise
    return usual(table)


def write_files(table: pa.Table, path: str, options: Mapping[str, str]) -> bool:
    """Write rows as a file below the folder *path*, whatever was there; False if there are none."""
    places.remove(path, options)
    if not table.num_rows:
        return False
    files.write_rows(table, path, options)
    return True


def write_table(
    table: pa.Table,
    path: str,
    mode: Any,
    properties: Mapping[str, str],
    step_id: str,
    options: Mapping[str, str],
    *,
    where: str | None = None,
    file_bytes: int | None = None,
) -> None:
    """Append rows to a Delta table, overwrite it, or make it (``error``), as one commit of a step.

    Of a table that is overwritten only rows that are as *where* says go. *file_bytes* is about how large files become.
    """
    if (here := places.on_disk(path)) is not None:
        here.parent.mkdir(parents=True, exist_ok=True)
    write_deltalake(
        path,
        table,
        mode=mode,
        configuration=dict(properties) or None,
        storage_options=dict(options) or None,
        commit_properties=CommitProperties(custom_metadata={"userMetadata": step_id}),
        predicate=where,
        target_file_size=file_bytes,
    )


def writable(path: str, options: Mapping[str, str]) -> bool:
    """Whether the Delta table at *path* is one that can be written from here."""
    try:
        known = opened(path, None, options)
    except (DeltaError, OSError):
        return True
    features = known.table.protocol().writer_features or ()
    return known.plain and not {vectors.FEATURE, "clustering", "rowTracking", "identityColumns"} & set(features)


def appendable(path: str, options: Mapping[str, str]) -> bool:
    """Whether rows can be appended from here to the Delta table at *path*: to one with deletion vectors as well."""
    if writable(path, options):
        return True
    known = opened(path, None, options)
    return known.readable and vectors.known_to_writers(known.table)
