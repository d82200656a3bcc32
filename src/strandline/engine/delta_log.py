"""Delta metadata without Spark: versions, schemas, commits and sizes, in milliseconds (through delta-rs).

The commits are read from the log itself, because only there it says which of them changed data, and which step of a
refresh made them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote

from deltalake import CommitProperties, DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError
from pyarrow import fs

from strandline.algebra.schema import Schema
from strandline.engine.opened import Opened, opened
from strandline.engine.places import filesystem, on_disk
from strandline.engine.statistics import Files, TableSize
from strandline.engine.types import columns_of
from strandline.engine.vectors import vector_file
from strandline.stopwatch import spending


class NoSuchTable(Exception):
    """There is no Delta table at the path, or none whose log can be read."""


@dataclass(frozen=True)
class Commit:
    """One version of a table."""

    version: int
    committed_at: datetime | None
    operation: str
    step_id: str | None
    changes_data: bool
    only_inserts: bool
    new_schema: Schema | None
    change_feed: bool | None
    """Whether the change feed is on from here, where the commit says so."""
    rows_changed: int | None
    """Rows inserted and deleted, an update counting twice, as far as the commit tells."""
    bytes_added: int
    files_added: int
    files_removed: int
    metrics: Mapping[str, int]
    """What the writer counted, as it names it; times are in milliseconds."""
    data_files: frozenset[str]
    """Files that hold what it changed: those that it added, and those that it took out."""
    old_files: tuple[str, ...]
    """Files that only readers of earlier versions and of the change feed still need."""


class DeltaLog:
    """The log of the Delta table at *path*."""

    def __init__(self, path: str, storage_options: Mapping[str, str] | None = None) -> None:
        self.path = path
        self._options = dict(storage_options or {}) or None

    def exists(self) -> bool:
        """Whether a Delta table is there."""
        return DeltaTable.is_deltatable(self.path, self._options)

    def readable(self) -> bool:
        """Whether a Delta table is there, and its log can be read."""
        try:
            self._table()
        except NoSuchTable:
            return False
        return True

    def version(self) -> int:
        """The newest version."""
        return self._table().version()

    def schema(self, version: int | None = None) -> Schema:
        """The columns at *version*, or now."""
        return columns_of(self._table(version).schema().to_json())

    def schema_json(self, version: int | None = None) -> str:
        """The columns at *version*, or now, as Delta and Spark write them as JSON."""
        return str(self._table(version).schema().to_json())

    def head(self) -> tuple[int, str]:
        """The newest version, and the identity of the table: another one after DROP and CREATE."""
        table = self._table()
        return table.version(), str(table.metadata().id)

    def identity(self, version: int) -> str | None:
        """The identity of the table that has *version*, or would come to have it; None if the log no longer tells."""
        try:
            newest, found = self.head()
            return found if newest <= version else str(self._table(version).metadata().id)
        except NoSuchTable:
            return None

    def configuration(self, version: int | None = None) -> dict[str, str]:
        """The table properties."""
        return dict(self._table(version).metadata().configuration)

    def size(self, version: int | None = None) -> TableSize:
        """Rows, bytes and files at *version*, or now, by the statistics in the log; marked rows count too."""
        return self.files(version).size

    def rows(self, version: int | None = None) -> int | None:
        """The rows that are left at *version*, or now; None where the log does not tell, or not all of it is there."""
        there, known = self.size(version).rows, self._opened(version)
        try:
            marked = known.marked
        except (DeltaError, OSError):
            return None
        return None if there is None or marked is None else there - sum(map(len, marked.values()))

    def files(self, version: int | None = None) -> Files:
        """The files at *version*, or now, with the ranges of values in them."""
        found = self._opened(version)
        with spending("log"):
            return found.files

    def restore(self, version: int, step_id: str) -> int:
        """Make a new version that equals *version*; its number is returned."""
        with self._told():
            table = DeltaTable(self.path, storage_options=self._options)
        table.restore(version, commit_properties=CommitProperties(custom_metadata={"userMetadata": step_id}))
        return table.version()

    def create(self, schema_json: str, properties: Mapping[str, str], step_id: str) -> int:
        """Make an empty table."""
        from deltalake import Schema as DeltaSchema

        if (here := on_disk(self.path)) is not None:
            here.parent.mkdir(parents=True, exist_ok=True)
        table = DeltaTable.create(
            self.path,
            DeltaSchema.from_json(schema_json),
            configuration=dict(properties),
            storage_options=self._options,
            commit_properties=CommitProperties(custom_metadata={"userMetadata": step_id}),
        )
        return table.version()

    def commits(self, after: int, upto: int) -> list[Commit] | None:
        """The commits in (after, upto], or None if the log no longer holds all of them."""
        filesystem = self._filesystem()
        found = []
        for version in range(after + 1, upto + 1):
            try:
                with spending("log"), filesystem.open_input_stream(f"_delta_log/{version:020d}.json") as stream:
                    found.append(_commit(version, stream.read().decode()))
            except FileNotFoundError:
                return None
            except ValueError as error:
                raise NoSuchTable(f"{self.path} (commit {version} cannot be read: {error})") from error
        return found

    def holds(self, files: Iterable[str]) -> bool:
        """Whether all of *files* (as the log names them) are still there."""
        return self._there(unquote(file) for file in files)

    def _there(self, paths: Iterable[str]) -> bool:
        relative = [path for path in paths if "://" not in path and not path.startswith("/")]
        return all(info.type != fs.FileType.NotFound for info in self._filesystem().get_file_info(relative))

    def holds_version(self, version: int) -> bool:
        """Whether *version* can still be read: the log tells its files, and all of them are there.

        Those of deletion vectors are looked at by decoding them.
        """
        try:
            there, known = self._there(self.files(version).paths), self._opened(version)
            _ = known.marked
        except (NoSuchTable, DeltaError, OSError):
            return False
        return there

    def _filesystem(self) -> fs.PyFileSystem:
        try:
            return filesystem(self.path, self._options)
        except TableNotFoundError as error:
            raise NoSuchTable(self.path) from error

    def _table(self, version: int | None = None) -> DeltaTable:
        return self._opened(version).table

    def _opened(self, version: int | None = None) -> Opened:
        with self._told(), spending("log"):
            return opened(self.path, version, self._options)

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Within, what delta-rs says of a table that is not there, or cannot be read, is one error."""
        try:
            yield
        except (TableNotFoundError, FileNotFoundError) as error:
            raise NoSuchTable(self.path) from error
        except DeltaError as error:
            raise NoSuchTable(f"{self.path} ({str(error).splitlines()[0][:120]})") from error


