"""Tables that are dumped into a folder, as the tests write them."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from strandline.algebra.bag import Row

PARTS = pa.schema([("id", pa.int64()), ("name", pa.string()), ("price", pa.decimal128(10, 2))])
EVENTS = pa.schema([("part", pa.int64()), ("what", pa.string())])


def write(file: Path, rows: Sequence[Row], schema: pa.Schema) -> Path:
    """A Parquet file with *rows*."""
    file.parent.mkdir(parents=True, exist_ok=True)
    table = pa.Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
    pq.write_table(table, file)
    return file


def text(file: Path, *lines: str) -> Path:
    """A text file."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def age(path: Path, seconds: float) -> None:
    """Let the contents of files have changed that long ago; the records of the files say otherwise."""
    moment = time.time() - seconds
    for file in path.rglob("*") if path.is_dir() else [path]:
        os.utime(file, (moment, moment))


def declaration(folder: Path, **more: Any) -> Mapping[str, Any]:
    """A source of the dumps below *folder*, which are taken at once."""
    return {"kind": "files", "path": str(folder), "settle": 0, **more}
