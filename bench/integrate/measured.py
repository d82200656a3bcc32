"""What PostgreSQL and the driver really do: queries, bytes on the wire, block reads, seconds.

Every source is a database of one server. Updates are committed there and delivered to the driver as they are, for a log
costs the same whatever the algorithm. Terms at the warehouse are evaluated in memory: Spark has no part in this.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import psycopg

from bench.integrate.chains import Commit, Rows
from strandline.algebra.bag import SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Operand, Plan
from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.asking import HeldSource, Traffic, answered
from strandline.integrate.driver import Driver, Run
from strandline.integrate.messages import VIEW, Query
from strandline.integrate.view import View
from strandline.integrate.workbench import Workbench
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.source import PostgresSource

PAD = 340
"""Bytes that are added to a row of the three relations, so that a block of PostgreSQL holds 20 of them."""

INDEXES = {
    "r1": ("CREATE INDEX r1_x ON r1 (x)", "CLUSTER r1 USING r1_x"),
    "r2": ("CREATE INDEX r2_x ON r2 (x)", "CREATE INDEX r2_y ON r2 (y)", "CLUSTER r2 USING r2_x"),
    "r3": ("CREATE INDEX r3_y ON r3 (y)", "CLUSTER r3 USING r3_y"),
}
"""Those of scenario 1."""


@dataclass(frozen=True)
class Measured:
    """What a run took: messages of the driver, what went over the wire, heap blocks that were read, and seconds.

    *each* has the seconds from the delivery of updates to the view that shows them, one for every time that happened.
    """

    messages: int
    traffic: Traffic
    blocks: int
    each: tuple[float, ...]

    @property
    def wire_bytes(self) -> int:
        return self.traffic.sent_bytes + self.traffic.fetched_bytes

    @property
    def seconds(self) -> float:
        return sum(self.each)


class InMemory(Workbench):
    """A workbench without Spark: what is kept is in memory too."""

    def __init__(self, kept: Mapping[Operand, SignedBag]) -> None:
        self._first = kept
        self.run = Run()

    def value(self, plan: Plan, bags: Mapping[Operand, SignedBag], tables: Mapping[Operand, str]) -> SignedBag:
        assert not tables, "a table would be read by Spark"
        return evaluate(plan, lambda operand: bags[operand] if operand in bags else self.kept(operand))

    def kept(self, operand: Operand) -> SignedBag:
        return self._first[operand] + self.run.total(operand)  # type: ignore[arg-type]


@dataclass
class Database:
    """A source: a connection that writes to it, and how it is asked."""

    name: str
    writer: psycopg.Connection[Any]
    source: PostgresSource

    def fill(self, view: View, rows: Rows, *, pad: int = 0, indexes: bool = False) -> None:
        """Make the relations of *view* that are at this source anew."""
        for scan, home in zip(view.scans, view.homes, strict=True):
            if home != self.name:
                continue
            table, relation = scan.alias, f"{home}.{scan.alias}"
            columns = ", ".join(f"{column.name} bigint" for column in scan.fields)
            self.writer.execute(f"DROP TABLE IF EXISTS {table}")
            self.writer.execute(f"CREATE TABLE {table} ({columns}, pad text)")
            self.writer.execute(
                f"ALTER TABLE {table} ALTER pad SET STORAGE PLAIN, ALTER pad SET DEFAULT repeat('x', {pad})"
            )
            values = ", ".join(str(row) for row, times in rows[relation].items() for _ in range(times))
            listed = ", ".join(column.name for column in scan.fields)
            self.writer.execute(f"INSERT INTO {table} ({listed}) VALUES {values}")
            for command in INDEXES[table] if indexes else ():
                self.writer.execute(command)
            self.writer.execute(f"VACUUM ANALYZE {table}")
        self.source.tables()

    def commit(self, view: View, commit: Commit) -> None:
        scan = next(scan for scan in view.scans if scan.operand == At(commit.relation))
        listed = [column.name for column in scan.fields]
        for row, times in commit.rows.items():
            if times > 0:
                self.writer.execute(f"INSERT INTO {scan.alias} ({', '.join(listed)}) VALUES {row}")
            else:
                test = " AND ".join(f"{name} = {value}" for name, value in zip(listed, row, strict=True))
                self.writer.execute(f"DELETE FROM {scan.alias} WHERE {test}")
        self.writer.execute("SELECT pg_stat_force_next_flush()")

    def blocks(self) -> int:
        """Heap blocks of all tables that were asked for by sessions that have ended, in memory or not."""
        return self._one("SELECT coalesce(sum(heap_blks_read + heap_blks_hit), 0)::int8 FROM pg_statio_user_tables")

    def sessions(self) -> int:
        """How many clients are connected."""
        clients = "datname = current_database() AND backend_type = 'client backend'"
        return self._one(f"SELECT count(*) FROM pg_stat_activity WHERE {clients}")

    def wait_for(self, sessions: int) -> None:
        """Wait until no more sessions than these are left: they report what they read as they end."""
        while self.sessions() > sessions:
            time.sleep(0.001)

    def _one(self, query: str) -> int:
        row = self.writer.execute(query).fetchone()
        assert row is not None
        return int(row[0])


@dataclass
class Sources:
    """Databases of one server, made as they are wanted, and gone at the end."""

    server: PostgresServer
    databases: dict[str, Database] = field(default_factory=dict)

    def of(self, view: View) -> dict[str, Database]:
        for name in view.sources:
            if name not in self.databases:
                self.databases[name] = self._made(name)
        return {name: self.databases[name] for name in view.sources}

    def close(self) -> None:
        for database in self.databases.values():
            database.source.close()
            database.writer.close()
            self._do(f"DROP DATABASE bench_{database.name} WITH (FORCE)")
        self.databases = {}

    def _do(self, command: str) -> None:
        with psycopg.connect(self.server.dsn_for(SUPERUSER, self.server.password), autocommit=True) as connection:
            connection.execute(command)

    def _made(self, name: str) -> Database:
        self._do(f"CREATE DATABASE bench_{name}")
        dsn = self.server.dsn_for(SUPERUSER, self.server.password, f"bench_{name}")
        variable = f"BENCH_INTEGRATE_{name.upper()}"
        os.environ[variable] = dsn
        source = PostgresSource(name, Address(dsn_env=variable), owner="bench", copies=False)
        return Database(name, psycopg.connect(dsn, autocommit=True), source)


@contextmanager
def held(databases: Mapping[str, Database], bench: Workbench) -> Iterator[dict[str, HeldSource]]:
    """Every source in the state of this moment."""
    with ExitStack() as stack:
        yield {
            name: HeldSource(stack.enter_context(database.source.hold()), bench) for name, database in databases.items()
        }


def measured(
    algorithm: Algorithm[Any],
    databases: Mapping[str, Database],
    rows: Rows,
    rounds: Iterable[Sequence[Commit]],
    delay: float = 0.0,
) -> Measured:
    """Have *algorithm* follow *rounds* of updates, each settled before the next; a message takes *delay* more."""
    now = dict(rows)
    bench = InMemory({bag: evaluate(plan, lambda o: _rows(o, rows)) for bag, plan in algorithm.kept().items()})
    asked: dict[str, HeldSource] = {}

    def ask(query: Query, given: Mapping[Operand, SignedBag]) -> Mapping[str, SignedBag]:
        time.sleep(delay)
        found = answered(query, asked[query.source], given)
        time.sleep(delay)
        return found

    driver = Driver(algorithm, {}, bench, ask)
    bench.run = driver.run
    traffic, blocks, each, sequence = Traffic(), 0, [], 0
    for commits in rounds:
        for commit in commits:
            databases[commit.source].commit(algorithm.view, commit)
            now[commit.relation] = now[commit.relation] + commit.rows
        sessions = {name: database.sessions() for name, database in databases.items()}
        before = sum(database.blocks() for database in databases.values())
        with held(databases, bench) as in_one_state:
            asked.update(in_one_state)
            began = time.perf_counter()
            for commit in commits:
                sequence += 1
                driver.update(commit.source, sequence, commit.deltas)
            driver.settle()
            each.append(time.perf_counter() - began)
            traffic = sum((source.traffic for source in asked.values()), traffic)
        for name, database in databases.items():
            database.wait_for(sessions[name])
        blocks += sum(database.blocks() for database in databases.values()) - before
    expected = evaluate(algorithm.view.plan, lambda o: _rows(o, now))
    assert bench.kept(VIEW) == expected, f"{algorithm.name} went wrong"
    return Measured(2 * driver.run.queries, traffic, blocks, tuple(each))


def _rows(operand: Operand, rows: Rows) -> SignedBag:
    assert isinstance(operand, At)
    return rows[operand.relation]
