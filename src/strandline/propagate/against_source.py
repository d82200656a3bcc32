"""Whether a copy is what its source has."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.algebra.schema import names
from strandline.catalog import Lease
from strandline.errors import SourceError
from strandline.ingest.advance import take_in_copies
from strandline.ingest.audit import source_and_copy
from strandline.ingest.baselines import jdbc_rows
from strandline.ingest.copied import CopiedSource
from strandline.ingest.dumped import DumpedSource
from strandline.ingest.dumps import dump_rows
from strandline.ingest.uncopied import UncopiedSource
from strandline.propagate.context import Context
from strandline.propagate.verify import Verification, verify
from strandline.sources.questions import HeldSnapshot
from strandline.sql.names import quoted
from strandline.sql.relations import empty_select
from strandline.store.node import Node


def verify_against_source(context: Context, node: Node, folder: str, lease: Lease) -> Verification:
    """Compare a copy with its table, as the two are in one snapshot of the source; rows are kept below *folder*.

    The copy of a table that arrives in dumps is compared with the dump that it shows, as long as that is there.
    """
    name = node.name.split(".", 1)[0]
    source = context.sources.get(name)
    newest = context.catalog.states.newest()
    number = newest.number if newest else None
    if node.copied and isinstance(source, DumpedSource):
        base = context.catalog.versions.baseline(node.record.id)
        if base is None:
            raise SourceError("NOT_COPIED", f"{node.name} is not copied yet; refresh a view over it first.")
        there = dump_rows(context.engine, source, node, base.positions[node.name], f"{folder}/dump")
        return verify(context.engine, node.name, number, node.visible, node.select(base.version), there)
    if not node.copied or not isinstance(source, CopiedSource):
        raise SourceError("NOT_COPIED", f"{node.name} is not the copy of a source table; those are compared by verify.")
    copies = [n for n in context.vdag.nodes.values() if n.copied and n.name.split(".", 1)[0] == name]

    def capture() -> None:
        take_in_copies(context.catalog, source, copies, (), context.engine.storage_options, lease)

    there, here = source_and_copy(context.catalog, context.engine, source, node, folder, capture)
    return verify(context.engine, node.name, number, node.visible, here, there)


def rows_at_sources(context: Context, node: Node, snapshots: Mapping[str, HeldSnapshot], folder: str) -> dict[str, str]:
    """The tables without copies that a view's query names, each as a SELECT of its rows in a snapshot of its source.

    They are written below *folder* first, because the snapshots end.
    """
    found = {}
    for leaf in context.asked_by(node):
        name, table = leaf.split(".", 1)
        source = context.sources[name]
        assert isinstance(source, UncopiedSource)
        columns = names(source.tables()[table].columns)
        copy, path = snapshots[name].copy(table, columns), f"{folder}/{leaf}"
        with jdbc_rows(context.engine, copy, source.inner.parsers(table), columns, "verify") as rows:
            wrote = context.engine.write_parquet(rows, path)
        found[leaf] = f"SELECT * FROM parquet.{quoted(path)}" if wrote else empty_select(source.tables()[table].columns)
    return found
