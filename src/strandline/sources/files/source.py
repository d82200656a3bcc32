"""Files as a source: tables whose dumps arrive whole, and are compared with what came before."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from strandline.algebra.schema import Schema
from strandline.catalog import Json
from strandline.differential.snapshot import Snapshot
from strandline.errors import SourceError
from strandline.reasons import Reason
from strandline.sources.files.declared import FilesTable
from strandline.sources.files.folders import FoundDump, dumps, order_of, passed_over
from strandline.sources.files.reading import columns_of, contents_of, snapshot_of
from strandline.sources.protocol import Finding, TableInfo
from strandline.sources.snapshots import Contents, Dump, Newest, Rules
from strandline.sql.names import choices


class FilesSource:
    """The tables of *declared*; and, with *path* and *each*, one for every folder below *path*."""

    kind = "files"
    peekable = True

    def __init__(
        self,
        name: str,
        declared: Mapping[str, FilesTable],
        *,
        path: str | None = None,
        each: Callable[[str, str], FilesTable] | None = None,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        self.name = name
        self._declared = dict(declared)
        self._path = path
        self._each = each
        self._clock = clock
        self._contents: dict[tuple[str, str], Contents] = {}

    def tables(self) -> Mapping[str, TableInfo]:
        return {name: self._described(name, table) for name, table in self._all().items()}

    def newest(self, table: str, after: Mapping[str, Json] | None) -> Newest:
        declared = self._table(table)
        found = dumps(declared)
        if after is not None:
            since = order_of(declared, after)
            found = [dump for dump in found if order_of(declared, dump.identity) >= since]
            found = [dump for dump in found if dump.stamp != after["stamp"]]
        now = self._clock()
        whole = [dump for dump in found if dump.whole(declared, now)]
        if not whole:
            return Newest(waiting=tuple(dump.name for dump in found))
        last = whole[-1]
        skipped = tuple(dump.name for dump in whole[:-1] if after is not None)
        waiting = tuple(dump.name for dump in found[found.index(last) + 1 :])
        newest = Newest(_dump(last), skipped, waiting)
        try:
            columns_of(f"{self.name}.{table}", declared, last)
        except SourceError as error:
            return replace(newest, problem=Reason("DUMP_HELD_BACK", f"[{error.code}] {error.message}"))
        return newest

    def contents(self, table: str, dump: Dump) -> Contents:
        key = (table, str(dump.identity["stamp"]))
        if key not in self._contents:
            self._contents[key] = contents_of(self._table(table), self._again(table, dump.identity))
        return self._contents[key]

    @contextmanager
    def opened(self, table: str, identity: Mapping[str, Json], columns: Schema, folder: str) -> Iterator[Snapshot]:
        found = self._again(table, identity)
        yield snapshot_of(f"{self.name}.{table}", self._table(table), found, columns)
        self._again(table, identity)

    def rules(self, table: str) -> Rules:
        declared = self._table(table)
        return Rules(declared.shrink, declared.unreadable)

    def check(self) -> None:
        if self._path is not None and self._each is not None and not Path(self._path).is_dir():
            raise SourceError(
                "SOURCE_PATH_MISSING",
                f"source {self.name} is declared at {self._path}, and there is no such folder; correct the path.",
            )
        tables = self._all()
        if not self._declared and not any(dumps(table) for table in tables.values()):
            raise SourceError(
                "NO_DUMP",
                f"source {self.name} is declared at {self._path}, and no folder below it holds dumps; put the dumps of "
                "each table into a folder of its own there, or name the tables under `tables`.",
            )
        for name, table in tables.items():
            found = dumps(table)
            if not found and name in self._declared and not Path(table.path).parent.is_dir():
                raise SourceError(
                    "SOURCE_PATH_MISSING",
                    f"{self.name}.{name} is declared at {table.path}, and there is no such folder; correct the path.",
                )
            for dump in found[-1:]:
                self._check_columns(name, table, dump)

    def findings(self) -> Sequence[Finding]:
        try:
            self.check()
        except SourceError as error:
            return [Finding(error.message, False, error.code)]
        tables = {name: table for name, table in self._all().items() if name in self._declared or dumps(table)}
        return [self._finding(name, table) for name, table in tables.items()]

    def close(self) -> None:
        """Files are not held open."""

    def _finding(self, name: str, table: FilesTable) -> Finding:
        newest = self.newest(name, None)
        unfinished = f"; not whole yet: {', '.join(newest.waiting)}" if newest.waiting else ""
        if newest.problem is not None:
            return Finding(f"{name}: {newest.problem.text}", False, newest.problem.code)
        if newest.dump is None:
            others = passed_over(table)
            named = f"; no {table.format} by their names: {', '.join(others[:3])}" if others else ""
            what = f"{name}: no whole dump at {table.path} yet{unfinished}{named}"
            return Finding(what, bool(unfinished), "" if unfinished else "NO_DUMP")
        rows = self.contents(name, newest.dump).rows
        known = f"the newest whole dump is {newest.dump.name} with {rows:,} rows"
        key = f"key {', '.join(table.key)}" if table.key else "no key: a bag of rows"
        return Finding(f"{name}: {known}; {key}{unfinished}", True)

    def _check_columns(self, name: str, table: FilesTable, dump: FoundDump) -> None:
        columns, _ = columns_of(f"{self.name}.{name}", table, dump)
        known = [column.name for column in columns]
        for wanted in (*table.key, *table.columns):
            if known and wanted not in known:
                raise SourceError(
                    "KEY_MISSING" if wanted in table.key else "UNKNOWN_COLUMN",
                    f"{self.name}.{name} is declared with a column {wanted}, and its dump {dump.name} has "
                    f"{choices(known, wanted)}; correct the name in sources/{self.name}.yml.",
                )

    def _described(self, name: str, table: FilesTable) -> TableInfo:
        """The table as the newest of its whole dumps has it that can be read."""
        now = self._clock()
        for dump in reversed(dumps(table)):
            if not dump.whole(table, now):
                continue
            try:
                columns, unusable = columns_of(f"{self.name}.{name}", table, dump)
            except SourceError:
                continue
            if columns:
                return TableInfo(name, columns, table.key, table.path, unusable, dump.bytes)
        return TableInfo(name, (), table.key, table.path)

    def _all(self) -> dict[str, FilesTable]:
        found = dict(self._declared)
        if self._path is not None and self._each is not None and Path(self._path).is_dir():
            for entry in sorted(Path(self._path).iterdir()):
                if entry.name not in found and entry.is_dir() and not entry.name.startswith(("_", ".")):
                    found[entry.name] = self._each(entry.name, str(entry))
        return found

    def _table(self, name: str) -> FilesTable:
        found = self._all().get(name)
        if found is None:
            there = choices(self._all(), name)
            raise SourceError("UNKNOWN_TABLE", f"source {self.name} has no table {name}; it has {there}.")
        return found

    def _again(self, table: str, identity: Mapping[str, Json]) -> FoundDump:
        """The dump with that identity, as it was."""
        found = next((dump for dump in dumps(self._table(table)) if dump.name == identity["dump"]), None)
        if found is None or found.stamp != identity["stamp"]:
            what = "was taken away" if found is None else "has been changed"
            raise SourceError(
                "DUMP_GONE",
                f"dump {identity['dump']} of {self.name}.{table} {what} since it was looked at; refresh again, and the "
                "newest whole dump is taken.",
            )
        return found


def _dump(found: FoundDump) -> Dump:
    return Dump(found.identity, datetime.fromtimestamp(found.modified / 1e9, UTC), found.bytes)
