from __future__ import annotations

import random
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg import Connection, IsolationLevel

from strandline.sources.postgres.slot import flushed, wait_until_flushed
from strandline.sources.postgres.visibility import Visible
from tests.sources.postgres.slots import Slot, slot_of

EPOCH = 1 << 32
LOWER = EPOCH - 1

near_an_epoch = st.builds(lambda epoch, off: max(3, epoch * EPOCH + off), st.integers(0, 5), st.integers(-50, 50))
xids = near_an_epoch | st.integers(3, (1 << 64) - 1)


@st.composite
def snapshots(draw: st.DrawFn) -> Visible:
    xmax = draw(xids)
    xmin = max(3, xmax - draw(st.integers(0, 60)))
    running = draw(st.sets(st.integers(xmin, xmax - 1))) if xmin < xmax else set()
    return Visible(xmin, xmax, frozenset(running))


def test_a_snapshot_is_read_as_the_server_writes_it() -> None:
    assert Visible.parse("10:20:10,14,15") == Visible(10, 20, frozenset({10, 14, 15}))
    assert Visible.parse("10:10:") == Visible(10, 10, frozenset())


@given(snapshots())
def test_text_gives_the_snapshot_back(snapshot: Visible) -> None:
    assert Visible.parse(str(snapshot)) == snapshot


