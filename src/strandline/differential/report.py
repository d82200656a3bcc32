"""The report of a differential: changed rows with ``_change_type``, in Parquet files below one folder.

This is what every algorithm leaves behind, wherever it runs, and what is counted, shown and handed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

CHANGE_TYPE = "_change_type"
INSERT, DELETE, BEFORE, AFTER = "insert", "delete", "update_preimage", "update_postimage"

ROW_GROUP = 100_000


@dataclass(frozen=True)
class Counts:
    """How many rows were inserted, deleted and updated."""

    inserted: int = 0
    deleted: int = 0
    updated: int = 0

    @property
    def total(self) -> int:
        """The number of reports."""
        return self.inserted + self.deleted + self.updated

    def to_dict(self) -> dict[str, int]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


class ReportFile:
    """Writes a report from this process, as one file of the folder."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._schema = schema.append(pa.field(CHANGE_TYPE, pa.string()))
        self._writer = pq.ParquetWriter(folder / "part-0.parquet", self._schema)
        self._counted = {INSERT: 0, DELETE: 0, AFTER: 0}

    def inserts(self, rows: pa.Table) -> None:
        """Rows that came."""
        self._write(rows, INSERT)

    def deletes(self, rows: pa.Table) -> None:
        """Rows that went."""
        self._write(rows, DELETE)

    def updates(self, old: pa.Table, new: pa.Table) -> None:
        """Rows as they were and as they are, pair by pair; either follows the other."""
        if not new.num_rows:
            return
        self._counted[AFTER] += new.num_rows
        both = pa.concat_tables([_typed(old, BEFORE), _typed(new, AFTER)])
        order = np.arange(both.num_rows).reshape(2, -1).T.ravel()
        self._writer.write_table(both.take(pa.array(order)).cast(self._schema), ROW_GROUP)

    def close(self) -> Counts:
        """Finish the file; what it holds."""
        self._writer.close()
        return Counts(self._counted[INSERT], self._counted[DELETE], self._counted[AFTER])

    def _write(self, rows: pa.Table, kind: str) -> None:
        if rows.num_rows:
            self._counted[kind] += rows.num_rows
            self._writer.write_table(_typed(rows, kind).cast(self._schema), ROW_GROUP)


def counted(folder: str) -> Counts:
    """What the files of a report hold."""
    found = {INSERT: 0, DELETE: 0, AFTER: 0, BEFORE: 0}
    stored = ds.dataset(folder, format="parquet")
    for batch in stored.to_batches(columns=[CHANGE_TYPE]) if stored.files else ():
        for entry in batch.column(0).value_counts().to_pylist():
            found[entry["values"]] += entry["counts"]
    return Counts(found[INSERT], found[DELETE], found[AFTER])


LOOKED_AT = 10_000
"""How many rows of a report a sample is taken from."""


def sample(folder: str, most: int, key: Sequence[str]) -> list[dict[str, Any]]:
    """Rows from the beginning of a report in the order of their key, so that both sides of an update stand together."""
    stored = ds.dataset(folder, format="parquet")
    rows = stored.head(LOOKED_AT).to_pylist() if stored.files else []
    return sorted(rows, key=lambda row: _place(row, key))[:most]


def _place(row: Mapping[str, Any], key: Sequence[str]) -> tuple[Any, ...]:
    values = [repr(row[name]) if isinstance(row[name], list | dict) else row[name] for name in key]
    return (*((v is None, v) for v in values), (DELETE, BEFORE, AFTER, INSERT).index(row[CHANGE_TYPE]))


def _typed(rows: pa.Table, kind: str) -> pa.Table:
    return rows.append_column(CHANGE_TYPE, pa.array([kind]).take(pa.array(np.zeros(rows.num_rows, np.int8))))
