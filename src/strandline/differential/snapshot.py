"""A snapshot: where the rows of a table at one moment lie, and what is known of them without reading them."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.engine.delta_log import DeltaLog, NoSuchTable
from strandline.engine.little import plain_files, usual_type
from strandline.errors import DifferentialError
from strandline.sql.names import twice

Format = Literal["parquet", "csv", "json", "delta"]

FORMS = "a Parquet, CSV or JSON file or a folder of them, a Delta table, or PATH@vN for one of its versions"

_SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json.gz": "json",
    ".jsonl.gz": "json",
}
_VERSIONED = re.compile(r"(.+)@v(\d+)")


@dataclass(frozen=True)
class Snapshot:
    """Rows at rest.

    *name* is how the user calls it. *files* are what this process can read in order, None if only Spark can read it:
    then it reads *paths*, or *path* if there are none, with *options* for its reader of the format. *schema* is None if
    nothing says what the columns are: it then has no rows. *fingerprint* changes when the rows do.
    """

    name: str
    format: Format
    path: str = ""
    version: int | None = None
    files: tuple[str, ...] | None = None
    schema: pa.Schema | None = None
    bytes: int | None = None
    rows: int | None = None
    fingerprint: str = ""
    paths: tuple[str, ...] = ()
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> bool:
        """Whether it has no types of its own."""
        return self.format == "csv"


def snapshot(text: str, storage_options: Mapping[str, str] | None = None) -> Snapshot:
    """The snapshot that a user calls *text*."""
    versioned = _VERSIONED.fullmatch(text)
    path = versioned[1] if versioned else text
    if versioned or _is_delta(path, storage_options):
        return _delta(text, path, int(versioned[2]) if versioned else None, storage_options)
    if "://" in path:
        return Snapshot(text, _format(text, [path]), path, fingerprint=path)
    place = Path(path)
    if not place.exists():
        raise DifferentialError("SNAPSHOT_MISSING", f"there is nothing at {text}; a snapshot is {FORMS}; correct it.")
    files = [place] if place.is_file() else sorted(file for file in place.rglob("*") if _is_data(file, place))
    if any("=" in part for file in files for part in file.relative_to(place).parts[:-1]):
        raise DifferentialError(
            "SNAPSHOT_FORMAT",
            f"{text} has folders whose names are values (x=1), which the files in them do not hold; name one of these "
            "folders, or make a Delta table of it.",
        )
    return of_files(text, [str(file) for file in files])


def of_files(name: str, files: Sequence[str]) -> Snapshot:
    """A snapshot that is made up of *files*, all of one format, in this order."""
    if not files:
        return Snapshot(name, "parquet", name, files=(), bytes=0, rows=0, fingerprint=_fingerprint(files))
    found = Snapshot(name, _format(name, files), name, files=tuple(files), fingerprint=_fingerprint(files))
    found = replace(found, bytes=sum(Path(file).stat().st_size for file in files))
    match found.format:
        case "parquet":
            return _parquet(found)
        case "csv":
            return _csv(found)
        case _:
            return replace(found, files=None) if found.bytes else replace(found, files=(), rows=0)


def without_common_files(old: Snapshot, new: Snapshot) -> tuple[Snapshot, Snapshot]:
    """Two versions of a Delta table without the files that both have: the rows in them have not changed."""
    if old.format != "delta" or new.format != "delta" or not old.files or not new.files:
        return old, new
    common = set(old.files) & set(new.files)
    if not common:
        return old, new
    return _part(old, [file for file in old.files if file not in common]), _part(
        new, [file for file in new.files if file not in common]
    )


def _part(whole: Snapshot, files: Sequence[str]) -> Snapshot:
    size = sum(Path(file).stat().st_size for file in files)
    part = replace(whole, files=tuple(files), bytes=size, rows=0)
    return replace(_parquet(part), schema=whole.schema) if files else part


def _is_delta(path: str, options: Mapping[str, str] | None) -> bool:
    if "://" not in path:
        return (Path(path) / "_delta_log").is_dir()
    return not any(path.endswith(suffix) for suffix in _SUFFIXES) and DeltaLog(path, options).exists()


def _delta(name: str, path: str, version: int | None, options: Mapping[str, str] | None) -> Snapshot:
    log = DeltaLog(path, options)
    try:
        newest, identity = log.head()
        wanted = newest if version is None else version
        size = log.size(wanted) if wanted <= newest else None
    except NoSuchTable:
        raise DifferentialError(
            "SNAPSHOT_MISSING", f"there is no Delta table at {path}; a snapshot is {FORMS}; correct it."
        ) from None
    except Exception as error:
        raise DifferentialError(
            "SNAPSHOT_MISSING", f"{name} cannot be read: {first_line(error)}; see whether it was vacuumed."
        ) from error
    if size is None:
        raise DifferentialError(
            "SNAPSHOT_MISSING", f"{path} has no version {wanted}; its newest is {newest}; name one that exists."
        )
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    plain = plain_files(path, wanted, options) if "://" not in path else None
    schema = to_arrow_schema(StructType.fromJson(json.loads(log.schema_json(wanted))))
    return Snapshot(
        name,
        "delta",
        path,
        wanted,
        None if plain is None else tuple(plain[0]),
        usual(schema),
        bytes=size.bytes,
        rows=size.rows,
        fingerprint=f"{identity}@{wanted}",
    )


def _parquet(found: Snapshot) -> Snapshot:
    assert found.files
    rows = 0
    schema: pa.Schema | None = None
    for file in found.files:
        try:
            footer = pq.read_metadata(file)
        except (pa.ArrowInvalid, OSError) as error:
            raise DifferentialError(
                "SNAPSHOT_UNREADABLE",
                f"{file} is not a Parquet file: {first_line(error)}; put it right or take it away.",
            ) from error
        rows += footer.num_rows
        columns = usual(footer.schema.to_arrow_schema())
        schema = columns if schema is None else schema
        # Files of a Delta table may be older than some of its columns.
        if found.format == "parquet" and dict(zip(columns.names, columns.types, strict=True)) != dict(
            zip(schema.names, schema.types, strict=True)
        ):
            raise _other_columns(found, file, columns, schema)
    return replace(found, rows=rows, schema=schema if found.schema is None else found.schema)


def _csv(found: Snapshot) -> Snapshot:
    """Columns are those of the headers; all are text."""
    assert found.files
    if not found.bytes:
        return replace(found, files=(), rows=0)
    headers = {file: names for file in found.files if (names := _header(file))}
    if not headers:
        return replace(found, files=(), rows=0)
    first = next(iter(headers.values()))
    if again := twice(first):
        raise DifferentialError(
            "SNAPSHOT_FORMAT",
            f"the header of {found.name} has {', '.join(sorted(again))} twice; give each column a name of its own.",
        )
    for file, names in headers.items():
        if names != first:
            raise _other_columns(found, file, names, first)
    return replace(found, schema=pa.schema([(name, pa.string()) for name in first]))


def _other_columns(found: Snapshot, file: str, there: Sequence[Any], before: Sequence[Any]) -> DifferentialError:
    """The error for files of one snapshot that do not agree; columns are names, or have a name and a type."""
    shown = [", ".join(str(column).replace("pyarrow.Field<", "").rstrip(">") for column in c) for c in (there, before)]
    return DifferentialError(
        "SNAPSHOT_FORMAT",
        f"{file} has the columns {shown[0]}, and the files of {found.name} before it {shown[1]}; files of one snapshot "
        "have the same columns; put it right or take it away.",
    )


def _header(file: str) -> list[str]:
    """The first line of a CSV file, which is decompressed as its name says."""
    try:
        with pa.input_stream(file) as stream, TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="") as text:
            return next(csv.reader(text), [])
    except (pa.ArrowException, OSError, csv.Error) as error:
        raise DifferentialError(
            "SNAPSHOT_UNREADABLE", f"{file} is not a CSV file: {first_line(error)}; put it right or take it away."
        ) from error


def usual(schema: pa.Schema) -> pa.Schema:
    """Columns in the types that Spark has too, without what files say about them beyond that."""
    return pa.schema([pa.field(field.name, _microseconds(usual_type(field.type))) for field in schema])


def _microseconds(kind: pa.DataType) -> pa.DataType:
    return pa.timestamp("us", kind.tz) if pa.types.is_timestamp(kind) else kind


def _is_data(file: Path, below: Path) -> bool:
    parts = file.relative_to(below).parts
    return file.is_file() and not any(part.startswith(("_", ".")) for part in parts)


def _format(name: str, files: Sequence[str]) -> Format:
    found = {next((form for suffix, form in _SUFFIXES.items() if file.endswith(suffix)), None) for file in files}
    if len(found) != 1 or None in found:
        raise DifferentialError(
            "SNAPSHOT_FORMAT",
            f"{name} has files of {'several formats' if len(found) > 1 else 'no format that is known'}; known are "
            f"{', '.join(_SUFFIXES)}; name the files of one format.",
        )
    (only,) = found
    assert only is not None
    return only


def first_line(error: Exception) -> str:
    """What somebody else's error says, in one line that can go on."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].removesuffix(".")


def _fingerprint(files: Sequence[str]) -> str:
    stats = [(file, Path(file).stat()) for file in files]
    text = "\n".join(f"{file} {stat.st_size} {stat.st_mtime_ns}" for file, stat in stats)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
