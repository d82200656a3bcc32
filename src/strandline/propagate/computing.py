"""Rows of plans computed and stored: here, where they are few and that is possible, else by Spark."""

from __future__ import annotations

from typing import Any

from strandline.algebra.block import Form
from strandline.algebra.plan import Output, Plan, Project
from strandline.algebra.scalar import Col
from strandline.algebra.schema import Schema
from strandline.columnar.grouping import distinct
from strandline.engine import tables
from strandline.engine.little import write_files
from strandline.engine.session import Engine
from strandline.propagate.binding import Binding, Pins
from strandline.propagate.here import Here
from strandline.store.deltas import Delta, store_rows, write_delta, write_summary


class Computing:
    """Computes for one step, and tells who did what."""

    def __init__(self, engine: Engine, binding: Binding) -> None:
        self.here = Here(engine, binding)
        self._engine = engine
        self._binding = binding

    @property
    def noted(self) -> dict[str, Any]:
        """As the result of a step has it: why something was left to Spark, or that nothing was."""
        return {"left_to_spark": list(dict.fromkeys(self.here.left))}

    def delta(self, plan: Plan, pins: Pins, columns: Schema, path: str, form: Form = "explicit") -> Delta:
        """Store the *columns* of a delta at *path*."""
        summed = form == "summary"
        rows = self.here.rows(plan, pins, signed=not summed)
        if rows is not None:
            return store_rows(self._engine, rows, columns, path, form)
        sql = self._binding.sql(plan, pins, signed=not summed)
        if summed:
            return write_summary(self._engine, sql, columns, path)
        return write_delta(self._engine, sql, columns, path, form)

    def keys(self, plan: Plan, pins: Pins, columns: Schema, path: str) -> bool:
        """Store each row of *plan*, which has *columns*, once; False if there is none."""
        rows = self.here.rows(Project(plan, tuple(Output(c, Col(c.name)) for c in columns)), pins)
        if rows is not None:
            return write_files(distinct(rows), path, self._engine.storage_options)
        return self._engine.write_parquet(tables.distinct(self._binding.sql(plan, pins), columns), path)
