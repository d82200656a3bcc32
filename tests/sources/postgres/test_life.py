"""What a source goes through: its slot is lost, its server is down or another one, tables and views come and go."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.engine.session import Engine
from strandline.sources.protocol import LogEvent
from tests.conftest import bag
from tests.sources.postgres.live import ENVIRONMENT, Live, live, refused
from tests.warehouse.test_noop import REFRESH

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

SLOTS = "SELECT slot_name FROM pg_replication_slots WHERE database = current_database()"
WAL_STATUS = "SELECT wal_status FROM pg_replication_slots WHERE database = current_database()"


class Place:
    """A database with two tables, a lake with one, and a project that reads them."""

    def __init__(self, dsn: str, folder: Path, engine: Engine) -> None:
        self.dsn = dsn
        self.folder = folder
        self.engine = engine
        with psycopg.connect(dsn, autocommit=True) as connection:
            for table in ("a", "b"):
                connection.execute(f"CREATE TABLE {table} (id int PRIMARY KEY, x int, y text)".encode())
                connection.execute(f"INSERT INTO {table} SELECT i, i, 'y' FROM generate_series(1, 3) AS i".encode())
        self.add_to_lake(1)
        with self.open(tables=["a"], patience=1) as opened:
            opened.warehouse.add_source("lake", kind="delta", path=str(folder / "lake"))
            opened.follow("va", "SELECT id, x FROM src.a")
            opened.warehouse.sql("CREATE MATERIALIZED VIEW vl WITH NO DATA AS SELECT n FROM lake.t")
            opened.refresh()

    def add_to_lake(self, number: int) -> None:
        write_deltalake(str(self.folder / "lake" / "t"), pa.table({"n": [number]}), mode="append")

    @contextmanager
    def open(self, **config: Any) -> Iterator[Live]:
        with live(self.dsn, self.folder / "project", self.engine, **config) as opened:
            opened.shown = {name: f"SELECT id, x FROM {name[1:]}" for name in opened.warehouse.views() if name != "vl"}
            yield opened


@pytest.fixture(scope="module")
def place(own_database: str, engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Place:
    return Place(own_database, tmp_path_factory.mktemp("life"), engine)


@pytest.fixture
def opened(place: Place) -> Iterator[Live]:
    """The project, opened anew; only what tests share stays from one to the next."""
    with place.open() as opened:
        yield opened


def test_a_slot_that_somebody_dropped_or_read_is_made_anew(opened: Live) -> None:
    slot = opened.value(SLOTS)
    opened.execute("INSERT INTO a VALUES (10, 10, 'unseen')", f"SELECT pg_drop_replication_slot('{slot}')")
    report = opened.refresh()
    assert report.hidden["src.a"].reason.code == "SLOT_LOST"
    assert "was dropped" in report.hidden["src.a"].reason.text
    copied = report.hidden["src.a"]
    assert copied.rows_inserted == opened.value("SELECT count(*) FROM a") and 0 < copied.seconds <= report.seconds
    assert report.views["va"].strategy == "incremental"
    opened.assert_same()
    opened.execute(
        "UPDATE a SET x = 11 WHERE id = 10", f"SELECT pg_replication_slot_advance('{slot}', pg_current_wal_lsn())"
    )
    assert "somebody else has read slot" in opened.warehouse.plan("src.a").node("src.a").reason.text
    report = opened.refresh("src.a")
    assert report.hidden["src.a"].reason.code == "SLOT_LOST"
    opened.assert_copied("a")


def _outgrow_the_log(opened: Live) -> None:
    """Write log until a checkpoint gives the slot up; the checkpointer may learn of a new limit after some of them."""
    for _ in range(50):
        for _ in range(3):
            opened.execute(
                "SELECT pg_logical_emit_message(false, 'fill', repeat('x', 100000))", "SELECT pg_switch_wal()"
            )
        opened.execute("CHECKPOINT")
        if opened.value(WAL_STATUS) == "lost":
            return
        time.sleep(0.1)


def test_a_slot_whose_log_the_server_threw_away_is_made_anew(opened: Live) -> None:
    opened.execute("INSERT INTO a VALUES (20, 20, 'unseen')", "ALTER SYSTEM SET max_slot_wal_keep_size = '1MB'")
    opened.execute("SELECT pg_reload_conf()")
    _outgrow_the_log(opened)
    opened.execute("ALTER SYSTEM RESET max_slot_wal_keep_size", "SELECT pg_reload_conf()")
    assert opened.value(WAL_STATUS) == "lost"
    (log,) = opened.warehouse.status().logs
    assert log.problem is not None and "no longer keeps the log" in log.problem
    report = opened.refresh("src.a")
    assert report.hidden["src.a"].reason.code == "SLOT_LOST"
    opened.assert_copied("a")


def test_a_table_that_was_not_published_for_a_while_is_read_anew(opened: Live) -> None:
    (publication,) = (row[0] for row in opened.rows("SELECT pubname FROM pg_publication"))
    opened.execute(
        f'ALTER PUBLICATION "{publication}" DROP TABLE a',
        "INSERT INTO a VALUES (30, 30, 'unseen')",
        f'ALTER PUBLICATION "{publication}" ADD TABLE a',
    )
    report = opened.refresh("src.a")
    assert report.hidden["src.a"].reason.code == "SOURCE_TABLE_REWRITTEN"
    assert publication in report.hidden["src.a"].reason.text
    opened.assert_copied("a")


def test_a_table_is_not_rewritten_while_it_is_copied(opened: Live) -> None:
    """To a snapshot from before, it would look empty."""
    with opened.source.inner.baseline("a", ["id"]):
        opened.execute("SET lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            opened.execute("ALTER TABLE a ADD r float DEFAULT random()")
        opened.execute("INSERT INTO a VALUES (40, 40, 'while it is copied')")


def test_a_transaction_that_is_logged_before_it_is_visible_is_waited_for(place: Place, opened: Live) -> None:
    """It waits for a standby: a copy that was made meanwhile would not show it, and the log had given it already."""
    opened.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()")
    with ThreadPoolExecutor() as pool, psycopg.connect(place.dsn, autocommit=True) as waiting:
        done = pool.submit(waiting.execute, "INSERT INTO a VALUES (45, 45, 'waits for a standby')")
        while not opened.value("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"):
            time.sleep(0.01)
        report = opened.warehouse.refresh("src.a")
        opened.execute("ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
        done.result()
    assert "are in its log and not visible yet" in str(report.hidden["src.a"].problem)
    opened.refresh("src.a")
    opened.assert_copied("a")


def test_views_over_a_source_that_is_down_keep_their_state(place: Place, opened: Live, server: PostgresServer) -> None:
    opened.refresh()
    plan = opened.warehouse.plan()
    assert plan.empty
    opened.execute("INSERT INTO a VALUES (50, 50, 'before the crash')")
    plan = opened.warehouse.plan("va")
    server.kill()
    place.add_to_lake(2)
    shown = opened.read("va")
    # A plan that captures what it pinned cannot be carried out, and says so.
    planned = opened.warehouse.refresh(plan)
    assert "SOURCE_UNREACHABLE" in str(planned.views["va"].problem)
    report = opened.warehouse.refresh()
    assert str(report.views["va"].problem).startswith("SOURCE_UNREACHABLE: [SOURCE_UNREACHABLE] PostgreSQL at ")
    assert report.views["vl"].problem is None
    assert bag(opened.read("va")) == bag(shown)
    assert bag(opened.read("vl")) == bag([(1,), (2,)])
    status = opened.warehouse.status()
    assert {view.name: bool(view.problem) for view in status.views} == {"va": True, "vl": False}
    server.restart()
    with place.open() as again:
        assert again.refresh().views["va"].strategy == "incremental"
        again.assert_same()
        server.restart()
        again.writer = psycopg.connect(place.dsn, autocommit=True)
        again.execute("INSERT INTO a VALUES (51, 51, 'after a restart')")
        again.refresh("src.a")
        again.assert_copied("a")
        again.writer.close()


def test_a_server_that_dies_while_its_changes_are_taken_in_loses_none(
    place: Place, opened: Live, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    # More than is fetched at once.
    opened.execute("INSERT INTO a SELECT i, i, 'many' FROM generate_series(1000, 8000) AS i")
    captured = opened.source.inner.captured

    def dying(*arguments: Any) -> Iterator[LogEvent]:
        for number, event in enumerate(captured(*arguments)):
            if number == 1000:
                server.kill()
            yield event

    monkeypatch.setattr(opened.source.inner, "captured", dying)
    report = opened.warehouse.refresh("src.a")
    assert str(report.hidden["src.a"].problem).startswith("SOURCE_UNREACHABLE: [SOURCE_LOST]")
    server.restart()
    with place.open() as again:
        report = again.refresh("src.a")
        assert report.captured["src"].rows == {"a": {"inserted": 7001}}
        again.assert_copied("a")
        again.execute("DELETE FROM a WHERE id >= 1000")


def test_a_server_that_was_restored_or_is_another_is_read_anew(
    place: Place, server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.open() as opened:
        opened.refresh("src.a")
    server.stop()
    subprocess.run(["cp", "-a", str(server.folder), str(tmp_path / "backup")], check=True)
    server.restart()
    database = str(psycopg.conninfo.conninfo_to_dict(place.dsn)["dbname"])
    with place.open() as opened:
        opened.execute("INSERT INTO a VALUES (60, 60, 'after the backup')")
        opened.refresh("src.a")
        opened.source.inner.close()
        with PostgresServer.start(tmp_path / "backup") as restored:
            dsn = restored.dsn_for(SUPERUSER, restored.password, database)
            monkeypatch.setenv(ENVIRONMENT, dsn)
            report = opened.refresh("src.a")
            assert report.hidden["src.a"].reason.code == "SOURCE_REPLACED"
            with psycopg.connect(dsn, autocommit=True) as writer:
                held = opened.warehouse.sql("SELECT id FROM src.a").collect()
                assert bag(held) == bag(writer.execute("SELECT id FROM a").fetchall())
            opened.source.inner.close()
        with PostgresServer.start(tmp_path / "another") as another:
            monkeypatch.setenv(ENVIRONMENT, another.dsn_for(SUPERUSER, another.password))
            with psycopg.connect(os.environ[ENVIRONMENT], autocommit=True) as writer:
                writer.execute("CREATE TABLE a (id int PRIMARY KEY, x int, y text)")
            reason = opened.warehouse.plan("src.a").node("src.a").reason
            assert reason.code == "SOURCE_REPLACED" and "another database cluster" in reason.text
            opened.source.inner.close()
        monkeypatch.setenv(ENVIRONMENT, place.dsn)
        report = opened.refresh("src.a")
        assert report.hidden["src.a"].reason.code == "SOURCE_REPLACED"
        opened.assert_copied("a")


def test_a_plan_is_carried_out_as_it_is_or_not_at_all(opened: Live) -> None:
    opened.refresh()
    opened.execute("INSERT INTO a VALUES (70, 70, 'planned')")
    plan = opened.warehouse.plan("va")
    assert [step.kind for step in plan.steps] == ["capture", "compute", "install", "compute", "install", "publish"]
    opened.execute("INSERT INTO a VALUES (71, 71, 'later')")
    assert opened.refresh(plan).views["va"].rows_inserted == 1
    refused(lambda: opened.warehouse.refresh(plan), "STALE_PLAN")
    # What a plan does not see before it is carried out: a change that the log does not hold.
    opened.execute("ALTER TABLE a RENAME x TO w", "UPDATE a SET w = 72 WHERE id = 71", "ALTER TABLE a RENAME w TO x")
    plan = opened.warehouse.plan("va")
    report = opened.warehouse.refresh(plan)
    assert "STALE_PLAN" in str(report.views["va"].problem) and "src.a" in str(report.views["va"].problem)
    report = opened.refresh("va")
    assert report.hidden["src.a"].reason.code == "SOURCE_SCHEMA_CHANGED"
    opened.assert_same("va")


def test_a_table_that_cannot_be_followed_any_more_holds_back_only_its_views(opened: Live) -> None:
    opened.execute("CREATE TABLE heir () INHERITS (a)", "INSERT INTO a VALUES (75, 75, 'not to be found')")
    report = opened.warehouse.refresh()
    assert str(report.views["va"].problem).startswith("SOURCE_TABLE_GONE: src.a does not exist any more, or cannot be ")
    assert report.views["vl"].problem is None
    (found,) = [finding for finding in opened.warehouse.check_source("src") if not finding.ok]
    assert "shows the rows of tables that inherit from it (heir)" in found.what
    opened.execute("DROP TABLE heir")
    report = opened.refresh("va")
    assert report.hidden["src.a"].reason.text == "a was not to be found for a while"
    opened.assert_same("va")


def test_views_share_copies_and_sources_grow(opened: Live) -> None:
    warehouse = opened.warehouse
    report = opened.refresh("src.a", full=True)
    assert report.hidden["src.a"].reason.code == "REQUESTED"
    before = opened.source.node("a").record.id
    opened.follow("ids", "SELECT id FROM src.a")
    assert opened.source.node("a").record.id == before
    # One more column of a copied table: the copy is made anew, and what the other views show stays verifiable.
    opened.follow("wide", "SELECT id, y FROM src.a")
    assert [column.name for column in opened.source.node("a").visible] == ["id", "x", "y"]
    warehouse.alter_source("src", tables=["a", "b"])
    opened.follow("vb", "SELECT id, x FROM src.b")
    opened.refresh("src.a", "vb", "wide")
    opened.assert_same("vb", "wide")
    opened.assert_verified("va")
    opened.refresh("va", "ids")
    opened.assert_same("va", "ids")


def test_a_table_that_cannot_be_read_anew_does_not_hold_back_others(opened: Live) -> None:
    (publication,) = (row[0] for row in opened.rows("SELECT pubname FROM pg_publication"))
    opened.execute(f'ALTER PUBLICATION "{publication}" SET TABLE a (id), b', "UPDATE b SET x = 100")
    report = opened.warehouse.refresh("src.a", "vb")
    assert "PUBLICATION_PARTIAL" in str(report.hidden["src.a"].problem)
    assert report.views["vb"].strategy == "incremental"
    opened.assert_same("vb")
    opened.execute(f'ALTER PUBLICATION "{publication}" SET TABLE a, b')
    opened.refresh("src.a")
    opened.assert_copied("a")


def test_a_writer_that_is_not_done_is_waited_for_and_named(opened: Live) -> None:
    opened.execute("CREATE TABLE c (id int PRIMARY KEY)")
    opened.warehouse.alter_source("src", tables=["a", "b", "c"])
    opened.execute("BEGIN", "INSERT INTO c VALUES (1)", "PREPARE TRANSACTION 'half done'")
    said = refused(lambda: opened.warehouse.sql("CREATE MATERIALIZED VIEW vc AS SELECT id FROM src.c"), "SOURCE_BUSY")
    assert "prepared transaction 'half done' of postgres since" in said
    assert "vc" not in opened.warehouse.views()
    opened.execute("COMMIT PREPARED 'half done'")


def test_a_refresh_without_changes_starts_no_jvm(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT, place.dsn)
    with place.open() as opened:
        state = opened.refresh().state
    done = subprocess.run(
        [sys.executable, "-c", REFRESH, str(place.folder / "project")], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "strategies": ["none"],
        "state": state,
        "empty": True,
        "started": False,
        "children": [],
        "pyspark": False,
    }


def test_two_warehouses_follow_one_database(place: Place, opened: Live, tmp_path: Path) -> None:
    with live(place.dsn, tmp_path / "other", place.engine, tables=["a"], patience=5) as other:
        other.follow("only", "SELECT id FROM src.a")
        other.refresh()
        opened.execute("INSERT INTO a VALUES (80, 80, 'for both')")
        for each in (opened, other):
            assert each.refresh("src.a").hidden["src.a"].strategy == "incremental"
            each.assert_copied("a")
        assert len(opened.rows(SLOTS)) == 2
        assert "only" in refused(lambda: other.warehouse.remove_source("src"), "SOURCE_IN_USE")
        other.warehouse.drop("only")
        other.warehouse.remove_source("src")
        assert len(opened.rows(SLOTS)) == 1
        assert len(opened.rows("SELECT FROM pg_publication")) == 1


def test_a_source_that_no_view_reads_keeps_nothing_for_us(opened: Live) -> None:
    warehouse = opened.warehouse
    warehouse.drop("vb")
    assert [record.name for record in warehouse._catalog.views.all() if record.kind == "copy"] == ["src.a"]
    for name in ("wide", "ids", "va"):
        warehouse.drop(name)
    assert opened.rows(SLOTS) == []
    assert opened.rows("SELECT FROM pg_publication") == []
    assert warehouse.status().logs[0].retained_bytes is None
    opened.refresh()
    warehouse.remove_source("src")
    assert warehouse.sources() == ["lake"]
