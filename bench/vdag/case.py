"""A case: views over Delta tables before a refresh, deltas of the base tables, and what is right afterwards.

Views are compiled from their SQL as any view is. What is right afterwards comes from the SQL as written, over base
tables with their deltas put in by a query; no strategy and no install has a part in it.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from strandline.algebra.block import Block
from strandline.algebra.plan import At
from strandline.algebra.schema import Schema, names
from strandline.catalog import ViewRecord
from strandline.engine import tables
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.propagate.strategies.graph import ViewGraph
from strandline.propagate.strategies.sizes import Size, Sizes
from strandline.sql.compile import compile_view
from strandline.sql.ddl import parse_select
from strandline.sql.names import quoted, quoted_list
from strandline.sql.references import replaced
from strandline.sql.relations import Relation
from strandline.sql.render import SIGN, render
from strandline.store.deltas import Delta
from strandline.store.install import is_tiny
from strandline.store.matching import same
from strandline.store.node import Node
from strandline.store.tables import fill

KEPT = "7 days"


class _Named(dict[str, Relation]):
    """Relations by name, as queries find them."""

    def find(self, name: str) -> Relation | None:
        return next((relation for own, relation in self.items() if own.lower() == name.lower()), None)

    def names(self) -> list[str]:
        return list(self)


@dataclass(frozen=True)
class Case:
    """Nodes by name, base tables first, each with its table at a version, and the deltas of base tables.

    *right* has, for a view, the path of its rows after the refresh; for a base table, the fingerprint of them.
    """

    nodes: Mapping[str, Node]
    versions: Mapping[str, int]
    deltas: Mapping[str, Delta]
    right: Mapping[str, str]

    @cached_property
    def graph(self) -> ViewGraph:
        return ViewGraph({name: node.inputs for name, node in self.nodes.items()})

    @cached_property
    def sizes(self) -> Sizes:
        """Of base tables; the sizes of views are left out, and no view reads them in the graphs that are measured."""
        found = dict.fromkeys(self.nodes, Size(0, 0, 0))
        for name, delta in self.deltas.items():
            rows = DeltaLog(self.nodes[name].path).size(self.versions[name]).rows
            assert rows is not None
            found[name] = Size(rows, rows + delta.inserted - delta.deleted, delta.rows)
        return found

    def alone(self, view: str) -> Case:
        """*view* over what it is defined on."""
        held = (*self.nodes[view].inputs, view)
        return Case(
            {name: self.nodes[name] for name in held},
            {name: self.versions[name] for name in held},
            {name: delta for name, delta in self.deltas.items() if name in held},
            {name: self.right[name] for name in held},
        )

    def copied_to(self, folder: Path) -> dict[str, Node]:
        """Tables of their own for one run: the log is copied, the files, which nobody changes, are linked."""
        nodes = {}
        for name, node in self.nodes.items():
            own = folder / name
            shutil.copytree(node.path, own, copy_function=_link, ignore=shutil.ignore_patterns("_delta_log"))
            shutil.copytree(Path(node.path) / "_delta_log", own / "_delta_log")
            nodes[name] = replace(node, path=str(own))
        return nodes


def _link(source: str, target: str) -> None:
    Path(target).hardlink_to(source)


def views_over(
    engine: Engine, folder: Path, keys: Mapping[str, tuple[str, ...]], queries: Mapping[str, str], *, small: bool
) -> dict[str, Node]:
    """Nodes of the base tables below *folder*, which *keys* names, and of views over them, filled beside them."""
    known = _Named()
    nodes = {}
    for name, key in keys.items():
        log = DeltaLog(str(folder / name))
        known[name] = Relation(name, log.schema(), key)
        nodes[name] = _node(folder, known[name], None, "")
        size = log.size()
        if not is_tiny(size.rows, size.bytes):
            _mark_deleted_rows(engine, nodes[name])
    for name, text in queries.items():
        block = _compiled(engine, name, text, known)
        known[name] = Relation(name, block.visible, block.visible_key)
        nodes[name] = _node(folder, known[name], block, text)
        with engine.step(name, "fill", small=small):
            fill(engine, nodes[name], render(block.contents, lambda scan: _now(nodes, scan.operand)), KEPT, "fill")
        if block.grouped:
            _mark_deleted_rows(engine, nodes[name])
    return nodes


def _mark_deleted_rows(engine: Engine, node: Node) -> None:
    """The first install by MERGE would do that, once in the table's life."""
    engine.run(f"ALTER TABLE delta.{quoted(node.path)} SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")


