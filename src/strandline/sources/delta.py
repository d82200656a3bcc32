"""Delta tables as a source: read where they are, at any version that is still there.

Changes come from the change feed where it was on for the whole interval, else from comparing the two versions.
Compaction changes no data. Versions that were vacuumed away are a gap.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from strandline.algebra.plan import Plan
from strandline.algebra.schema import Schema
from strandline.engine import places, tables
from strandline.engine.delta_log import Commit, DeltaLog, NoSuchTable
from strandline.engine.session import Engine
from strandline.engine.statistics import Files
from strandline.errors import SourceError
from strandline.reasons import Reason
from strandline.sources.protocol import Answer, Peek, Position, Size, SourceTransaction, TableInfo
from strandline.sources.query import pinned_query
from strandline.sql.names import choices


class DeltaSource:
    """Each Delta table below *path*, and each one named in *tables*: by path, or by its name in Spark's catalog."""

    kind = "delta"
    copied = False

    def __init__(
        self,
        name: str,
        engine: Engine,
        *,
        path: str | None = None,
        tables: Mapping[str, str] | None = None,
        keys: Mapping[str, tuple[str, ...]] | None = None,
        known_locations: Mapping[str, str] | None = None,
    ) -> None:
        self.name = name
        self._engine = engine
        self._path = path
        self._tables = dict(tables or {})
        self._keys = dict(keys or {})
        self._locations = dict(known_locations or {})

    def tables(self) -> Mapping[str, TableInfo]:
        found = {}
        for table in self._names():
            try:
                columns = self._log(table).schema()
            except NoSuchTable:
                continue
            found[table] = TableInfo(table, columns, self._keys.get(table, ()), self.location(table))
        return found

    def position(self, table: str) -> Position:
        log = self._log(table)
        try:
            version, table_id = log.head()
            return {"version": version, "table": table_id}
        except NoSuchTable as error:
            raise SourceError(
                "SOURCE_TABLE_GONE",
                f"{self.name}.{table} was at {log.path}, and no Delta table is there any more; "
                f"{self.name} has {choices(self.tables())}. Put it back, or drop the views that read it.",
            ) from error

    def peek(self, table: str, after: Position, upto: Position) -> Peek:
        first, last = _version(after), _version(upto)
        if _table_id(after) != _table_id(upto):
            return Peek((), gap=Reason("SOURCE_TABLE_REPLACED", f"{self.name}.{table} was dropped and made anew"))
        if last < first:
            return Peek((), gap=Reason("CHANGE_FEED_GAP", f"{self.name}.{table} went back to an earlier version"))
        log = self._log(table)
        commits = log.commits(first, last)
        if commits is None:
            return Peek((), gap=self._gap(table, first, last))
        changing = [commit for commit in commits if commit.changes_data]
        old_files = [file for commit in commits for file in commit.old_files]
        before = self._schema(log, first)
        if changing and not (before is not None and log.holds(old_files)):
            return Peek((), gap=self._gap(table, first, last))
        rows = [commit.rows_changed for commit in changing]
        return Peek(
            tuple(_transactions(commits, before, _table_id(upto))),
            insert_only=all(commit.only_inserts for commit in changing),
            rows=None if any(count is None for count in rows) else sum(count or 0 for count in rows),
            bytes=sum(commit.bytes_added for commit in changing),
            files=frozenset().union(*(commit.data_files for commit in changing)),
        )

    def changes(self, table: str, after: Position, upto: Position, columns: Schema) -> str:
        first, last = _version(after), _version(upto)
        location = self._location_at(table, upto)
        if first == last:
            return tables.no_changes(columns)
        if self._fed(table, first, last):
            return tables.change_feed(location, first, last, columns)
        return tables.difference(location, first, last, columns)

    def snapshot(self, table: str, at: Position, columns: Schema | None) -> str:
        location = self._location_at(table, at)
        if columns is None:
            return f"SELECT * FROM {tables.table(location, _version(at))}"
        return tables.select(location, _version(at), columns)

    def files(self, table: str, at: Position) -> Files:
        return self._log(table).files(_version(at))

    def size(self, table: str, at: Position) -> Size:
        size = self._log(table).size(_version(at))
        return Size(size.rows, size.bytes)

    def query(self, plan: Plan) -> Answer:
        return pinned_query(self, plan, self.position)

    def acknowledge(self, table: str, position: Position) -> None:
        """A Delta table keeps its history by its own settings; nobody waits for us."""

    def location(self, table: str) -> str:
        """Where the table is."""
        if table not in self._locations:
            self._locations[table] = self._located(table)
        return self._locations[table]

    def _location_at(self, table: str, at: Position) -> str:
        """Where the table is, which has to be the one that a position was told of."""
        if self._log(table).identity(_version(at)) not in (None, _table_id(at)):
            raise SourceError(
                "SOURCE_TABLE_REPLACED",
                f"{self.name}.{table} was dropped and made anew since this refresh was planned; refresh again, and "
                "what reads it is read anew.",
            )
        return self.location(table)

    def _located(self, table: str) -> str:
        named = self._tables.get(table)
        if named is None:
            if self._path is None:
                raise SourceError(
                    "UNKNOWN_TABLE", f"source {self.name} has no table {table}; it has {choices(self._tables)}."
                )
            return f"{self._path.rstrip('/')}/{table}"
        if "/" in named:
            return named
        return self._location_in_catalog(table, named)

    def _location_in_catalog(self, table: str, named: str) -> str:
        try:
            rows = self._engine.worker.sql(f"DESCRIBE DETAIL {named}").select("format", "location").collect()
        except Exception as error:
            raise SourceError(
                "SOURCE_TABLE_MISSING",
                f"{self.name}.{table} is declared as {named}, which Spark's catalog does not know: "
                f"{str(error).splitlines()[0]}; correct the name in sources/{self.name}.yml.",
            ) from error
        kind, location = rows[0]
        if kind != "delta":
            raise SourceError(
                "NOT_DELTA", f"{named} is a {kind} table; a delta source takes Delta tables. Convert it to Delta first."
            )
        return str(location).removeprefix("file:")

    def _names(self) -> list[str]:
        found = list(self._tables)
        if self._path is not None:
            found.extend(name for name in self._folders() if name not in found)
        return found

    def _folders(self) -> list[str]:
        assert self._path is not None
        options = self._engine.storage_options
        names = [name for name in places.folders(self._path, options) if not name.startswith(("_", "."))]
        return [name for name in names if DeltaLog(f"{self._path.rstrip('/')}/{name}", options).exists()]

    def check(self) -> None:
        """Raise SourceError unless the source is there and has a table."""
        if self._path is not None and (here := places.on_disk(self._path)) is not None and not here.is_dir():
            raise SourceError(
                "SOURCE_PATH_MISSING",
                f"source {self.name} is declared at {self._path}, and there is no such folder; correct the path.",
            )
        for table, named in self._tables.items():
            if "/" in named and not DeltaLog(named, self._engine.storage_options).exists():
                raise SourceError(
                    "NOT_DELTA",
                    f"{self.name}.{table} is declared at {named}, and no Delta table is there; "
                    "correct the path, or write the table first.",
                )
            self.location(table)
        if not self._names() and self._path is not None:
            raise SourceError(
                "NOT_DELTA",
                f"source {self.name} is declared at {self._path}, and no folder below it is a Delta table "
                f"(there are: {choices(places.folders(self._path, self._engine.storage_options))}); "
                "give the folder that holds the tables' folders, or name them under `tables`.",
            )

    def _log(self, table: str) -> DeltaLog:
        return DeltaLog(self.location(table), self._engine.storage_options)

    def _schema(self, log: DeltaLog, version: int) -> Schema | None:
        """The columns at *version*, or None if the log no longer reaches back to it."""
        try:
            return log.schema(version)
        except Exception:
            return None

    def _gap(self, table: str, first: int, last: int) -> Reason:
        return Reason("CHANGE_FEED_GAP", f"{self.name}.{table} no longer holds all versions from {first} to {last}")

    def _fed(self, table: str, first: int, last: int) -> bool:
        """Whether the change feed was on, and can be read here, for the whole interval.

        Spark reads it with the columns that the table has now, which may come to have other types after the interval.
        """
        if not self._engine.capabilities.change_feed:
            return False
        log = self._log(table)
        if log.configuration(first).get("delta.enableChangeDataFeed") != "true":
            return False
        commits = log.commits(first, last) or ()
        if any(commit.change_feed is False for commit in commits):
            return False
        # Over a column that was dropped, renamed or given another type, Delta refuses to read its feed.
        known = log.schema(first)
        for commit in commits:
            if commit.new_schema is not None:
                if not _typed(known) <= _typed(commit.new_schema):
                    return False
                known = commit.new_schema
        return _typed(known) <= _typed(log.schema())


def _version(position: Position) -> int:
    assert isinstance(position, dict)
    version = position["version"]
    assert isinstance(version, int)
    return version


def _table_id(position: Position) -> str:
    assert isinstance(position, dict)
    return str(position["table"])


def _typed(columns: Schema) -> set[tuple[str, str]]:
    return {(column.name, column.type) for column in columns}


def _transactions(commits: Iterable[Commit], before: Schema | None, table_id: str) -> Iterator[SourceTransaction]:
    """A change of table properties repeats the schema: only another one than *before* is a change of it."""
    for commit in commits:
        yield SourceTransaction(
            {"version": commit.version, "table": table_id},
            str(commit.version),
            commit.committed_at,
            commit.changes_data,
            None if commit.new_schema == before else commit.new_schema,
        )
        before = commit.new_schema or before
