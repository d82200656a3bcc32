"""Any database that Spark reaches through JDBC: a table or a query is read whole at each refresh, once.

There is no log to follow and no position to look at, so only reading tells whether something changed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pyarrow as pa

from strandline.algebra.schema import Schema
from strandline.catalog import Json
from strandline.differential.snapshot import Snapshot, snapshot
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.protocol import Finding, TableInfo
from strandline.sources.snapshots import Contents, Dump, Newest, Rules
from strandline.sql.names import choices, quoted

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SECRET_IN_URL = re.compile(r"(?i)password\s*=|//[^/@\s]+:[^/@\s]+@")


@dataclass(frozen=True)
class JdbcTable:
    """A table, or a query, in the database's own words.

    With *partition_column*, a number, it is read in *partitions* ranges at the same time: then by as many statements,
    each of which sees the table at a moment of its own.
    """

    table: str | None = None
    query: str | None = None
    key: tuple[str, ...] = ()
    partition_column: str | None = None
    partitions: int = 8
    shrink: float = 0.5

    @property
    def relation(self) -> str:
        """What can stand after FROM."""
        return self.table if self.table is not None else f"({self.query}) strandline_q"


@dataclass(frozen=True)
class JdbcAddress:
    """How the database is reached; the password, or the whole URL, is in the environment."""

    url: str | None = None
    url_env: str | None = None
    user: str | None = None
    password_env: str | None = None
    properties: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.url is None) == (self.url_env is None):
            raise SourceError("SOURCE_ADDRESS", "a jdbc source has either a url or a url_env; give one of them.")
        if self.url is not None and _SECRET_IN_URL.search(self.url):
            raise SourceError(
                "SOURCE_PASSWORD_IN_DSN",
                "the url holds a password, which would be kept in files and shown; a password belongs in the "
                "environment (password_env names a variable with it, url_env one with the whole URL); take it out.",
            )

    def options(self) -> dict[str, str]:
        """The options of Spark's ``jdbc`` format, secrets included."""
        secrets = {"password": _environment(self.password_env)} if self.password_env else {}
        user = {"user": self.user} if self.user else {}
        url = self.url if self.url is not None else _environment(str(self.url_env))
        return {**self.properties, "url": url, **user, **secrets}

    def __str__(self) -> str:
        return self.url if self.url is not None else f"${self.url_env}"


