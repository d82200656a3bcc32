"""Delta tables in a folder and views over them, which are planned for and never computed: no session is started."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline.algebra.block import Block
from strandline.algebra.plan import At, Join, Plan, Scan
from strandline.algebra.scalar import Call, Col, Scalar
from strandline.algebra.schema import Column, Schema, names
from strandline.engine.session import Engine
from strandline.propagate.inputs import Inputs
from strandline.propagate.reach import Reach
from strandline.propagate.vdag import Vdag
from strandline.sources.delta import DeltaSource
from strandline.sources.protocol import Position, Source
from strandline.store.node import Node, passing_node

TYPES = {"bigint": pa.int64(), "string": pa.string(), "date": pa.date32()}
COLUMNS: Mapping[str, Schema] = {
    "orders": (Column("o", "bigint"), Column("c", "bigint")),
    "lines": (Column("o", "bigint"), Column("p", "bigint")),
    "returns": (Column("o", "bigint"), Column("day", "bigint")),
}
ROWS = 10
"""Of each file."""


class Lake:
    """Delta tables in a folder, and views over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engine = Engine()
        self.source = DeltaSource("s", self.engine, path=str(folder / "s"))

    def write(self, table: str, *rows: tuple[Any, ...], columns: Schema = (), statistics: bool = True) -> None:
        """One file more."""
        values: Sequence[Sequence[Any]] = list(zip(*rows, strict=True))
        known = columns or COLUMNS[table]
        arrays = [pa.array(each, TYPES[c.type]) for c, each in zip(known, values, strict=True)]
        configuration = None if statistics else {"delta.dataSkippingNumIndexedCols": "0"}
        write_deltalake(
            str(self.folder / "s" / table),
            pa.table(dict(zip(names(known), arrays, strict=True))),
            mode="append",
            configuration=configuration,
        )

    def clustered(self, table: str, files: int = 4, statistics: bool = True) -> None:
        """So many files, each of ten keys that follow on each other."""
        for file in range(files):
            keys = range(ROWS * file, ROWS * (file + 1))
            self.write(table, *((key, key % 3) for key in keys), statistics=statistics)

    def positions(self) -> dict[str, Position]:
        """Where the tables are now."""
        return {f"s.{table}": self.source.position(table) for table in self.source.tables()}

    def delta(self, table: str) -> DeltaTable:
        return DeltaTable(str(self.folder / "s" / table))

    def node(self, name: str, body: Plan | Block, *parts: Sequence[tuple[Any, ...]]) -> Node:
        """A view with its table, which has a file for each of *parts*."""
        block = body if isinstance(body, Block) else Block(name, body)
        found = passing_node(name, block.body)
        node = replace(found, block=block, path=self.place(name), record=replace(found.record, columns=block.visible))
        for rows in parts:
            self.append(name, node, rows)
        return node

    def append(self, name: str, node: Node, rows: Sequence[tuple[Any, ...]]) -> None:
        """A file more for the table of a view."""
        values: Sequence[Sequence[Any]] = list(zip(*rows, strict=True))
        arrays = {c.name: pa.array(each, pa.int64()) for c, each in zip(node.stored, values, strict=True)}
        write_deltalake(self.place(name), pa.table(arrays), mode="append")

    def place(self, name: str) -> str:
        """Where the table of a view is."""
        return str(self.folder / name)

    def table(self, name: str) -> DeltaTable:
        return DeltaTable(self.place(name))

    def inputs(self, *nodes: Node, source: Source | None = None) -> Inputs:
        vdag = Vdag(nodes)
        return Inputs(vdag, {"s": source or self.source}, {}, vdag.order, {})

    def reach(self, seen: Mapping[str, Position], *nodes: Node) -> Reach:
        return Reach(Vdag(nodes), self.inputs(*nodes), seen)


def scan(table: str, alias: str) -> Scan:
    return Scan(At(f"s.{table}"), alias, COLUMNS[table])


def equal(one: str, other: str) -> Scalar:
    return Call("=", (Col(one), Col(other)))


JOINED = Join((scan("lines", "l"), scan("orders", "o")), (equal("l.o", "o.o"),))