def _compiled(engine: Engine, name: str, text: str, known: _Named) -> Block:
    found = compile_view(name, parse_select(text), known, engine.analyse)
    if len(found.blocks) != 1:
        raise ValueError(f"{name} is not one block of the algebra: {found.reason or found.blocks}")
    return found.blocks[0]


def _node(folder: Path, relation: Relation, block: Block | None, text: str) -> Node:
    record = ViewRecord(
        id=0,
        name=relation.name,
        kind="copy" if block is None else "view",
        sql=text,
        options={"key": list(relation.key)},
        definition={},
        fingerprint="",
        columns=relation.columns,
        inputs=() if block is None else block.inputs,
        location=relation.name,
        origin=None,
        created_at=datetime.now(UTC),
    )
    return Node(record, block, None, str(folder / relation.name))


def _now(nodes: Mapping[str, Node], operand: object) -> str:
    assert isinstance(operand, At)
    node = nodes[operand.relation]
    return node.select(DeltaLog(node.path).version())


def prepared(
    engine: Engine, folder: Path, nodes: Mapping[str, Node], deltas: Mapping[str, Delta], *, small: bool
) -> Case:
    """The case of *deltas*; what is right after them is stored below *folder*."""
    versions = {name: DeltaLog(node.path).version() for name, node in nodes.items()}
    with engine.step("all", "prepare", small=small):
        return Case(nodes, versions, deltas, _right(engine, folder, nodes, versions, deltas))


def _right(
    engine: Engine,
    folder: Path,
    nodes: Mapping[str, Node],
    versions: Mapping[str, int],
    deltas: Mapping[str, Delta],
) -> dict[str, str]:
    known = _Named({name: Relation(name, node.visible, node.key) for name, node in nodes.items()})
    after: dict[str, str] = {}
    right: dict[str, str] = {}
    for name, node in nodes.items():
        if node.block is None:
            after[name] = _with_delta(node, versions[name], deltas[name])
            right[name] = fingerprint(engine, node, after[name])
        else:
            written = replaced(parse_select(node.record.sql), known, lambda relation: f"({after[relation.name]})")
            right[name] = str(folder / name)
            engine.write_parquet(written, right[name])
            after[name] = f"SELECT {quoted_list(names(node.visible))} FROM parquet.{quoted(right[name])}"
    return right


def _with_delta(node: Node, version: int, delta: Delta) -> str:
    """The rows of a base table with its delta put in."""
    columns = node.stored
    rows, changed = tables.select(node.path, version, columns), tables.stored_delta(delta.path, columns)
    gone, came = (f"SELECT {quoted_list(names(columns))} FROM ({changed}) WHERE {SIGN} {side} 0" for side in "<>")
    if node.key:
        by = tuple(column for column in columns if column.name in node.key)
        kept = f"SELECT r.* FROM ({rows}) AS r LEFT ANTI JOIN ({gone}) AS g ON {same('r', 'g', by)}"
    else:
        kept = f"({rows}) EXCEPT ALL ({gone})"
    return f"SELECT * FROM ({kept}) UNION ALL {came}"


def fingerprint(engine: Engine, node: Node, rows: str) -> str:
    """The number of *rows* of a base table, and the sum of their hashes: of their keys, where they have one."""
    told_apart: Schema = tuple(column for column in node.stored if column.name in node.key) or node.stored
    hashes = f"sum(CAST(xxhash64({quoted_list(names(told_apart))}) AS DECIMAL(38, 0)))"
    return str(engine.rows(f"SELECT count(*), {hashes} FROM ({rows})")[0])