def _commit(version: int, text: str) -> Commit:
    actions = [json.loads(line) for line in text.split("\n") if line.strip()]
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    adds = [a["add"] for a in actions if "add" in a and a["add"].get("dataChange", True)]
    removes = [a["remove"] for a in actions if "remove" in a and a["remove"].get("dataChange", True)]
    metadata = next((a["metaData"] for a in actions if "metaData" in a), None)
    feed = None if metadata is None else metadata.get("configuration", {}).get("delta.enableChangeDataFeed") == "true"
    gone = [a["remove"] for a in actions if "remove" in a]
    replaced = [remove["path"] for remove in gone] + [a["cdc"]["path"] for a in actions if "cdc" in a]
    replaced += [file for remove in gone if (file := vector_file(remove.get("deletionVector") or {})) is not None]
    when = info.get("inCommitTimestamp") or info.get("timestamp")
    return Commit(
        version,
        None if when is None else datetime.fromtimestamp(when / 1000, UTC),
        str(info.get("operation", "")),
        info.get("userMetadata"),
        bool(adds or removes),
        not removes,
        None if metadata is None else columns_of(metadata["schemaString"]),
        feed,
        _rows_changed(info, adds, removes),
        sum(add.get("size", 0) for add in adds),
        len(adds),
        len(removes),
        _metrics(info),
        frozenset(unquote(action["path"]) for action in (*adds, *removes)),
        tuple(replaced),
    )


def _rows_changed(info: Mapping[str, Any], adds: list[Any], removes: list[Any]) -> int | None:
    """By the writer's own metrics where there are any, else by the statistics of the files."""
    metrics = {_plain(name): value for name, value in (info.get("operationMetrics") or {}).items()}

    def metric(*names: str) -> int:
        return next((int(metrics[name]) for name in names if str(metrics.get(name, "")).isdigit()), 0)

    match info.get("operation"):
        case "DELETE" if "numdeletedrows" in metrics:
            return metric("numdeletedrows")
        case "UPDATE" if "numupdatedrows" in metrics:
            return 2 * metric("numupdatedrows")
        case "MERGE" if "numtargetrowsinserted" in metrics:
            return metric("numtargetrowsinserted") + metric("numtargetrowsdeleted") + 2 * metric("numtargetrowsupdated")
    added = _rows(adds)
    return added if not removes or added is None else 2 * added


def _metrics(info: Mapping[str, Any]) -> dict[str, int]:
    """Writers give numbers as texts, and may give more than numbers."""
    told = (info.get("operationMetrics") or {}).items()
    return {name: int(value) for name, value in told if str(value).isdigit()}


def _plain(name: str) -> str:
    """Writers spell metrics as ``numDeletedRows`` or ``num_deleted_rows``."""
    return name.replace("_", "").lower()


def _rows(adds: list[Any]) -> int | None:
    total = 0
    for add in adds:
        stats = add.get("stats")
        count = json.loads(str(stats)).get("numRecords") if stats else None
        if count is None:
            return None
        total += int(count)
    return total
