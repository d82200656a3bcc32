"""Copies of PostgreSQL tables whose files are lost, and a server that goes while a table is read. About 20 seconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from strandline.demo.server import PostgresServer
from strandline.engine.session import Engine
from strandline.propagate.progress import Event
from tests.sources.postgres.live import Live, live

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


@pytest.fixture
def opened(database: str, tmp_path: Path, engine: Engine) -> Iterator[Live]:
    """A view over each of two tables, one of them filled."""
    with psycopg.connect(database, autocommit=True) as connection:
        for table in ("a", "b"):
            connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, x int)".encode())
            connection.execute(f"INSERT INTO {table} SELECT i, i FROM generate_series(1, 5) AS i".encode())
    with live(database, tmp_path / "project", engine, tables=["a", "b"], patience=1) as opened:
        opened.follow("va", "SELECT id, x FROM src.a")
        opened.refresh()
        yield opened


@pytest.mark.parametrize("whole", [False, True], ids=["a data file", "the whole table"])
def test_a_copy_that_is_lost_is_named_and_read_anew(opened: Live, whole: bool) -> None:
    opened.follow("vb", "SELECT id, x FROM src.b")
    opened.refresh()
    table = Path(opened.source.node("a").path)
    if whole:
        shutil.rmtree(table)
    else:
        for file in table.glob("*.parquet"):
            file.unlink()
    opened.execute("UPDATE a SET x = x + 1", "INSERT INTO b VALUES (6, 6)")
    report = opened.warehouse.refresh()
    problem = str(report.views["va"].problem)
    assert "src.a" in problem and "strandline refresh --full src.a" in problem, problem
    assert report.views["vb"].problem is None
    opened.refresh("src.a", full=True)
    opened.execute("DELETE FROM a WHERE id = 1")
    opened.refresh()
    opened.assert_same()
    opened.assert_copied("a", "b")
    opened.assert_verified()


def test_a_server_that_goes_while_a_table_is_read_holds_back_only_its_views(
    opened: Live, server: PostgresServer, database: str
) -> None:
    opened.follow("vb", "SELECT id, x FROM src.b")
    shown = opened.read("va")

    def kill(event: Event) -> None:
        if (event.what, event.step, event.subject) == ("started", "load", "src.b"):
            server.kill()

    report = opened.warehouse.refresh(watcher=kill)
    assert "SOURCE_" in str(report.views["vb"].problem), report.to_dict()
    assert opened.read("va") == shown
    server.restart()
    opened.writer = psycopg.connect(database, autocommit=True)
    opened.execute("INSERT INTO b VALUES (7, 7)")
    opened.refresh()
    opened.assert_same()
    opened.writer.close()
