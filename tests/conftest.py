"""What all tests share: the one Spark session and the one PostgreSQL server of the process, and bags to compare."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any
from unittest import mock

import psycopg
import pytest
import yaml
from deltalake import DeltaTable
from psycopg import sql

from strandline.algebra.bag import SignedBag, canonical
from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.engine.jars import jar_paths
from strandline.engine.little import PinnedReads
from strandline.engine.session import Engine
from strandline.engine.tables import table as pinned
from strandline.project.folder import Project
from strandline.warehouse import Warehouse
from tests import classes

_NUMBERS = count(1)


_LONG = ("warehouse", "cluster", "engines", "demo", "sources", "integrate", "watch", "upkeep")
"""Folders with few and long tests: they come before others, so that no process is left alone with one at the end."""

_SHORT = ("propagate",)
"""Folders of many short files, which several processes share evenly: they come last."""

_SPARK = {"spark", "connect", "sail", "kill", "engine", "small"}
"""Markers and fixtures of tests that start Java."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the tests so that several processes end at about the same time.

    Files that need no Spark come first: meanwhile Spark's classes may be archived for those that do.
    """
    here = Path(__file__).parent
    starting_java = {item.path for item in items if _SPARK & {*_fixtures(item), *(m.name for m in item.iter_markers())}}

    def turn(item: pytest.Item) -> int:
        folder = item.path.relative_to(here).parts[0]
        return 0 if item.path not in starting_java else 1 if folder in _LONG else 3 if folder in _SHORT else 2

    items.sort(key=turn)


def _fixtures(item: pytest.Item) -> Sequence[str]:
    return item.fixturenames if isinstance(item, pytest.Function) else ()


LITTLE_DATA = {
    "spark.driver.memory": "2g",
    "spark.driver.extraJavaOptions": (
        f"-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xmn600m {classes.options()}"
    ),
    # Only classes of Java's own path are archived.
    "spark.driver.extraClassPath": os.pathsep.join(jar_paths()),
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.leafNodeDefaultParallelism": "1",
    "spark.sql.files.minPartitionNum": "1",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.databricks.delta.writeChecksumFile.enabled": "false",
    # VACUUM lists files in as many tasks as this.
    "spark.sql.sources.parallelPartitionDiscovery.parallelism": "1",
    "spark.sql.ui.explainMode": "simple",
}
"""A session for a few rows: compiling, by Java and by Spark, costs more than it saves, and so does a second task. Steps
that are not over little data set some of these settings as they need them."""


def new_project(folder: Path) -> None:
    """Make a project in *folder* that starts such a session where it is not given one: in a process of its own."""
    Project.create(folder)
    with (folder / "strandline.yml").open("a", encoding="utf-8") as file:
        yaml.safe_dump({"spark": {"settings": LITTLE_DATA}}, file)


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The one Spark session of the test process; it starts when it is first used."""
    engine = Engine(settings=LITTLE_DATA)
    yield engine
    engine.close()


_ONE_TASK = {
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.autoBroadcastJoinThreshold": "-1",
    # Spark derives a number of constraints that is exponential in the number of aggregates of a merged summary.
    "spark.sql.constraintPropagation.enabled": "false",
}


@pytest.fixture(scope="package")
def small(engine: Engine) -> Iterator[Engine]:
    """The engine with settings for queries over a few rows: one task each, interpreted and not compiled."""
    with ExitStack() as stack:
        # Nothing is counted of this step: it lasts for hundreds of tests.
        with mock.patch("strandline.engine.session.mark", return_value=None):
            stack.enter_context(engine.step("tests", "little", small=True))
        for name, value in _ONE_TASK.items():
            engine.worker.conf.set(name, value)
        yield engine
    for name in _ONE_TASK:
        engine.worker.conf.unset(name)
    with engine.step("tests", "little", small=True):
        pass


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """The server of this test process; a test that stops it starts it again."""
    with PostgresServer.start(tmp_path_factory.mktemp("postgres")) as server:
        yield server


@pytest.fixture
def database(server: PostgresServer) -> Iterator[str]:
    """A fresh database: how its superuser connects to it, password included. It goes, with its slots, at the end."""
    with new_database(server) as dsn:
        yield dsn


@pytest.fixture(scope="module")
def own_database(server: PostgresServer) -> Iterator[str]:
    """A database that the tests of a module share."""
    with new_database(server) as dsn:
        yield dsn


@contextmanager
def new_database(server: PostgresServer) -> Iterator[str]:
    """A fresh database, for as long as the context."""
    name = f"test_{next(_NUMBERS)}"
    dsn = server.dsn_for(SUPERUSER, server.password, name)
    with psycopg.connect(server.dsn_for(SUPERUSER, server.password), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
    yield dsn
    if not server.running:
        server.restart()
    with psycopg.connect(dsn, autocommit=True) as connection:
        _let_go(connection)
    with psycopg.connect(server.dsn_for(SUPERUSER, server.password), autocommit=True) as connection:
        connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name)))


def _let_go(connection: psycopg.Connection) -> None:
    """End what keeps a database from being dropped: other sessions, prepared transactions, slots."""
    here = "= current_database()"
    connection.execute(
        f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname {here} AND pid <> pg_backend_pid()"
    )
    for (gid,) in connection.execute(f"SELECT gid FROM pg_prepared_xacts WHERE database {here}").fetchall():
        connection.execute(sql.SQL("ROLLBACK PREPARED {}").format(sql.Literal(gid)))
    connection.execute(f"SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database {here}")


def rows_of(engine: Engine, sql: str) -> list[tuple[Any, ...]]:
    """The rows of *sql*; versions of tables are read by their files, which takes a fraction of Delta's time."""
    reads = PinnedReads(engine.worker, engine.storage_options, feeds=True)
    try:
        return engine.rows(reads.replaced(sql))
    finally:
        reads.close()


def rows_stored(engine: Engine, path: str, version: int | None = None) -> list[tuple[Any, ...]]:
    """The rows of a Delta table as they lie there, by default in its newest version."""
    at = DeltaTable(path).version() if version is None else version
    return rows_of(engine, f"SELECT * FROM {pinned(path, at)}")


def rows_shown(warehouse: Warehouse, view: str, state: int | None = None) -> list[tuple[Any, ...]]:
    """The rows of a view in a state, by default the newest; what ``read`` gives has tests of its own."""
    published = warehouse._published
    return rows_of(warehouse._engine, published.select(warehouse._entry(view, published.state(state))))


def bag(rows: Iterable[Sequence[Any]]) -> SignedBag:
    """*rows* as a bag, under Spark's grouping equality: what two results are compared as."""
    return SignedBag.of(tuple(_hashable(value) for value in row) for row in rows)


def _hashable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, Mapping):
        return frozenset((_hashable(key), _hashable(item)) for key, item in value.items())
    if isinstance(value, bytearray):
        return bytes(value)
    return canonical(value)