class JdbcSource:
    """Tables and queries of one database."""

    kind = "jdbc"
    peekable = False

    def __init__(self, name: str, engine: Engine, address: JdbcAddress, tables: Mapping[str, JdbcTable]) -> None:
        self.name = name
        self._engine = engine
        self._address = address
        self._tables = dict(tables)

    def check(self) -> None:
        self.tables()

    def tables(self) -> Mapping[str, TableInfo]:
        """The tables as the database has them now; it is asked for each, which needs Spark."""
        found = {}
        for name, table in self._tables.items():
            columns = self._engine.columns_of(self._explained(lambda table=table: self._frame(table, "1 = 0")))
            known = [column.name for column in columns]
            for wanted in (*table.key, *([table.partition_column] if table.partition_column else [])):
                if wanted not in known:
                    raise SourceError(
                        "KEY_MISSING",
                        f"{self.name}.{name} is declared with a column {wanted}, and it has {choices(known, wanted)}; "
                        f"correct the name in sources/{self.name}.yml.",
                    )
            found[name] = TableInfo(name, columns, table.key)
        return found

    def newest(self, table: str, after: Mapping[str, Json] | None) -> Newest:
        """The table as it will be read: it has no other name than the time of looking."""
        self._table(table)
        now = datetime.now(UTC)
        return Newest(Dump({"dump": f"as read after {now:%Y-%m-%d %H:%M:%S.%f} UTC"}, now))

    def contents(self, table: str, dump: Dump) -> Contents:
        return Contents()

    @contextmanager
    def opened(self, table: str, identity: Mapping[str, Json], columns: Schema, folder: str) -> Iterator[Snapshot]:
        """Reads the table, now, into files below *folder*; only the *columns* that the warehouse has a copy of."""
        name = f"{self.name}.{table}"
        if not self._explained(lambda: self._read(self._table(table), columns, folder)):
            # Text takes on the types of what it is compared with.
            schema = pa.schema([(column.name, pa.string()) for column in columns])
            yield Snapshot(name, "csv", files=(), schema=schema, bytes=0, rows=0)
        elif "://" in folder:
            yield Snapshot(name, "parquet", folder)
        else:
            yield replace(snapshot(folder), name=name)

    def rules(self, table: str) -> Rules:
        return Rules(self._table(table).shrink)

    def findings(self) -> Sequence[Finding]:
        try:
            found = self.tables()
        except SourceError as error:
            return [Finding(error.message, False, error.code)]
        return [Finding(f"{name}: {_described(info)}", True) for name, info in found.items()]

    def close(self) -> None:
        """Spark opens and closes the connections."""

    def _table(self, name: str) -> JdbcTable:
        if name not in self._tables:
            raise SourceError(
                "UNKNOWN_TABLE", f"source {self.name} has no table {name}; it has {choices(self._tables, name)}."
            )
        return self._tables[name]

    def _frame(self, table: JdbcTable, *conditions: str) -> DataFrame:
        options = self._address.options()
        return self._engine.jdbc_frame({**options, "dbtable": table.relation}, conditions)

    def _read(self, table: JdbcTable, columns: Schema, folder: str) -> bool:
        """Write the rows below *folder*; False if there are none."""
        view = f"strandline_jdbc_{uuid4().hex}"
        self._frame(table, *self._ranges(table)).createOrReplaceTempView(view)
        try:
            shown = ", ".join(quoted(column.name) for column in columns)
            return self._engine.write_parquet(f"SELECT {shown} FROM {view}", folder)
        finally:
            self._engine.drop_view(view)

    def _ranges(self, table: JdbcTable) -> list[str]:
        """Conditions that each row meets one of."""
        column, parts = table.partition_column, table.partitions
        if column is None or parts < 2:
            return ["1 = 1"]
        ends = f"(SELECT min({column}) AS low, max({column}) AS high FROM {table.relation}) strandline_ends"
        low, high = self._engine.jdbc_frame({**self._address.options(), "dbtable": ends}, ["1 = 1"]).collect()[0]
        if low is None:
            return ["1 = 1"]
        return ranges(column, int(low), int(high), parts)

    def _explained(self, action: Any) -> Any:
        """What *action* returns; a refusal of the database or its driver is told in one line, without secrets."""
        try:
            return action()
        except SourceError:
            raise
        except Exception as error:
            lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
            java = lines[0].startswith("An error occurred while calling") and len(lines) > 1
            text = lines[1 if java else 0].removeprefix(": ")[:500]
            for secret in (self._address.password_env, self._address.url_env):
                if secret and (value := os.environ.get(secret)):
                    text = text.replace(value, "***")
            if "ClassNotFound" in text or "No suitable driver" in text:
                raise SourceError(
                    "DRIVER_MISSING",
                    f"Spark has no JDBC driver for {self._address}: {text}; add its jar to spark.jars.",
                ) from error
            raise SourceError(
                "SOURCE_FAILED", f"{self._address} could not be read: {text}; see to the database, then try again."
            ) from error


def ranges(column: str, low: int, high: int, parts: int) -> list[str]:
    """Conditions on a numeric column, each row meeting just one; rows outside of the bounds and NULL do, too."""
    width = max(1, (high - low) // parts)
    bounds = [low + width * number for number in range(1, parts) if low + width * number <= high]
    if not bounds:
        return ["1 = 1"]
    first = f"{column} < {bounds[0]} OR {column} IS NULL"
    between = [f"{column} >= {a} AND {column} < {b}" for a, b in pairwise(bounds)]
    return [first, *between, f"{column} >= {bounds[-1]}"]


def _environment(variable: str) -> str:
    value = os.environ.get(variable, "").strip()
    if not value:
        raise SourceError(
            "SOURCE_DSN_UNSET", f"the environment variable {variable} is not set; export it before this command."
        )
    return value


def _described(info: TableInfo) -> str:
    key = f"key {', '.join(info.key)}" if info.key else "no key: a bag of rows"
    return f"{len(info.columns)} columns can be read; {key}"
