"""Delta tables put in order: small files made into large ones, and files removed that no version needs which counts.

Both change no rows. Little tables are handled without Spark; those that are large, or have features that delta-rs does
not write, by Spark.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from deltalake import CommitProperties, DeltaTable

from strandline.engine.delta_log import DeltaLog
from strandline.engine.little import writable
from strandline.engine.session import Engine
from strandline.sql.names import literal, quoted

SMALL_BYTES = 32 * 1024 * 1024
"""A file below this is worth being joined with others."""

FEW_FILES = 4
"""So many small files are no hindrance to readers."""

LARGE_BYTES = 512 * 1024 * 1024
"""A table whose small files hold more than this is compacted by Spark."""

MARGIN = timedelta(hours=12)
"""Clocks of those who write, and of those who remove, may differ by this much."""

_MIN_FILE = "spark.databricks.delta.optimize.minFileSize"

# VACUUM lists files in as many tasks as this; the default is 10,000.
_LISTING, _LISTING_TASKS = "spark.sql.sources.parallelPartitionDiscovery.parallelism", "64"


@dataclass(frozen=True)
class SmallFiles:
    """The small files of a table's newest version."""

    count: int
    bytes: int

    @property
    def many(self) -> bool:
        """Whether there are more than a reader should have to open."""
        return self.count > FEW_FILES


def small_files(path: str, options: Mapping[str, str]) -> SmallFiles:
    """The small files of the table at *path*."""
    adds = DeltaTable(path, storage_options=dict(options) or None).get_add_actions(flatten=True)
    sizes = [size for size in adds.column("size_bytes").to_pylist() if size < SMALL_BYTES]
    return SmallFiles(len(sizes), sum(sizes))


def needs_spark(path: str, options: Mapping[str, str]) -> bool:
    """Whether a table can be put in order only by Spark, or had better be."""
    return not writable(path, options) or small_files(path, options).bytes > LARGE_BYTES


def compact(engine: Engine, path: str, step_id: str) -> None:
    """Make few files of the many small ones of a table, as one commit of a step."""
    options = engine.storage_options
    if needs_spark(path, options) and engine.capabilities.engine == "spark":
        with (
            engine.step(path.rpartition("/")[2], "compact", small=False),
            engine.committing(step_id),
            engine.setting(_MIN_FILE, str(SMALL_BYTES)),
        ):
            engine.run(f"OPTIMIZE delta.{quoted(path)}")
    elif writable(path, options):
        table = DeltaTable(path, storage_options=dict(options) or None)
        table.optimize.compact(commit_properties=CommitProperties(custom_metadata={"userMetadata": step_id}))


def lay_out(path: str, column: str, file_bytes: int, options: Mapping[str, str]) -> None:
    """Put the rows of a table into files by ranges of a column, without Spark."""
    table = DeltaTable(path, storage_options=dict(options) or None)
    said = CommitProperties(custom_metadata={"userMetadata": f"strandline: in ranges of {column}"})
    table.optimize.z_order([column], target_size=file_bytes, commit_properties=said)


def set_properties(engine: Engine, path: str, properties: Mapping[str, str]) -> None:
    """Give a table other properties."""
    if writable(path, engine.storage_options):
        table = DeltaTable(path, storage_options=engine.storage_options or None)
        table.alter.set_table_properties(dict(properties), raise_if_not_exists=False)
    else:
        listed = ", ".join(f"{literal(name)} = {literal(value)}" for name, value in properties.items())
        engine.run(f"ALTER TABLE delta.{quoted(path)} SET TBLPROPERTIES ({listed})")


def removable(path: str, keep: timedelta, needed: Collection[int], options: Mapping[str, str]) -> list[str] | None:
    """The files that :func:`vacuum` would remove now; None where only Spark can tell."""
    return _vacuum(path, keep, needed, options, dry_run=True) if writable(path, options) else None


def vacuum(engine: Engine, path: str, keep: timedelta, needed: Collection[int]) -> None:
    """Remove files that were replaced before *keep*, or belong to nothing, unless a *needed* version has them."""
    options = engine.storage_options
    if writable(path, options):
        if _vacuum(path, keep, needed, options, dry_run=True):
            _vacuum(path, keep, needed, options, dry_run=False)
        return
    log, retained = DeltaLog(path, options), keep
    threatened = _threatened(log, needed, keep)
    if threatened:
        after = log.commits(threatened[0], log.version())
        replaced = next((commit.committed_at for commit in after or () if commit.old_files), None)
        if replaced is None:
            return
        retained = max(keep, datetime.now(UTC) - replaced + MARGIN)
    with engine.step(path.rpartition("/")[2], "vacuum", small=False), engine.setting(_LISTING, _LISTING_TASKS):
        engine.run(f"VACUUM delta.{quoted(path)} RETAIN {_hours(retained)} HOURS")


def _vacuum(
    path: str, keep: timedelta, needed: Collection[int], options: Mapping[str, str], *, dry_run: bool
) -> list[str]:
    table = DeltaTable(path, storage_options=dict(options) or None)
    threatened = _threatened(DeltaLog(path, options), needed, keep)
    return table.vacuum(
        _hours(keep), dry_run=dry_run, enforce_retention_duration=False, full=True, keep_versions=threatened or None
    )


def _threatened(log: DeltaLog, needed: Collection[int], keep: timedelta) -> list[int]:
    """The needed versions of which files may have been replaced so long ago that their age would let them go."""
    now = datetime.now(UTC)
    before = now - keep + MARGIN
    head = log.version()
    older = sorted(version for version in needed if version < head)
    last = -1
    for version in range(older[0] if older else head, head):
        commits = log.commits(version, version + 1)
        if commits is None:
            return older
        committed = commits[0].committed_at
        if committed is not None and committed > now:
            continue  # a clock was ahead: it says nothing of the commits that follow
        if committed is not None and committed >= before:
            break
        last = version + 1 if commits[0].old_files else last
    return [version for version in older if version < last]


def _hours(keep: timedelta) -> int:
    return math.ceil(keep / timedelta(hours=1))
