"""The copy of a PostgreSQL table that is lost, in part or whole, is read anew. About 10 seconds."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from strandline.engine.session import Engine
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


@pytest.mark.parametrize("lost", ["table", "file"])
def test_a_copy_that_is_lost_is_named_and_read_anew(opened: Live, lost: str) -> None:
    opened.follow("vb", "SELECT id, x FROM src.b")
    opened.refresh()
    folder = Path(opened.source.node("a").path)
    if lost == "table":
        shutil.rmtree(folder)
    else:
        next(folder.glob("*.parquet")).unlink()
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
