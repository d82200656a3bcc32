"""Reading a snapshot with Spark: its rows under the names c0, c1, ..., and where each of them lies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.differential.columns import Columns
from strandline.differential.snapshot import Snapshot, usual
from strandline.differential.unreadable import SHOWN, Policy, Unreadable
from strandline.engine import tables
from strandline.engine.little import no_rows
from strandline.errors import DifferentialError
from strandline.sql.names import quoted

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame, Engine

CORRUPT = "_strandline_unreadable"
FILE, ROW = "p_file", "p_row"
"""p: a hash of the file's name, and the place of the row in it."""


@dataclass(frozen=True)
class Input:
    """The rows of a snapshot: *frame* has the compared columns as c0, c1, ...; *pointed* the same with p, if rows have
    addresses.
    """

    frame: DataFrame
    pointed: DataFrame | None
    rows: int
    bytes: int
    null_free: bool
    """Whether no part of a key is NULL: keys can then be compared, and buckets used, without looking for it."""


def with_schema(engine: Engine, snapshot: Snapshot) -> Snapshot:
    """*snapshot* with its columns, where only Spark can find them out."""
    from pyspark.sql.pandas.types import to_arrow_schema

    if snapshot.schema is not None or snapshot.files == ():
        return snapshot
    schema = _raw(engine, snapshot).drop(CORRUPT).schema
    return replace(snapshot, schema=usual(to_arrow_schema(schema))) if schema.fields else snapshot


def read(engine: Engine, snapshot: Snapshot, columns: Columns, unreadable: Unreadable, policy: Policy) -> Input:
    """The compared columns of a snapshot; rows that cannot be read are left out, or are an error."""
    from pyspark.sql.pandas.types import from_arrow_schema

    spark = engine.worker
    if snapshot.files == ():
        schema = from_arrow_schema(
            pa.schema([(f"c{i}", field.type) for i, field in enumerate(columns.schema)]), prefer_timestamp_ntz=True
        )
        return Input(no_rows(spark, schema), None, 0, 0, True)
    raw = _raw(engine, snapshot)
    assert snapshot.schema is not None
    kinds = [
        field.dataType.simpleString() for field in from_arrow_schema(columns.schema, prefer_timestamp_ntz=True).fields
    ]
    chosen = []
    bad = [f"{quoted(CORRUPT)} IS NOT NULL"] if CORRUPT in raw.columns else []
    for place, (field, kind) in enumerate(zip(columns.schema, kinds, strict=True)):
        name = quoted(field.name)
        if snapshot.schema.field(field.name).type == field.type:
            chosen.append(f"{name} AS c{place}")
        elif snapshot.text:
            chosen.append(f"try_cast({name} AS {kind}) AS c{place}")
            bad.append(f"({name} IS NOT NULL AND try_cast({name} AS {kind}) IS NULL)")
        else:
            chosen.append(f"CAST({name} AS {kind}) AS c{place}")
    rows = snapshot.rows
    if bad:
        raw, rows = _set_aside(raw, " OR ".join(bad), unreadable, policy)
    pointed = None
    if snapshot.format == "parquet" or (snapshot.format == "delta" and snapshot.files is not None):
        address = [f"xxhash64(_metadata.file_path) AS {FILE}", f"_metadata.row_index AS {ROW}"]
        pointed = raw.selectExpr(*chosen, *address)
    frame = raw.selectExpr(*chosen)
    rows = frame.count() if rows is None else rows
    return Input(frame, pointed, rows, snapshot.bytes or 0, null_free(snapshot.files or (), columns.key))


def null_free(files: Sequence[str], key: Sequence[str]) -> bool:
    """Whether the statistics of Parquet files say that no value of *key* is NULL; False if they do not say."""
    if not files or not all(file.endswith(".parquet") for file in files):
        return False
    for file in files:
        footer = pq.read_metadata(file)
        for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
            chunks = [group.column(number) for number in range(group.num_columns)]
            counts = {c.path_in_schema: c.statistics.null_count for c in chunks if c.statistics is not None}
            if any(counts.get(name) != 0 for name in key):
                return False
    return True


def _set_aside(raw: DataFrame, bad: str, unreadable: Unreadable, policy: Policy) -> tuple[DataFrame, int]:
    """The readable rows, and how many there are."""
    # Spark does not let a query look at unreadable rows alone: it has to ask for a column, too.
    column = next(name for name in raw.columns if name != CORRUPT)
    rows, count, _ = raw.selectExpr("count(*)", f"count_if({bad})", f"count({quoted(column)})").collect()[0]
    if count:
        found = raw.where(bad).limit(SHOWN).collect()
        unreadable.add(count, [_text(row.asDict()) for row in found])
        unreadable.refuse(policy)
        raw = raw.where(f"NOT coalesce({bad}, false)")
    return raw, rows - count


def _text(row: Mapping[str, Any]) -> str:
    """A row that cannot be read: its line as it stands in the file, or its values."""
    whole = row.get(CORRUPT)
    return str(whole) if whole is not None else ",".join("" if value is None else str(value) for value in row.values())


def _raw(engine: Engine, snapshot: Snapshot) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    spark = engine.worker
    match snapshot.format:
        case "parquet":
            return spark.read.parquet(*(snapshot.files or (snapshot.path,)))
        case "delta" if snapshot.files is not None:
            # Files may be older than some columns of the table.
            columns = from_arrow_schema(snapshot.schema, prefer_timestamp_ntz=True)
            return spark.read.schema(columns).parquet(*snapshot.files)
        case "delta":
            assert snapshot.version is not None
            return spark.sql(f"SELECT * FROM {tables.table(snapshot.path, snapshot.version)}")
        case "csv":
            assert snapshot.schema is not None
            ddl = ", ".join(f"{quoted(name)} STRING" for name in (*snapshot.schema.names, CORRUPT))
            reader = spark.read.schema(ddl).option("header", True).option("escape", '"').option("mode", "PERMISSIVE")
            return reader.option("columnNameOfCorruptRecord", CORRUPT).options(**snapshot.options).csv(_paths(snapshot))
        case "json":
            return _json(engine, snapshot)


def _json(engine: Engine, snapshot: Snapshot) -> DataFrame:
    """A line an object; what is no object has its text in a column of its own."""
    from pyspark.sql.pandas.types import from_arrow_schema
    from pyspark.sql.types import StringType, StructField, StructType

    reader = engine.worker.read.option("mode", "PERMISSIVE").option("columnNameOfCorruptRecord", CORRUPT)
    reader = reader.options(**snapshot.options)
    known = None if snapshot.schema is None else from_arrow_schema(snapshot.schema, prefer_timestamp_ntz=True)
    schema = known or reader.json(_paths(snapshot)).schema
    fields = [field for field in schema.fields if field.name != CORRUPT]
    if not fields:
        raise DifferentialError(
            "SNAPSHOT_UNREADABLE", f"no line of {snapshot.name} is a JSON object; write an object a line."
        )
    return reader.schema(StructType([*fields, StructField(CORRUPT, StringType())])).json(_paths(snapshot))


def _paths(snapshot: Snapshot) -> list[str]:
    return list(snapshot.files or snapshot.paths or (snapshot.path,))
