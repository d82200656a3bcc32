"""The warehouse lock: one holder, fenced, and taken over from the dead."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable

import pytest

from strandline.catalog import Catalog, Lease, NewVersion, StateEntry, Transaction
from strandline.catalog import lease as lease_module
from strandline.catalog import lock as lock_module
from strandline.errors import CatalogError

ELSEWHERE = "update warehouse_lock set host = 'other', machine = 'other'"


def test_tokens_grow_with_each_lease(catalog: Catalog) -> None:
    tokens = []
    for _ in range(3):
        with catalog.lock.acquire("refresh") as lease:
            tokens.append(lease.token)
    assert tokens == [1, 2, 3]


def test_a_held_lock_says_who_holds_it_and_what_to_do(catalog: Catalog, url: str) -> None:
    with catalog.lock.acquire("refresh of daily"), Catalog.open(url) as second:
        for other in (catalog, second):
            with pytest.raises(CatalogError) as raised:
                other.lock.acquire("maintain")
            assert raised.value.code == "WAREHOUSE_BUSY"
            assert f"process {os.getpid()} on host {socket.gethostname()}" in raised.value.message
            assert "for refresh of daily since 2" in raised.value.message
            assert "wait for it to finish, or end that process" in raised.value.message
    catalog.lock.acquire("maintain").release()


def test_a_waiting_process_gets_the_lock_when_it_falls_free(catalog: Catalog) -> None:
    first = catalog.lock.acquire("first")
    timer = threading.Timer(0.2, first.release)
    timer.start()
    with catalog.lock.acquire("second", wait_seconds=10) as second:
        assert second.token == first.token + 1
    timer.join()


def test_waiting_ends(catalog: Catalog) -> None:
    with catalog.lock.acquire("first"):
        begun = time.monotonic()
        with pytest.raises(CatalogError):
            catalog.lock.acquire("second", wait_seconds=0.3)
        assert 0.3 <= time.monotonic() - begun < 2


def test_closing_the_catalog_releases_its_lock(catalog: Catalog, url: str) -> None:
    with Catalog.open(url) as other:
        other.lock.acquire("refresh")
    catalog.lock.acquire("maintain").release()


def test_releasing_twice_does_not_free_the_next_holder(catalog: Catalog) -> None:
    first = catalog.lock.acquire("first")
    first.release()
    with catalog.lock.acquire("second"):
        first.release()
        with pytest.raises(CatalogError):
            catalog.lock.acquire("third")


def test_of_contending_processes_one_holds_at_a_time(
    catalog: Catalog, url: str, python: Callable[..., subprocess.Popen[str]]
) -> None:
    catalog.settings.put("counter", "0")
    code = """
from strandline.catalog import Catalog
with Catalog.open(sys.argv[1]) as catalog:
    for turn in range(10):
        with catalog.lock.acquire("count", wait_seconds=20):
            read = int(catalog.settings.get("counter"))
            catalog.settings.put("counter", str(read + 1))
        if turn == 0:
            print("counting", flush=True)
"""
    other = python(code, url)
    assert other.stdout is not None
    assert other.stdout.readline() == "counting\n"
    for _ in range(10):
        with catalog.lock.acquire("count", wait_seconds=20):
            read = int(catalog.settings.get("counter") or "")
            catalog.settings.put("counter", str(read + 1))
    assert other.communicate(timeout=20) == ("", "")
    assert catalog.settings.get("counter") == "20"


def test_a_process_that_reuses_the_pid_is_not_the_holder(catalog: Catalog, execute: Callable[..., None]) -> None:
    lost = catalog.lock.acquire("refresh")
    execute("update warehouse_lock set process_start = '1'")
    with catalog.lock.acquire("maintain") as lease:
        assert lease.token == lost.token + 1


def seconds_ago(url: str, seconds: int) -> str:
    """An SQL expression for a moment in the past."""
    if url.startswith("sqlite"):
        return f"strftime('%Y-%m-%d %H:%M:%f', 'now', '-{seconds} seconds')"
    return f"now() - interval '{seconds} seconds'"


def seconds_ahead(url: str, seconds: int) -> str:
    """An SQL expression for a moment to come."""
    if url.startswith("sqlite"):
        return f"strftime('%Y-%m-%d %H:%M:%f', 'now', '+{seconds} seconds')"
    return f"now() + interval '{seconds} seconds'"


@pytest.fixture
def short_watch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A holder that looks dead by the clock is watched for a moment only."""
    monkeypatch.setattr(lock_module, "WATCHED_SECONDS", 0.3)


