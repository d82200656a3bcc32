"""Where a held snapshot is in the log: what it shows was committed before its place."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.schema import Column
from strandline.sources.postgres.asking import PostgresSnapshot
from strandline.sources.postgres.pgoutput import Insert
from strandline.sources.postgres.visibility import Visible
from strandline.sources.questions import Question
from tests.sources.postgres.questions import source, table
from tests.sources.postgres.slots import slot_of
from tests.sources.postgres.test_visibility import WRITE, commits_that_wait, write_until_it_waits

pytestmark = pytest.mark.postgres


def test_what_a_snapshot_shows_was_committed_before_its_place(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writers commit all the time; one of them between taking the snapshot and asking in it."""
    monkeypatch.setenv("ASKED_DSN", database)
    stop = threading.Event()
    columns = (Column("xid", "bigint"),)
    question = Question((table("written", "w", columns),), (), ("w.xid",))
    write = "INSERT INTO written SELECT pg_current_xact_id()::text::bigint"

    def keep_writing() -> None:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("SET synchronous_commit = off")
            while not stop.is_set():
                connection.execute(write)
                time.sleep(0.002)

    with slot_of(database) as slot, psycopg.connect(database) as between, ThreadPoolExecutor() as threads:
        slot.execute("CREATE TABLE written (xid bigint)")
        asked = source()
        seen: list[tuple[PostgresSnapshot, set[int]]] = []
        writers = [threads.submit(keep_writing) for _ in range(3)]
        try:
            for number in range(30):
                if number % 3 == 0:
                    between.execute(write)
                with asked.hold() as held:
                    if number % 3 == 1:
                        between.commit()
                    seen.append((held, {row[0] for row in held.ask(question).rows}))
        finally:
            stop.set()
        between.commit()
        for each in writers:
            each.result()
        log = {
            begin.xid: commit.lsn
            for begin, changes, commit in slot.transactions(asked.end())
            if any(isinstance(change, Insert) for change in changes)
        }
        asked.close()
    assert len(log) > 30
    for held, xids in seen:
        visible = Visible.parse(held.seen)
        assert xids == {xid for xid in log if visible.sees(xid)}
        assert all(log[xid] < held.place for xid in xids)
    assert any(len(xids) < len(log) for _, xids in seen)


def test_a_commit_may_be_before_the_place_and_not_seen(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As while it waits for a synchronous standby; what is written later and waits for none is seen."""
    monkeypatch.setenv("ASKED_DSN", database)
    asked = source()
    question = Question((table("seen", "s", (Column("xid", "bigint"),)),), (), ("s.xid",))
    with (
        slot_of(database) as slot,
        psycopg.connect(database, autocommit=True) as other,
        ThreadPoolExecutor(1) as threads,
    ):
        slot.execute("CREATE TABLE seen (xid bigint)")
        with commits_that_wait(slot):
            write = write_until_it_waits(slot, other, threads)
            slot.execute(WRITE)
            with asked.hold() as held:
                rows = held.ask(question).rows
            log = {begin.xid: commit.lsn for begin, changes, commit in slot.transactions() if changes}
        write.result(timeout=20)
    asked.close()
    *before, earlier, later = log
    assert rows == SignedBag.of([(xid,) for xid in (*before, later)])
    assert [Visible.parse(held.seen).sees(xid) for xid in (earlier, later)] == [False, True]
    assert all(lsn < held.place for lsn in log.values())
