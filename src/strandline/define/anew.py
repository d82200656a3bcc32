"""Tables that are to be made anew.

A view is refreshed in full with the hidden blocks that it is made of. If the table of one is gone, or its log cannot be
read, a new table takes its place elsewhere: versions of the old one are named by published states, and would be given
out once more.
"""

from __future__ import annotations

from collections.abc import Sequence

from strandline.catalog import Catalog
from strandline.engine.delta_log import DeltaLog, NoSuchTable
from strandline.engine.session import Engine
from strandline.propagate.vdag import Vdag
from strandline.store.layout import new_location
from strandline.store.node import Node


def with_blocks(vdag: Vdag, names: Sequence[str]) -> list[str]:
    """*names* and the hidden blocks below them that are parts of theirs."""
    found = set(names)
    for name in reversed(vdag.order):
        if name in found:
            found.update(i for i in vdag.nodes[name].inputs if i in vdag.nodes and vdag.nodes[i].record.kind == "block")
    return [name for name in vdag.order if name in found]


def replace_lost_tables(catalog: Catalog, engine: Engine, vdag: Vdag, names: Sequence[str]) -> None:
    """Give those of *names* whose tables cannot be read any more a place for new ones; states keep the old."""
    for name in names:
        node = vdag.nodes[name]
        base = catalog.versions.baseline(node.record.id)
        if base is not None and not _readable(node, base.version, engine):
            record = node.record
            catalog.views.redefine(
                name,
                kind=record.kind,
                sql=record.sql,
                options=record.options,
                definition=record.definition,
                fingerprint=record.fingerprint,
                columns=record.columns,
                inputs=record.inputs,
                location=new_location(name, record.kind),
                origin=record.origin,
            )


def _readable(node: Node, version: int, engine: Engine) -> bool:
    """Whether the table is there; one that is filled from its source must be whole, to be put back if that fails."""
    log = DeltaLog(node.path, engine.storage_options)
    if node.copied or node.base:
        return log.holds_version(version)
    try:
        log.size(version)
    except NoSuchTable:
        return False
    return True
