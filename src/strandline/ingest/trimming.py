"""Trimming change logs: entries that every copy and base view has taken in are removed.

The entries that stay are a new version of the log; it counts when the catalog names it, and the files of the one before
go only then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow.compute as pc
from deltalake import DeltaTable

from strandline.catalog import CaptureRecord, Catalog, Lease
from strandline.engine.compaction import FEW_FILES, small_files
from strandline.engine.delta_log import DeltaLog
from strandline.ingest.copies import place_of
from strandline.ingest.logged import log_of
from strandline.sql.names import literal


@dataclass(frozen=True)
class TableLog:
    """The log of one table: the version that counts, and the place from which on its entries are needed."""

    source: str
    table: str
    path: str
    version: int
    log: str
    needed_from: int

    @property
    def name(self) -> str:
        return f"{self.source}.{self.table}"


def table_logs(catalog: Catalog) -> Iterator[TableLog]:
    """All change logs that count."""
    for source in catalog.sources.all():
        record = catalog.captures.get(source.name)
        for table, logged in record.tables.items() if record is not None else ():
            if record is not None and logged.version is not None:
                place = _needed_from(catalog, record, table)
                yield TableLog(source.name, table, logged.path, logged.version, record.log, place)


def outlived_entries(log: TableLog, storage_options: Mapping[str, str]) -> int:
    """How many entries of a log nobody needs any more."""
    table = DeltaTable(log.path, version=log.version, storage_options=dict(storage_options) or None)
    old = (pc.field("_place") < log.needed_from) | (pc.field("_log") != log.log)
    return int(table.to_pyarrow_dataset().count_rows(filter=old))


def many_files(log: TableLog, storage_options: Mapping[str, str]) -> bool:
    """Whether a log consists of many small files."""
    return small_files(log.path, storage_options).count > FEW_FILES


def trim(catalog: Catalog, log: TableLog, storage_options: Mapping[str, str], lease: Lease) -> int:
    """Remove the entries of a log that nobody needs any more, and join its files; how many entries went."""
    options = dict(storage_options) or None
    known = DeltaLog(log.path, options)
    if known.version() != log.version:
        known.restore(log.version, "strandline: what was not recorded is undone")
    entries = outlived_entries(log, storage_options)
    if entries:
        DeltaTable(log.path, storage_options=options).delete(
            f"_place < {log.needed_from} OR _log <> {literal(log.log)}"
        )
    DeltaTable(log.path, storage_options=options).optimize.compact()
    catalog.captures.trimmed(log.source, log.table, known.version(), lease)
    DeltaTable(log.path, storage_options=options).vacuum(0, dry_run=False, enforce_retention_duration=False, full=True)
    catalog.captures.trimmed(log.source, log.table, known.version(), lease)
    return entries


def _needed_from(catalog: Catalog, record: CaptureRecord, table: str) -> int:
    """The first place whose entries some copy or base view has yet to take in."""
    leaf = f"{record.source}.{table}"
    places = [record.place]
    for view in catalog.views.all():
        if view.name == leaf or (view.kind == "base" and leaf in view.inputs):
            base = catalog.versions.baseline(view.id)
            position = base.positions.get(leaf) if base is not None else None
            if position is not None and log_of(position) == record.log:
                places.append(place_of(position))
    return min(places)
