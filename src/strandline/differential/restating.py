"""A snapshot under other names: for a comparison with one whose files cannot have the names that it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from strandline.differential.columns import Columns
from strandline.differential.snapshot import Snapshot, snapshot
from strandline.differential.unreadable import Policy, Unreadable

if TYPE_CHECKING:
    from strandline.engine.session import Engine


def restated(
    engine: Engine,
    found: Snapshot,
    named: Sequence[str],
    stored: pa.Schema,
    folder: str,
    unreadable: Unreadable,
    policy: Policy,
) -> Snapshot:
    """The columns *named* of a snapshot with the names and types of *stored*, one for one, in files below *folder*."""
    from strandline.differential.spark_reading import read

    empty = Snapshot(found.name, "parquet", files=(), schema=stored, bytes=0, rows=0)
    if found.files == ():
        return empty
    types = [field.type for field in stored]
    wanted = Columns(pa.schema(list(zip(named, types, strict=True))), ())
    rows = read(engine, found, wanted, unreadable, policy)
    renamed = rows.frame.toDF(*stored.names)
    renamed.write.mode("overwrite").parquet(folder)
    if "://" in folder:
        return replace(empty, files=None, path=folder, rows=rows.rows)
    return replace(snapshot(folder), name=found.name, schema=stored, rows=rows.rows)