@pytest.mark.parametrize("text", ["", "10:20", "10:20:,", "10:20:1,", "a:b:c", "10:20:1 ", "-1:2:"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a snapshot"):
        Visible.parse(text)


def test_a_snapshot_sees_what_ended_before_it() -> None:
    snapshot = Visible.parse("10:20:10,14,15")
    assert [xid for xid in range(3, 25) if snapshot.sees(xid)] == [*range(3, 10), 11, 12, 13, 16, 17, 18, 19]


def test_an_xid_of_the_log_belongs_to_the_epoch_that_is_nearest() -> None:
    snapshot = Visible(EPOCH - 2, EPOCH + 5, frozenset({EPOCH - 1, EPOCH + 3}))
    assert [snapshot.extend(xid) for xid in (LOWER, 3, 5)] == [EPOCH - 1, EPOCH + 3, EPOCH + 5]
    assert [snapshot.sees(xid) for xid in (LOWER - 1, LOWER, 3, 4, 5)] == [True, False, False, True, False]
    assert snapshot.sees(5 + (1 << 31))
    assert not snapshot.sees(4 + (1 << 31))


@given(snapshots(), st.integers(-60, 60) | st.integers(-(1 << 31), (1 << 31) - 1))
def test_the_lower_half_of_an_xid_is_enough(snapshot: Visible, distance: int) -> None:
    xid = snapshot.xmax + distance
    assert snapshot.extend(xid & LOWER) == xid
    ended = xid < snapshot.xmin or (xid < snapshot.xmax and xid not in snapshot.running)
    assert snapshot.sees(xid & LOWER) == ended


@pytest.fixture
def slot(database: str) -> Iterator[Slot]:
    with slot_of(database) as slot:
        slot.execute("CREATE TABLE seen (xid bigint)")
        yield slot


WRITE = "INSERT INTO seen SELECT pg_current_xact_id()::text::bigint"


def look(connection: Connection[Any]) -> tuple[Visible, set[int]]:
    """A snapshot, and the transactions whose rows it shows."""
    connection.isolation_level = IsolationLevel.REPEATABLE_READ
    with connection.transaction():
        (text,) = connection.execute("SELECT pg_current_snapshot()::text").fetchone() or ("",)
        return Visible.parse(text), {xid for (xid,) in connection.execute("SELECT xid FROM seen")}


def logged(slot: Slot) -> list[int]:
    """The xids of the log, in the order of commits."""
    return [begin.xid for begin, _, _ in slot.transactions()]


@pytest.mark.postgres
def test_a_snapshot_sees_exactly_the_transactions_whose_rows_it_shows(slot: Slot) -> None:
    deadline = time.monotonic() + 1.5

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with psycopg.connect(slot.dsn) as connection:
            while time.monotonic() < deadline:
                connection.execute(WRITE)
                if chance.random() < 0.2:
                    with connection.transaction():
                        connection.execute(WRITE)
                if chance.random() < 0.3:
                    time.sleep(chance.random() * 0.01)
                if chance.random() < 0.1:
                    connection.rollback()
                else:
                    connection.commit()

    def read(seed: int) -> list[tuple[Visible, set[int]]]:
        chance = random.Random(seed)
        looks = []
        with psycopg.connect(slot.dsn) as connection:
            while time.monotonic() < deadline:
                looks.append(look(connection))
                time.sleep(chance.random() * 0.01)
        return looks

    with ThreadPoolExecutor(8) as threads:
        writers = [threads.submit(write, seed) for seed in range(6)]
        readers = [threads.submit(read, seed) for seed in range(2)]
        for writer in writers:
            writer.result()
        looks = [one for reader in readers for one in reader.result()]

    transactions = logged(slot)
    assert len(transactions) > 100
    assert any(len(snapshot.running) > 2 for snapshot, _ in looks)
    for snapshot, rows in looks:
        assert [xid for xid in transactions if snapshot.sees(xid)] == [xid for xid in transactions if xid in rows]


@pytest.mark.postgres
def test_a_prepared_transaction_is_not_seen_before_it_is_committed(slot: Slot) -> None:
    slot.execute("BEGIN", WRITE, "PREPARE TRANSACTION 'one'")
    before = look(slot.reader)
    slot.execute("COMMIT PREPARED 'one'")
    after = look(slot.reader)
    (xid,) = logged(slot)
    assert (before[0].sees(xid), before[1]) == (False, set())
    assert (after[0].sees(xid), after[1]) == (True, {xid})


@contextmanager
def commits_that_wait(slot: Slot) -> Iterator[None]:
    """Commits wait for a standby that does not exist, with their records written and their rows not yet visible."""
    reload = "SELECT pg_reload_conf()"
    slot.execute("SET synchronous_commit = local")
    slot.execute("ALTER SYSTEM SET synchronous_standby_names = 'nobody'", reload)
    try:
        yield
    finally:
        slot.execute("ALTER SYSTEM RESET synchronous_standby_names", reload)


def write_until_it_waits(slot: Slot, other: Connection[Any], threads: ThreadPoolExecutor) -> Future[Any]:
    """The write whose commit waits; until the server's processes have read the setting, none does."""
    waiting = f"SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = {other.info.backend_pid}"
    deadline = time.monotonic() + 20
    write = threads.submit(other.execute, WRITE)
    while not slot.value(waiting):
        assert time.monotonic() < deadline
        time.sleep(0.01)
        if write.done():
            write = threads.submit(other.execute, WRITE)
    return write


@pytest.mark.postgres
def test_a_later_commit_can_be_seen_when_an_earlier_one_is_not(slot: Slot) -> None:
    with psycopg.connect(slot.dsn, autocommit=True) as other, ThreadPoolExecutor(1) as threads:
        with commits_that_wait(slot):
            write = write_until_it_waits(slot, other, threads)
            slot.execute(WRITE)
            snapshot, rows = look(slot.reader)
            *before, earlier, later = logged(slot)
        write.result(timeout=20)
        assert rows == {*before, later}
        assert (snapshot.sees(earlier), snapshot.sees(later)) == (False, True)
        snapshot, rows = look(slot.reader)
        assert rows == {*before, earlier, later}
        assert (snapshot.sees(earlier), snapshot.sees(later)) == (True, True)


@pytest.mark.postgres
def test_what_an_open_transaction_wrote_is_not_waited_for(database: str) -> None:
    """Its records may stay in the server's memory until somebody commits."""
    with psycopg.connect(database, autocommit=True) as ours, psycopg.connect(database) as theirs:
        ours.execute("CREATE TABLE written (x int)")
        for number in range(4):
            theirs.execute("INSERT INTO written VALUES (%s)", (number,))
            began = time.monotonic()
            end = wait_until_flushed(ours, patience=5)
            assert time.monotonic() - began < 3
            assert end <= flushed(ours)
