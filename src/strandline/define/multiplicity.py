"""How many duplicates a new view would have, counted once at CREATE."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.algebra.block import Block
from strandline.algebra.plan import At, Scan
from strandline.algebra.schema import names
from strandline.catalog import Catalog, Json
from strandline.define.storing import Multiplicity
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.propagate.binding import Binding
from strandline.propagate.vdag import Vdag
from strandline.sources.protocol import Source
from strandline.sql.names import quoted_list
from strandline.sql.render import render
from strandline.store.install import TINY_ROWS


def multiplicity(
    engine: Engine, catalog: Catalog, vdag: Vdag, sources: Mapping[str, Source], block: Block
) -> Multiplicity | None:
    """Rows and different rows of *block* over its inputs as they are now.

    None if an input cannot be read yet, or if they are so small that the view's table is overwritten in any case.
    """
    pins: dict[str, Json] = {}
    rows: list[int | None] = []
    for name in block.inputs:
        found = _node_now(engine, catalog, vdag, name) if name in vdag.nodes else _leaf_now(sources, name)
        if found is None:
            return None
        pins[name], size = found
        rows.append(size)
    if all(size is not None and size <= TINY_ROWS for size in rows):
        return None
    binding = Binding(vdag, sources, engine.storage_options)

    def now(scan: Scan) -> str:
        assert isinstance(scan.operand, At)
        return binding.at(scan.operand.relation, pins[scan.operand.relation], scan.fields)

    hashed = f"xxhash64({quoted_list(names(block.stored))})"
    with engine.step(block.node, "count duplicates", small=False):
        counted = engine.rows(f"SELECT count(*), approx_count_distinct({hashed}) FROM ({render(block.contents, now)})")
    return Multiplicity(int(counted[0][0]), int(counted[0][1]))


def _node_now(engine: Engine, catalog: Catalog, vdag: Vdag, name: str) -> tuple[Json, int | None] | None:
    node = vdag.nodes[name]
    base = catalog.versions.baseline(node.record.id)
    if base is None:
        return None
    return node.pin(base.version), DeltaLog(node.path, engine.storage_options).size(base.version).rows


def _leaf_now(sources: Mapping[str, Source], name: str) -> tuple[Json, int | None] | None:
    source_name, _, table = name.partition(".")
    source = sources.get(source_name)
    if source is None or source.copied or not table:
        return None
    try:
        position = source.position(table)
        return position, source.size(table, position).rows
    except SourceError:
        return None
