"""Stored deltas: unit rows with a sign, written once and read by every step that needs them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from strandline.algebra.block import Form
from strandline.algebra.schema import Schema, names
from strandline.engine.files import count_rows, count_signs
from strandline.engine.little import write_files
from strandline.engine.session import Engine
from strandline.sql.names import quoted_list
from strandline.sql.render import SIGN
from strandline.stopwatch import spending


@dataclass(frozen=True)
class Delta:
    """A stored delta of a node: where its rows are, what was counted when it was written, and what they are.

    They are unit rows; but a summary delta has one row for each group, and all of them count as inserted.
    """

    path: str
    inserted: int
    deleted: int
    form: Form = "explicit"

    @property
    def rows(self) -> int:
        return self.inserted + self.deleted

    def noted(self) -> dict[str, Any]:
        """As the result of a step has it."""
        return {"path": self.path, "inserted": self.inserted, "deleted": self.deleted, "form": self.form}

    @classmethod
    def told_by(cls, result: Mapping[str, Any]) -> Delta:
        """The inverse, among whatever else a result says."""
        return cls(result["path"], result["inserted"], result["deleted"], result.get("form", "explicit"))


def require_whole(deltas: Iterable[Delta], storage_options: Mapping[str, str] | None = None) -> None:
    """See that all rows of stored deltas are still there: fewer would be taken for a smaller change."""
    for delta in deltas:
        if delta.rows:
            require_all(delta, count_rows(delta.path, storage_options))


def require_all(delta: Delta, rows: int) -> None:
    """See that so many *rows* are all that were stored of a delta."""
    if rows != delta.rows:
        raise FileNotFoundError(f"of {delta.rows} rows that were stored at {delta.path}, {rows} are there")


def write_delta(engine: Engine, sql: str, columns: Schema, path: str, form: Form = "explicit") -> Delta:
    """Store the unit rows of *sql* at *path* and count them."""
    if not engine.write_parquet(f"SELECT {quoted_list((*names(columns), SIGN))} FROM ({sql})", path):
        return Delta(path, 0, 0, form)
    with spending("files"):
        return Delta(path, *count_signs(path, SIGN, engine.storage_options), form)


def store_rows(engine: Engine, rows: pa.Table, columns: Schema, path: str, form: Form = "explicit") -> Delta:
    """Store rows that were computed here: unit rows, or the groups of a summary delta."""
    shown = names(columns) if form == "summary" else (*names(columns), SIGN)
    with spending("files"):
        write_files(rows.select(list(shown)), path, engine.storage_options)
    inserted = rows.num_rows if form == "summary" else pc.sum(pc.greater(rows.column(SIGN), 0)).as_py() or 0
    return Delta(path, inserted, rows.num_rows - inserted, form)


def write_summary(engine: Engine, sql: str, columns: Schema, path: str) -> Delta:
    """Store the groups of the summary delta *sql* at *path* and count them."""
    if not engine.write_parquet(f"SELECT {quoted_list(names(columns))} FROM ({sql})", path):
        return Delta(path, 0, 0, "summary")
    with spending("files"):
        return Delta(path, count_rows(path, engine.storage_options), 0, "summary")