@pytest.mark.usefixtures("short_watch")
def test_a_living_holder_keeps_its_lock_when_the_clock_jumps_ahead(
    catalog: Catalog, execute: Callable[..., None], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "HEARTBEAT_SECONDS", 0.05)
    with catalog.lock.acquire("refresh") as lease:
        # By the new clock the last heartbeat was a year ago; the next one comes in a moment.
        execute(f"{ELSEWHERE}, heartbeat_at = {seconds_ago(url, 365 * 86400)}")
        with Catalog.open(url) as other, pytest.raises(CatalogError, match="on host other holds it for refresh"):
            other.lock.acquire("maintain")
        assert not lease.lost


@pytest.mark.usefixtures("short_watch")
def test_a_dead_holder_does_not_keep_the_lock_when_the_clock_was_moved_back(
    catalog: Catalog, execute: Callable[..., None], url: str
) -> None:
    lost = catalog.lock.acquire("refresh")
    execute(f"{ELSEWHERE}, pid = 1, heartbeat_at = {seconds_ahead(url, 3600)}")
    with pytest.raises(CatalogError, match=r"host other .* last heartbeat 0 s ago"):
        catalog.lock.acquire("maintain")
    # A minute without a heartbeat passes, by the clock as it is now.
    execute(f"update warehouse_lock set heartbeat_at = {seconds_ago(url, 61)} where heartbeat_at <= {now(url)}")
    with catalog.lock.acquire("maintain") as lease:
        assert lease.token == lost.token + 1


def now(url: str) -> str:
    return seconds_ahead(url, 0)


@pytest.mark.usefixtures("short_watch")
def test_a_holder_on_another_host_is_trusted_while_its_heart_beats(
    catalog: Catalog, execute: Callable[..., None], url: str
) -> None:
    lost = catalog.lock.acquire("refresh")
    execute(f"{ELSEWHERE}, pid = 1, heartbeat_at = {seconds_ago(url, 50)}")
    with pytest.raises(CatalogError, match=r"host other .* last heartbeat 5\d s ago"):
        catalog.lock.acquire("maintain")
    execute(f"update warehouse_lock set heartbeat_at = {seconds_ago(url, 61)}")
    with catalog.lock.acquire("maintain") as lease:
        assert lease.token == lost.token + 1


def test_the_heart_beats(
    catalog: Catalog, execute: Callable[..., None], url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "HEARTBEAT_SECONDS", 0.05)
    with catalog.lock.acquire("refresh"):
        execute(f"update warehouse_lock set heartbeat_at = {seconds_ago(url, 30)}")
        deadline = time.monotonic() + 10
        beaten = False
        while not beaten and time.monotonic() < deadline:
            time.sleep(0.05)
            with pytest.raises(CatalogError) as raised:
                catalog.lock.acquire("maintain")
            beaten = "last heartbeat 0 s ago" in raised.value.message
        assert beaten


def test_a_lease_notices_that_it_was_taken_over(
    catalog: Catalog, execute: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "HEARTBEAT_SECONDS", 0.05)
    lease = catalog.lock.acquire("refresh")
    noticed = lease.lost
    assert not noticed
    execute("update warehouse_lock set token = token + 1")
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline and not (noticed := lease.lost):
        time.sleep(0.02)
    assert noticed


def test_a_holder_that_cannot_show_itself_alive_stops_what_it_does(
    catalog: Catalog, execute: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "HEARTBEAT_SECONDS", 0.05)
    monkeypatch.setattr(lease_module, "SILENT_SECONDS", 0.3)
    stopped = threading.Event()
    with catalog.lock.acquire("refresh") as lease:
        lease.when_lost(stopped.set)
        assert not stopped.wait(0.6), "its heart beats"
        execute("alter table warehouse_lock rename to out_of_reach")
        try:
            assert stopped.wait(5) and lease.lost
        finally:
            execute("alter table out_of_reach rename to warehouse_lock")


