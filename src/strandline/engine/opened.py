"""Delta tables that are opened to be read: one that was opened before, and did not change since, is not read again.

A version never changes, but a table may be replaced by another one, lose its log, or be put back. So what was opened
counts only as long as its log lies there as it was: the same files, and the same last commit. On a disk looking takes
microseconds; in an object store it would take as long as opening, so there nothing is kept.
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from threading import Lock

from deltalake import DeltaTable

from strandline.engine import vectors
from strandline.engine.places import on_disk
from strandline.engine.statistics import Files

_DECLARED = re.compile(r'"__CHAR_VARCHAR_TYPE_STRING": ?"([^"]*)"')
"""Where Spark notes the declared type of a text, which may be inside another type."""

_PLAIN_FEATURES = frozenset({"timestampNtz", "vacuumProtocolCheck", "v2Checkpoint", "checkpointProtection"})

KEPT = 256
"""So many tables are kept, those that were asked for last."""

MOST_DELETED = 4_000_000
"""Of a table with more deleted rows than these it is not kept where they are."""

_Log = tuple[frozenset[str], int, int, int]
"""The names of the files of a log, and of the last commit its identity, size and time."""


class Opened:
    """A version of a table, to be read; whoever changes a table opens it himself."""

    def __init__(self, table: DeltaTable) -> None:
        self.table = table
        self._files: Files | None = None

    @cached_property
    def plain(self) -> bool:
        """Whether the files of the table, read as Parquet, are its rows."""
        return self._read_with(_PLAIN_FEATURES)

    @cached_property
    def readable(self) -> bool:
        """Whether the rows of these files, but for those that are :attr:`deleted`, are its rows."""
        if self.plain:
            return True
        here = on_disk(self.table.table_uri) is not None
        return here and self._read_with(_PLAIN_FEATURES | {vectors.FEATURE}) and self.marked is not None

    @property
    def deleted(self) -> vectors.Places:
        """Of files of a readable table some of whose rows are deleted, by their paths: where in them these are."""
        assert self.marked is not None
        return self.marked

    @cached_property
    def marked(self) -> vectors.Places | None:
        """The same of any table; None if they are too many to be kept."""
        found = {} if self.plain else vectors.deleted_rows(self.table)
        return found if sum(map(len, found.values())) <= MOST_DELETED else None

    def _read_with(self, features: frozenset[str]) -> bool:
        metadata, protocol = self.table.metadata(), self.table.protocol()
        mapped = metadata.configuration.get("delta.columnMapping.mode", "none") != "none"
        known = features.issuperset(protocol.reader_features or ())
        return not metadata.partition_columns and not mapped and known and not self._pads

    @property
    def _pads(self) -> bool:
        """Whether a text of the table is shown longer than it is stored: one of type CHAR(n)."""
        return any(str(kind).startswith("char") for kind in re.findall(_DECLARED, self.table.schema().to_json()))

    @property
    def files(self) -> Files:
        """Its files, with the ranges of values in them."""
        if self._files is None:
            self._files = Files(self.table.get_add_actions(flatten=True))
        return self._files


_kept: OrderedDict[tuple[str, int | None], tuple[_Log, Opened]] = OrderedDict()
_lock = Lock()


def opened(path: str, version: int | None = None, storage_options: Mapping[str, str] | None = None) -> Opened:
    """The table at *path* at a version, or as it is now."""
    log = _log(path)
    if log is None:
        return Opened(DeltaTable(path, version=version, storage_options=dict(storage_options or {}) or None))
    key = (path, version)
    with _lock:
        found = _kept.get(key)
        if found is not None and found[0] == log:
            _kept.move_to_end(key)
            return found[1]
    fresh = Opened(DeltaTable(path, version=version, storage_options=dict(storage_options or {}) or None))
    # Somebody may have committed while it was opened.
    if _log(path) == log:
        with _lock:
            # Whatever was opened while the log lay otherwise will not be found again.
            for other in [key for key, (seen, _) in _kept.items() if key[0] == path and seen != log]:
                del _kept[other]
            _kept[key] = (log, fresh)
            _kept.move_to_end(key)
            while len(_kept) > KEPT:
                _kept.popitem(last=False)
    return fresh


def _log(path: str) -> _Log | None:
    """How the log of a table lies on this machine's disk; None if it is elsewhere, or nothing can be told of it."""
    here = on_disk(path)
    if here is None:
        return None
    folder = Path(here, "_delta_log")
    try:
        names = frozenset(os.listdir(folder))
        last = max((name for name in names if name.endswith(".json")), default=None)
        if last is None:
            return None
        seen = (folder / last).stat()
    except OSError:
        return None
    return names, seen.st_ino, seen.st_size, seen.st_mtime_ns
