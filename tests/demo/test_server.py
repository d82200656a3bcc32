"""A PostgreSQL server of our own: what it is good for, and that nothing of it stays."""

from __future__ import annotations

import importlib.util
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest

from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.errors import SourceError

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    with PostgresServer.start(tmp_path_factory.mktemp("a server")) as server:
        yield server


def connected(server: PostgresServer) -> psycopg.Connection:
    return psycopg.connect(server.dsn_for(SUPERUSER, server.password), autocommit=True)


def test_it_is_a_source_of_changes(server: PostgresServer) -> None:
    with connected(server) as connection:
        assert connection.info.server_version >= 180000
        assert connection.execute("SHOW wal_level").fetchone() == ("logical",)
        slot = connection.execute("SELECT slot_name FROM pg_create_logical_replication_slot('s', 'pgoutput')")
        assert slot.fetchone() == ("s",)
        connection.execute("SELECT pg_drop_replication_slot('s')")


def test_everyone_needs_a_password(server: PostgresServer) -> None:
    assert server.password not in server.dsn + repr(server)
    for dsn in (server.dsn, server.dsn_for(SUPERUSER, "wrong"), server.dsn_for("nobody", server.password)):
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(dsn)


def test_odd_names_and_passwords(server: PostgresServer) -> None:
    with connected(server) as connection:
        connection.execute("""CREATE ROLE "o' \\b" LOGIN PASSWORD 'a "b\\ =''c'""")
        connection.execute("""CREATE DATABASE "my =db" """)
    with psycopg.connect(server.dsn_for("o' \\b", "a \"b\\ ='c", "my =db")) as connection:
        assert connection.execute("SELECT current_user, current_database()").fetchone() == ("o' \\b", "my =db")


def test_it_keeps_its_port_and_data_over_restarts_and_crashes(server: PostgresServer) -> None:
    port = server.port
    with connected(server) as connection:
        connection.execute("CREATE TABLE kept (n int)")
        connection.execute("INSERT INTO kept VALUES (1)")
    server.restart()
    with connected(server) as connection:
        connection.execute("INSERT INTO kept VALUES (2)")
        server.kill()
        assert not server.running
    server.restart(settings={"work_mem": "7MB"})
    assert (server.running, server.port) == (True, port)
    with connected(server) as connection:
        assert connection.execute("SELECT n FROM kept ORDER BY n").fetchall() == [(1,), (2,)]
        assert connection.execute("SHOW work_mem").fetchone() == ("7MB",)


def test_a_folder_can_be_taken_up_again(tmp_path: Path) -> None:
    with PostgresServer.start(tmp_path / "new" / "place") as first, connected(first) as connection:
        connection.execute("CREATE TABLE kept ()")
    assert not first.running
    with PostgresServer.start(tmp_path / "new" / "place") as second, connected(second) as connection:
        assert connection.execute("SELECT count(*) FROM kept").fetchone() == (0,)
        with pytest.raises(SourceError, match=r"POSTGRES_NOT_STARTED.*postmaster.pid"):
            PostgresServer.start(tmp_path / "new" / "place")
        assert second.running


def test_a_server_that_cannot_start_says_why(server: PostgresServer) -> None:
    try:
        with pytest.raises(SourceError, match=r"POSTGRES_NOT_STARTED.*wal_level.*sideways"):
            server.restart(settings={"wal_level": "sideways"})
        assert not server.running
    finally:
        server.restart(settings={"wal_level": "logical"})


def test_a_port_that_was_taken_meanwhile(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other, socket.create_server(("127.0.0.1", 0)) as free:
        ports = [other.getsockname()[1], free.getsockname()[1]]
        free.close()
        monkeypatch.setattr("strandline.demo.server._free_port", iter(ports).__next__)
        with PostgresServer.start(tmp_path) as server:
            assert server.port == ports[1]


def test_without_its_wheel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SourceError, match=r"POSTGRES_MISSING.*pip install \"strandline\[demo\]\""):
        PostgresServer.start(tmp_path)


PROGRAM = """
import signal, sys, time
from pathlib import Path
from strandline.demo.server import PostgresServer

# Whoever runs the tests in the background may have switched it off.
signal.signal(signal.SIGINT, signal.default_int_handler)
server = PostgresServer.start(Path(sys.argv[1]))
print((server.data / "postmaster.pid").read_text().split()[0], flush=True)
if sys.argv[2] != "end":
    time.sleep(60)
"""


@pytest.mark.parametrize("how", ["end", signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_it_ends_with_the_process_that_started_it(tmp_path: Path, how: str | signal.Signals) -> None:
    command = [sys.executable, "-c", PROGRAM, str(tmp_path), str(how)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as program:
        assert program.stdout is not None
        postmaster = int(program.stdout.readline())
        if isinstance(how, signal.Signals):
            program.send_signal(how)
    deadline = time.monotonic() + 10
    while psutil.pid_exists(postmaster) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not psutil.pid_exists(postmaster)
    assert not (tmp_path / "data" / "postmaster.pid").exists()