@pytest.fixture
def lost(catalog: Catalog, execute: Callable[..., None]) -> Lease:
    """A lease under which a refresh began and that another process has taken over."""
    lease = catalog.lock.acquire("refresh")
    catalog.refreshes.begin("r1", None, [("s1", "install", "daily"), ("s2", "publish", None)], lease)
    catalog.sources.put("shop", "postgres", {})
    catalog.leaves.put("shop", "orders", location=None, columns=(), key=(), position=None)
    execute("update warehouse_lock set process_start = '1'")
    catalog.lock.acquire("recovery")
    return lease


OPERATIONS: dict[str, Callable[[Catalog, Lease], object]] = {
    "begin": lambda catalog, lease: catalog.refreshes.begin("r2", None, [], lease),
    "step_started": lambda catalog, lease: catalog.refreshes.step_started("s1", lease),
    "step_done": lambda catalog, lease: catalog.refreshes.step_done("s1", {}, 1.0, lease, NewVersion(1, 1, {}, {})),
    "step_failed": lambda catalog, lease: catalog.refreshes.step_failed("s1", "?", lease),
    "step_skipped": lambda catalog, lease: catalog.refreshes.step_skipped("s1", "?", lease),
    "fail": lambda catalog, lease: catalog.refreshes.fail("r1", "?", lease),
    "abandon": lambda catalog, lease: catalog.refreshes.abandon("r1", lease),
    "publish": lambda catalog, lease: catalog.states.publish("r1", [StateEntry("daily", 1, 1, {})], lease),
    "append": lambda catalog, lease: catalog.unit_of_work.append("shop.orders", [Transaction(1)], upto=1, lease=lease),
    "record": lambda catalog, lease: catalog.versions.record(1, 1, {}, {}, "s1", lease=lease),
}


def test_no_operation_is_done_under_a_lost_lease(catalog: Catalog, lost: Lease) -> None:
    for operation in OPERATIONS.values():
        with pytest.raises(CatalogError, match="for recovery") as raised:
            operation(catalog, lost)
        assert raised.value.code == "LEASE_LOST"
    unfinished = catalog.refreshes.unfinished()
    assert unfinished is not None
    assert unfinished.id == "r1"
    assert [one.status for one in catalog.refreshes.steps("r1")] == ["pending", "pending"]
    assert catalog.states.newest() is None
    assert catalog.versions.baseline(1) is None
    assert catalog.unit_of_work.count() == 0


def test_a_released_lease_is_lost(catalog: Catalog) -> None:
    lease = catalog.lock.acquire("refresh")
    lease.release()
    with pytest.raises(CatalogError, match="nobody holds the lock now") as raised:
        catalog.states.publish(None, [], lease)
    assert raised.value.code == "LEASE_LOST"


def test_releasing_a_lost_lease_leaves_the_new_holder_alone(catalog: Catalog, lost: Lease) -> None:
    lost.release()
    with pytest.raises(CatalogError, match="for recovery"):
        catalog.lock.acquire("maintain")


def test_the_lock_of_a_killed_process_is_taken_over_at_once_and_its_refresh_continued(
    catalog: Catalog, url: str, python: Callable[..., subprocess.Popen[str]]
) -> None:
    code = """
from strandline.catalog import Catalog
catalog = Catalog.open(sys.argv[1])
lease = catalog.lock.acquire("a refresh elsewhere")
catalog.refreshes.begin("r1", {"n": 1}, [("s1", "install", "daily")], lease)
catalog.refreshes.step_started("s1", lease)
print(lease.token, flush=True)
sys.stdin.read()
"""
    holder = python(code, url)
    assert holder.stdout is not None
    token = int(holder.stdout.readline())
    with pytest.raises(CatalogError, match=f"process {holder.pid} .* a refresh elsewhere") as raised:
        catalog.lock.acquire("resume")
    assert raised.value.code == "WAREHOUSE_BUSY"
    os.kill(holder.pid, signal.SIGKILL)
    # Not waited for: what is left of the process is in the process table, and must not pass for alive.
    with catalog.lock.acquire("resume", wait_seconds=2) as lease:
        assert lease.token == token + 1
        unfinished = catalog.refreshes.unfinished()
        assert unfinished is not None
        assert (unfinished.plan, str(holder.pid) in unfinished.owner) == ({"n": 1}, True)
        catalog.refreshes.step_started("s1", lease)
        continued = catalog.refreshes.unfinished()
        assert continued is not None
        assert str(os.getpid()) in continued.owner
        catalog.refreshes.step_done("s1", {}, 1.0, lease)
        assert catalog.states.publish("r1", [], lease).number == 1
