"""Rows of a plan that are computed here, over Arrow's columns: where they are few, Spark would take longer to begin.

What the operands stand for is read as pinned, like Spark reads it (:mod:`strandline.propagate.binding`). Whatever is
not certain to come out as in Spark, or reads many rows, is left to Spark.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from deltalake.exceptions import DeltaError

from strandline.algebra.early import early
from strandline.algebra.plan import At, Backing, Bag, Change, Filter, Plan, Project, Repeat, Scan, map_scans, scans
from strandline.algebra.scalar import columns as columns_of
from strandline.algebra.schema import Schema, names
from strandline.columnar.evaluate import evaluate
from strandline.columnar.joining import Met
from strandline.columnar.types import NotHere, arrow_type
from strandline.engine import tables
from strandline.engine.little import MOST_ROWS
from strandline.engine.session import Engine
from strandline.propagate.binding import Binding, Pins
from strandline.sql.render import SIGN
from strandline.stopwatch import spending
from strandline.store.deltas import Delta, require_all


class Here:
    """Computes rows of plans within a step."""

    def __init__(self, engine: Engine, binding: Binding) -> None:
        self._engine = engine
        self._binding = binding
        self.left: list[str] = []
        """Why something was left to Spark."""

    def rows(self, plan: Plan, pins: Pins, *, signed: bool = False) -> pa.Table | None:
        """The rows of *plan*, in the types of its columns; None if they are left to Spark."""
        if not self._engine.usual_arithmetic:
            return None
        try:
            with spending("columns"):
                reading = _Pinned(self._engine, self._binding, pins)
                return evaluate(self._binding.near(early(plan), pins), reading, sign=signed)
        except (NotHere, pa.ArrowException, DeltaError, OSError, ArithmeticError, ValueError, RecursionError) as error:
            self.left.append(str(error).partition("\n")[0])
            return None


class _Pinned:
    """What the scans of a plan stand for, by what is pinned."""

    def __init__(self, engine: Engine, binding: Binding, pins: Pins) -> None:
        self._engine = engine
        self._binding = binding
        self._pins = pins

    def size(self, scan: Scan) -> int:
        """About how many rows a scan has."""
        match scan.operand:
            case At() | Backing():
                return self._binding.rows_near(scan, self._pins)
            case Change(relation):
                return self._pins.deltas[relation].rows
            case Bag():
                return 0

    def rows(self, scan: Scan, met: Met) -> pa.Table:
        """The rows of a scan."""
        match scan.operand:
            case At():
                return self._table(scan, scan.operand, met)
            case Backing():
                assert self._pins.baseline is not None
                return self._read(scan, self._pins.node.path, self._pins.baseline, names(scan.fields), met)
            case Change(relation):
                return self._change(scan, relation)
            case Bag(name):
                return self._engine.stored_rows(self._pins.bags[name], names(scan.fields))

    def _table(self, scan: Scan, operand: At, met: Met) -> pa.Table:
        """The rows of a table as others see them."""
        node = self._binding.node(operand.relation)
        if node is None:
            sql = self._binding.selected(scan, self._pins)
            found = tables.pinned(sql)
            if found is None or sql != tables.select(*found, scan.fields):
                raise NotHere(f"a source that reads {operand.relation} in a way of its own")
            return self._read(scan, *found, names(scan.fields), met)
        version = node.pinned_version((self._pins.pre if operand.state == "pre" else self._pins.post)[operand.relation])
        assert version is not None
        whole = node.backing(version)
        reading = _shown(node.reading(whole), names(scan.fields))
        stored = tuple(column for column in node.stored if column.name in _needed(reading))
        known = {node.stored_column(name): values for name, values in met.items()}
        asked = {name: values for name, values in known.items() if name is not None}
        rows = self._read(scan, node.path, version, names(stored), asked)
        return evaluate(map_scans(reading, lambda _: replace(whole, fields=stored)), _Known(rows))

    def _read(self, scan: Scan, path: str, version: int, columns: Sequence[str], met: Met) -> pa.Table:
        told = {**self._binding.told(scan, self._pins), "other": self._binding.other_version(scan, self._pins)}
        found = self._engine.table_rows(path, version, columns, told, met)
        if found is None:
            raise NotHere(f"many rows of {scan.operand}")
        return found

    def _change(self, scan: Scan, relation: str) -> pa.Table:
        delta = self._pins.deltas[relation]
        if delta.rows > MOST_ROWS:
            raise NotHere(f"many changes of {relation}")
        reading = self._binding.reading_change(relation, delta)
        if reading is not None:
            return evaluate(reading, _Known(self._stored(delta, next(scans(reading)).fields)), sign=True)
        stored = self._binding.stored_names(relation, scan.fields)
        named = tuple(replace(field, name=name) for field, name in zip(scan.fields, stored, strict=True))
        return self._stored(delta, named).rename_columns([*names(scan.fields), SIGN])

    def _stored(self, delta: Delta, fields: Schema) -> pa.Table:
        """Columns of a stored delta, and the sign; of one without rows there may be no file."""
        if not delta.rows:
            kinds = [(field.name, arrow_type(field.type)) for field in fields]
            return pa.schema([*kinds, (SIGN, pa.int32())]).empty_table()
        found = self._engine.stored_rows(delta.path, [*names(fields), SIGN])
        require_all(delta, found.num_rows)
        return found


@dataclass(frozen=True)
class _Known:
    """Rows that a plan with one scan is read from."""

    table: pa.Table

    def rows(self, scan: Scan, met: Met) -> pa.Table:
        """All of them."""
        return self.table

    def size(self, scan: Scan) -> int:
        """Their number."""
        return int(self.table.num_rows)


def _shown(plan: Plan, fields: Collection[str]) -> Plan:
    """A plan that reads stored rows, with no more outputs than are asked for."""
    if not isinstance(plan, Project):
        return plan
    return replace(plan, outputs=tuple(output for output in plan.outputs if output.name in fields))


def _needed(plan: Plan) -> frozenset[str]:
    """The columns of the scan that a plan which reads stored rows needs."""
    match plan:
        case Project(child, outputs):
            return frozenset(name for output in outputs for name in columns_of(output.value)) | _asked(child)
        case _:
            return frozenset(names(plan.columns)) | _asked(plan)


def _asked(plan: Plan) -> frozenset[str]:
    match plan:
        case Filter(child, condition):
            return columns_of(condition) | _asked(child)
        case Repeat(child, times):
            return columns_of(times) | _asked(child)
        case _:
            return frozenset()
