"""What a dump holds, as far as this process can tell: its columns, how many rows, a fingerprint of its contents."""

from __future__ import annotations

import csv
import gzip
import hashlib
from collections.abc import Mapping, Sequence
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.algebra.schema import Column, Schema
from strandline.differential.snapshot import Snapshot
from strandline.engine.little import usual_type
from strandline.errors import SourceError
from strandline.sources.arrow_types import arrow_type, spark_type
from strandline.sources.files.declared import FilesTable
from strandline.sources.files.folders import FoundDump
from strandline.sources.snapshots import Contents

_CHUNK = 1 << 20


def columns_of(leaf: str, table: FilesTable, dump: FoundDump) -> tuple[Schema, dict[str, str]]:
    """The columns of a dump, and of those that Spark has no type for, why; no columns if nothing says what they are."""
    if table.format == "parquet":
        return _of_parquet(leaf, dump)
    if table.format == "json" and not table.columns:
        raise SourceError(
            "COLUMNS_MISSING",
            f"{leaf} arrives as JSON, which does not say what its columns are; declare them under `columns`, each with "
            "its type, for example id: bigint.",
        )
    header = _header(leaf, table, dump) if table.format == "csv" else tuple(table.columns)
    return tuple(Column(name, table.columns.get(name, "string")) for name in header), {}


def contents_of(table: FilesTable, dump: FoundDump) -> Contents:
    """The number of rows, of text that of lines, and a fingerprint of all bytes; each file is read once, in order."""
    digest, lines = hashlib.blake2b(digest_size=16), 0
    for file in dump.files:
        # Where a file ends is part of what a dump holds.
        digest.update(b"\0file")
        with _opened(file) as stream:
            last = b"\n"
            while chunk := stream.read(_CHUNK):
                digest.update(chunk)
                lines += chunk.count(b"\n")
                last = chunk[-1:]
            lines += last != b"\n"
    if table.format == "parquet":
        rows = sum(pq.read_metadata(file).num_rows for file in dump.files)
    else:
        rows = max(0, lines - (len(dump.files) if _has_header(table) else 0))
    return Contents(rows, digest.hexdigest())


def snapshot_of(leaf: str, table: FilesTable, dump: FoundDump, columns: Sequence[Column]) -> Snapshot:
    """A dump as what can be compared; *columns* are those of a dump without any files in it.

    Text is always read by Spark, so that what a value means does not depend on how much there is of it.
    """
    name, size = f"{leaf} {dump.name}", dump.bytes
    if not dump.files or (table.format != "parquet" and not size):
        schema = pa.schema([(column.name, pa.string()) for column in columns])
        return Snapshot(name, "csv", files=(), schema=schema, bytes=0, rows=0, fingerprint=dump.stamp)
    if table.format == "parquet":
        fields = {field.name: field.type for field in pq.read_schema(dump.files[0])}
        schema = pa.schema([(c, _as_spark(kind)) for c, kind in fields.items() if spark_type(kind) is not None])
        rows = sum(pq.read_metadata(file).num_rows for file in dump.files)
        return Snapshot(name, "parquet", files=dump.files, schema=schema, bytes=size, rows=rows, fingerprint=dump.stamp)
    found, _ = columns_of(leaf, table, dump)
    typed = table.format == "json"
    schema = pa.schema([(c.name, arrow_type(c.type) if typed else pa.string()) for c in found])
    options = dict(table.options)
    return Snapshot(
        name, table.format, schema=schema, bytes=size, fingerprint=dump.stamp, paths=dump.files, options=options
    )


def _of_parquet(leaf: str, dump: FoundDump) -> tuple[Schema, dict[str, str]]:
    fields: dict[str, pa.DataType] = {}
    for file in dump.files:
        try:
            found = {field.name: field.type for field in pq.read_schema(file)}
        except (pa.ArrowInvalid, OSError) as error:
            raise _unreadable(leaf, dump, f"{file} is not a Parquet file: {str(error).splitlines()[0]}") from error
        fields = fields or found
        if found != fields:
            raise _unreadable(leaf, dump, f"its files have other columns, or columns of other types, than {file}")
    types = {name: spark_type(kind) for name, kind in fields.items()}
    unusable = {
        name: f"{leaf}.{name} is of type {fields[name]}, which Spark does not have; have it written as another type."
        for name, kind in types.items()
        if kind is None
    }
    return tuple(Column(name, kind) for name, kind in types.items() if kind is not None), unusable


def _header(leaf: str, table: FilesTable, dump: FoundDump) -> tuple[str, ...]:
    if not _has_header(table):
        return tuple(table.columns)
    found: tuple[str, ...] = ()
    encoding = table.options.get("encoding", "utf-8")
    separator = table.options.get("sep", table.options.get("delimiter", ","))
    for file in dump.files:
        try:
            with _opened(file) as stream:
                first = stream.readline().decode(encoding).lstrip("\ufeff")
        except (OSError, UnicodeError, LookupError) as error:
            raise _unreadable(leaf, dump, f"the first line of {file} cannot be read: {error}") from error
        names = tuple(next(csv.reader([first], delimiter=separator, quotechar=table.options.get("quote", '"')), ()))
        found = found or names
        if names and names != found:
            raise _unreadable(leaf, dump, f"{file} has other columns, or in another order, than the files before it")
    return found


def _has_header(table: FilesTable) -> bool:
    return table.format == "csv" and table.options.get("header", "true").lower() != "false"


def _as_spark(kind: pa.DataType) -> pa.DataType:
    """A type of a file in the way Spark writes it too."""
    plain: Mapping[str, pa.DataType] = {"smallint": pa.int16(), "int": pa.int32(), "bigint": pa.int64()}
    text = spark_type(kind)
    if text is not None and text in plain:
        return plain[text]
    if pa.types.is_timestamp(kind):
        return pa.timestamp("us", None if kind.tz is None else "UTC")
    return usual_type(kind)


def _opened(file: str) -> IO[bytes]:
    return gzip.open(file, "rb") if file.endswith(".gz") else open(file, "rb")  # type: ignore[return-value]


def _unreadable(leaf: str, dump: FoundDump, why: str) -> SourceError:
    return SourceError(
        "DUMP_UNREADABLE", f"dump {dump.name} of {leaf} cannot be read: {why}; put it right, or take it away."
    )
