"""Reaching a PostgreSQL server: who gets in, what is said to who does not, and what is waited out."""

from __future__ import annotations

import logging
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest

from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.errors import SourceError
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.connect import SESSION, connect
from strandline.sources.postgres.faults import explained, is_transient, refusal
from strandline.sources.postgres.jdbc import jdbc_options
from strandline.sources.postgres.retry import retrying
from tests.sources.postgres.tls import certificate, tls_in_front

pytestmark = pytest.mark.postgres

SECRET = "hunter2-Zaphod"


@pytest.fixture(autouse=True)
def no_settings_of_the_user(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in [name for name in os.environ if name.startswith("PG")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PGPASSFILE", str(tmp_path / "none"))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "none"))


@pytest.fixture
def dsn(server: PostgresServer) -> str:
    """The database that is always there, for tests that change nothing in it."""
    return server.dsn_for(SUPERUSER, server.password)


@pytest.fixture
def address(dsn: str, monkeypatch: pytest.MonkeyPatch) -> Address:
    monkeypatch.setenv("SHOP_DSN", dsn)
    return Address(dsn_env="SHOP_DSN")


@pytest.fixture
def app(dsn: str) -> Iterator[str]:
    """A role that may log in and nothing else."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE app LOGIN PASSWORD '{SECRET}'")
        yield "app"
        connection.execute("DROP ROLE app")


def name_of(database: str) -> str:
    return psycopg.conninfo.conninfo_to_dict(database)["dbname"]  # type: ignore[return-value]


def failure(action: Callable[[], object]) -> SourceError:
    with pytest.raises(SourceError) as raised:
        action()
    assert SECRET not in str(raised.value) + repr(raised.value)
    return raised.value


class TestAddress:
    def test_is_a_dsn_or_a_variable_and_not_both(self) -> None:
        assert failure(lambda: Address()).code == "SOURCE_ADDRESS"
        assert failure(lambda: Address(dsn="host=x", dsn_env="X")).code == "SOURCE_ADDRESS"

    @pytest.mark.parametrize(
        "dsn",
        [
            f"host=db user=app password={SECRET}",
            f"postgresql://app:{SECRET}@db/shop",
            f"postgresql://db/shop?user=app&password={SECRET}",
            f"host=db sslpassword={SECRET}",
        ],
    )
    def test_refuses_a_password_in_a_dsn(self, dsn: str) -> None:
        error = failure(lambda: Address(dsn=dsn))
        assert error.code == "SOURCE_PASSWORD_IN_DSN"
        assert "dsn_env" in error.message

    @pytest.mark.parametrize(
        "dsn",
        [
            f"host db password {SECRET}",
            f"postgresql://app:{SECRET}/x@db/shop",
            f"postgresql://app:1234/{SECRET}@db/shop",
            f"postgresql://app@{SECRET}@db/shop",
            f"nonsense=1 password={SECRET}",
            f"host=db port={SECRET}",
        ],
    )
    def test_does_not_repeat_what_it_cannot_read(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        assert failure(lambda: Address(dsn=dsn)).code == "SOURCE_ADDRESS"
        monkeypatch.setenv("SHOP_DSN", dsn)
        address = Address(dsn_env="SHOP_DSN")
        assert failure(lambda: connect(address)).code == "SOURCE_ADDRESS"
        assert str(address) == "$SHOP_DSN"

    def test_says_which_variable_is_not_set(self) -> None:
        address = Address(dsn_env="SHOP_DSN")
        error = failure(lambda: connect(address))
        assert error.code == "SOURCE_DSN_UNSET"
        assert "SHOP_DSN" in error.message

    def test_wants_the_name_of_a_variable_not_its_value(self) -> None:
        assert failure(lambda: Address(dsn_env=f"postgresql://app:{SECRET}@db/shop")).code == "SOURCE_ADDRESS"

    def test_is_shown_without_its_password(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_DSN", f"postgresql://app:{SECRET}@db:5433/shop?sslmode=require")
        address = Address(dsn_env="SHOP_DSN")
        assert str(address) == "app@db:5433/shop"
        assert SECRET not in repr(address)
        assert address.redacted(f"said {SECRET}") == "said ***"
        assert str(Address(dsn="host=a,b user=app dbname=shop")) == "app@a:5432,b:5432/shop"
        assert str(Address(dsn="service=shop")) == "service shop"


class TestLogin:
    def test_wrong_password(self, server: PostgresServer, app: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_DSN", server.dsn_for(app, SECRET + "x"))
        error = failure(lambda: retrying(lambda: connect(Address(dsn_env="SHOP_DSN")), sleep=_never))
        assert error.code == "SOURCE_LOGIN"
        assert f'password authentication failed for user "{app}"' in error.message

    def test_no_password(self, server: PostgresServer) -> None:
        error = failure(lambda: connect(Address(dsn=server.dsn)))
        assert (error.code, "no password supplied" in error.message) == ("SOURCE_LOGIN", True)

    def test_unknown_role(self, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_DSN", server.dsn_for("nobody_knows", SECRET))
        error = failure(lambda: connect(Address(dsn_env="SHOP_DSN")))
        assert (error.code, "nobody_knows" in error.message) == ("SOURCE_LOGIN", True)

    def test_role_without_login(
        self, server: PostgresServer, app: str, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("ALTER ROLE app NOLOGIN")
        monkeypatch.setenv("SHOP_DSN", server.dsn_for(app, SECRET))
        assert failure(lambda: connect(Address(dsn_env="SHOP_DSN"))).code == "SOURCE_LOGIN"

    def test_unknown_database(self, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_DSN", server.dsn_for(SUPERUSER, server.password, "no_such_place"))
        error = failure(lambda: connect(Address(dsn_env="SHOP_DSN")))
        assert (error.code, "no_such_place" in error.message) == ("SOURCE_DATABASE", True)
        assert not is_transient(error)

    def test_database_that_one_may_not_connect_to(
        self, server: PostgresServer, app: str, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with psycopg.connect(database) as connection:
            connection.execute(f"REVOKE CONNECT ON DATABASE {name_of(database)} FROM PUBLIC")
        monkeypatch.setenv("SHOP_DSN", server.dsn_for(app, SECRET, name_of(database)))
        error = failure(lambda: connect(Address(dsn_env="SHOP_DSN")))
        assert (error.code, name_of(database) in error.message) == ("SOURCE_PRIVILEGE", True)

    def test_role_with_all_its_connections_in_use(
        self, server: PostgresServer, app: str, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with psycopg.connect(dsn) as connection:
            connection.execute("ALTER ROLE app CONNECTION LIMIT 0")
        monkeypatch.setenv("SHOP_DSN", server.dsn_for(app, SECRET))
        error = failure(lambda: connect(Address(dsn_env="SHOP_DSN")))
        assert (error.code, is_transient(error)) == ("SOURCE_BUSY", True)

    def test_nobody_listens(self) -> None:
        port = _free_port()
        error = failure(lambda: connect(Address(dsn=f"host=127.0.0.1 port={port} user=app dbname=shop")))
        assert error.code == "SOURCE_UNREACHABLE"
        assert f"app@127.0.0.1:{port}/shop" in error.message
        assert "Connection refused" in error.message
        assert is_transient(error)

    def test_unknown_host(self) -> None:
        error = failure(lambda: connect(Address(dsn="host=no-such-host.invalid dbname=shop")))
        assert (error.code, "no-such-host.invalid" in error.message) == ("SOURCE_UNREACHABLE", True)

    def test_someone_who_never_answers(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as silent:
            address = Address(dsn=f"host=127.0.0.1 port={silent.getsockname()[1]} connect_timeout=2")
            error = failure(lambda: connect(address))
        assert (error.code, "timeout" in error.message) == ("SOURCE_UNREACHABLE", True)

    def test_several_hosts_that_all_fail(self) -> None:
        ports = f"{_free_port()},{_free_port()}"
        error = failure(lambda: connect(Address(dsn=f"host=127.0.0.1,127.0.0.1 port={ports}")))
        assert error.code == "SOURCE_UNREACHABLE"
        assert error.message.count("Connection refused") == 2

    def test_unknown_service(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "services").write_text("[other]\nhost=db\n")
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        error = failure(lambda: connect(Address(dsn="service=shop")))
        assert (error.code, '"shop" not found' in error.message) == ("SOURCE_ADDRESS", True)

    def test_a_refusal_in_another_language_is_passed_on(self, address: Address) -> None:
        said = 'connection failed: connection to server at "db", port 5 failed: SCHWERWIEGEND:  falsches Kennwort'
        error = refusal(psycopg.OperationalError(said), address)
        assert (error.code, "falsches Kennwort" in error.message) == ("SOURCE_REFUSED", True)


class TestSession:
    def test_is_the_same_whatever_the_database_prefers(self, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_DSN", database)
        address = Address(dsn_env="SHOP_DSN")
        with psycopg.connect(database, autocommit=True) as connection:
            for setting in ("TimeZone = 'Asia/Kolkata'", "DateStyle = 'SQL, DMY'", "bytea_output = 'escape'"):
                connection.execute(f"ALTER DATABASE {name_of(database)} SET {setting}")
        with connect(address) as connection:
            found = {name: connection.execute(f"SHOW {name}").fetchone() for name in SESSION}
            assert found == {name: (value,) for name, value in SESSION.items()}
            assert connection.execute("SHOW application_name").fetchone() == ("strandline",)
            assert connection.info.encoding == "utf-8"

    def test_leaves_transactions_to_whom_they_concern(self, address: Address) -> None:
        with connect(address) as connection:
            assert connection.autocommit
        with connect(address, autocommit=False) as connection:
            assert not connection.autocommit
            assert connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE

    def test_can_speak_the_replication_protocol(self, address: Address) -> None:
        with connect(address, replication="database") as connection:
            row = connection.execute("IDENTIFY_SYSTEM").fetchone()
            assert row is not None and row[3] == "postgres"

    def test_the_address_names_its_application(self, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_DSN", f"{dsn} application_name=nightly")
        with connect(Address(dsn_env="SHOP_DSN")) as connection:
            assert connection.execute("SHOW application_name").fetchone() == ("nightly",)

    def test_password_file_and_service_file(
        self, server: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        _passfile(tmp_path / "pass", server, monkeypatch)
        with connect(Address(dsn=server.dsn)) as connection:
            assert connection.execute("SELECT 1").fetchone() == (1,)
        service = f"[shop]\nhost=127.0.0.1\nport={server.port}\nuser={SUPERUSER}\ndbname=postgres\n"
        (tmp_path / "services").write_text(service)
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        options = jdbc_options(Address(dsn="service=shop"))
        assert options["url"].startswith(f"jdbc:postgresql://127.0.0.1:{server.port}/postgres?")
        assert (options["user"], options["password"]) == (SUPERUSER, server.password)


class TestFaults:
    def test_a_missing_privilege_names_the_object(
        self, server: PostgresServer, app: str, database: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with psycopg.connect(database) as connection:
            connection.execute("CREATE TABLE orders (id int)")
        monkeypatch.setenv("SHOP_DSN", server.dsn_for(app, SECRET, name_of(database)))
        address = Address(dsn_env="SHOP_DSN")
        with connect(address) as connection:
            error = failure(lambda: _run(address, connection, "SELECT * FROM orders"))
        assert (error.code, "table orders" in error.message) == ("SOURCE_PRIVILEGE", True)

    @pytest.mark.parametrize(
        ("statement", "code"),
        [
            ("SET statement_timeout = '1ms'; SELECT pg_sleep(1)", "SOURCE_CANCELLED"),
            ("BEGIN READ ONLY; CREATE TABLE t (i int)", "SOURCE_READ_ONLY"),
            ("SELECT pg_terminate_backend(pg_backend_pid())", "SOURCE_LOST"),
            ("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '40001'; END $$", "SOURCE_BUSY"),
            ("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '55006'; END $$", "SOURCE_BUSY"),
            ("DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '08006'; END $$", "SOURCE_LOST"),
            ("SELECT * FROM no_such_table", "SOURCE_FAILED"),
        ],
    )
    def test_have_stable_codes(self, address: Address, statement: str, code: str) -> None:
        with closing(connect(address)) as connection:
            error = failure(lambda: _run(address, connection, statement))
        assert error.code == code
        assert is_transient(error) == (code in ("SOURCE_LOST", "SOURCE_BUSY"))

    def test_a_closed_connection_is_a_lost_one(self, address: Address) -> None:
        connection = connect(address)
        connection.close()
        assert failure(lambda: _run(address, connection, "SELECT 1")).code == "SOURCE_LOST"

    def test_a_mistake_of_the_caller_stays_what_it_is(self, address: Address) -> None:
        with connect(address) as connection, pytest.raises(psycopg.ProgrammingError), explained(address):
            connection.execute("SELECT %s", ())

    def test_a_wrong_password_is_not_transient_from_the_driver_either(self, server: PostgresServer) -> None:
        with pytest.raises(psycopg.OperationalError) as raised:
            psycopg.connect(server.dsn_for(SUPERUSER, SECRET))
        assert not is_transient(raised.value)


class TestRetrying:
    def test_waits_out_a_restart(self, server: PostgresServer, address: Address) -> None:
        heard: list[str] = []
        held = [connect(address)]
        server.restart()

        def ask() -> object:
            connection = held.pop() if held else connect(address)
            with connection, explained(address):
                return connection.execute("SELECT 1").fetchone()

        assert retrying(ask, on_retry=lambda error, _: heard.append(_code(error))) == (1,)
        assert heard == ["SOURCE_LOST"]

    def test_waits_out_a_crash(self, server: PostgresServer, address: Address) -> None:
        heard: set[str] = set()
        server.stop("immediate")
        later = threading.Timer(0.4, server.restart)
        later.start()
        try:
            with retrying(lambda: connect(address), on_retry=lambda error, _: heard.add(_code(error))) as connection:
                assert connection.execute("SELECT 1").fetchone() == (1,)
        finally:
            later.join()
        assert "SOURCE_UNREACHABLE" in heard
        assert heard <= {"SOURCE_UNREACHABLE", "SOURCE_LOST"}

    def test_a_server_that_shuts_down_is_lost_for_now(self, server: PostgresServer, address: Address) -> None:
        last = connect(address)
        stopping = threading.Thread(target=server.stop, args=("smart",))
        stopping.start()
        try:
            error = failure(lambda: retrying(_until_refused(address), patience=0))
        finally:
            last.close()
            stopping.join()
            server.restart()
        assert error.code == "SOURCE_LOST"
        assert "shutting down" in error.message

    def test_doubles_its_waits_up_to_a_limit_and_gives_up(self) -> None:
        time_now, waits = _fake_time()
        error = failure(
            lambda: retrying(_unreachable, patience=20, clock=lambda: time_now[0], sleep=waits, jitter=lambda: 1.0)
        )
        assert time_now[1:] == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5, 5, 3.7])
        assert (error.code, "Tried 10 times in 20 s" in error.message) == ("SOURCE_UNREACHABLE", True)

    def test_spreads_its_waits(self) -> None:
        time_now, waits = _fake_time()
        failure(
            lambda: retrying(_unreachable, patience=0.5, clock=lambda: time_now[0], sleep=waits, jitter=lambda: 0.0)
        )
        assert time_now[1:] == pytest.approx([0.05, 0.1, 0.2, 0.15])

    def test_without_patience_tries_once(self) -> None:
        assert failure(lambda: retrying(_unreachable, patience=0, sleep=_never)).message == "gone."

    @pytest.mark.parametrize("error", [SourceError("SOURCE_LOGIN", "no."), KeyError("bug"), psycopg.DataError()])
    def test_does_not_repeat_what_will_not_pass(self, error: Exception) -> None:
        def fail() -> None:
            raise error

        with pytest.raises(type(error)) as raised:
            retrying(fail, sleep=_never)
        assert raised.value is error


class TestJdbc:
    def test_reaches_the_same_place(self, server: PostgresServer, address: Address) -> None:
        options = jdbc_options(address)
        assert set(options) == {"url", "driver", "user", "password", "sessionInitStatement"}
        url = urlsplit(options["url"].removeprefix("jdbc:"))
        assert (url.hostname, url.port, url.path) == ("127.0.0.1", server.port, "/postgres")
        assert server.password not in options["url"]
        assert "SET TimeZone = 'UTC'" in options["sessionInitStatement"]
        assert parse_qs(url.query) == {
            "ApplicationName": ["strandline"],
            "tcpKeepAlive": ["true"],
            "connectTimeout": ["10"],
        }

    def test_passes_on_what_has_a_counterpart(
        self, server: PostgresServer, dsn: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        more = "target_session_attrs=read-write application_name=nightly connect_timeout=7 load_balance_hosts=random"
        more += " host=127.0.0.1,localhost sslmode=disable options='-c statement_timeout=1min'"
        monkeypatch.setenv("SHOP_DSN", f"{dsn} {more}")
        url = urlsplit(jdbc_options(Address(dsn_env="SHOP_DSN"))["url"].removeprefix("jdbc:"))
        assert url.netloc == f"127.0.0.1:{server.port},localhost:{server.port}"
        assert parse_qs(url.query) == {
            "ApplicationName": ["nightly"],
            "tcpKeepAlive": ["true"],
            "connectTimeout": ["7"],
            "sslmode": ["disable"],
            "options": ["-c statement_timeout=1min"],
            "targetServerType": ["primary"],
            "loadBalanceHosts": ["true"],
        }

    def test_needs_tcp(self, server: PostgresServer, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
        with _socket_folder() as folder:
            server.restart(settings={"unix_socket_directories": str(folder)})
            try:
                monkeypatch.setenv("SHOP_DSN", f"{dsn} host={folder}")
                error = failure(lambda: jdbc_options(Address(dsn_env="SHOP_DSN")))
            finally:
                server.restart(settings={"unix_socket_directories": ""})
        assert error.code == "SOURCE_NEEDS_TCP"


@pytest.mark.skipif(shutil.which("openssl") is None, reason="makes certificates with openssl")
class TestTls:
    @pytest.fixture
    def root(self, tmp_path: Path) -> Path:
        """The certificate of a server, and its root."""
        return certificate(tmp_path, "server")

    @pytest.fixture
    def secure(self, server: PostgresServer, root: Path) -> Iterator[str]:
        with tls_in_front(server.port, root) as port:
            yield f"{server.dsn_for(SUPERUSER, server.password)} port={port}"

    def test_with_the_right_root(
        self, secure: str, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        monkeypatch.setenv("SHOP_DSN", f"{secure} sslmode=verify-ca sslrootcert={root}")
        with connect(Address(dsn_env="SHOP_DSN")) as connection:
            assert connection.pgconn.ssl_in_use
        url = jdbc_options(Address(dsn_env="SHOP_DSN"))["url"]
        query = parse_qs(urlsplit(url.removeprefix("jdbc:")).query)
        assert (query["sslmode"], query["sslrootcert"]) == (["verify-ca"], [str(root)])

    def test_with_another_root(self, secure: str, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        other = certificate(tmp_path, "other")
        monkeypatch.setenv("SHOP_DSN", f"{secure} sslmode=verify-ca sslrootcert={other}")
        error = failure(lambda: connect(Address(dsn_env="SHOP_DSN")))
        assert (error.code, "certificate verify failed" in error.message) == ("SOURCE_TLS", True)
        assert not is_transient(error)

    def test_without_the_root(self, secure: str, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SHOP_DSN", f"{secure} sslmode=verify-full sslrootcert=/no/such.crt")
        assert failure(lambda: connect(Address(dsn_env="SHOP_DSN"))).code == "SOURCE_TLS"

    def test_with_a_key_of_ones_own(
        self, secure: str, root: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        mine = certificate(tmp_path, "mine")
        key = mine.with_suffix(".key")
        monkeypatch.setenv("SHOP_DSN", f"{secure} sslmode=require sslcert={mine} sslkey={key}")
        address = Address(dsn_env="SHOP_DSN")
        error = failure(lambda: jdbc_options(address))
        assert (error.code, "openssl pkcs8" in error.message) == ("SOURCE_KEY_FORMAT", True)
        key.with_suffix(".pk8").touch()
        query = parse_qs(urlsplit(jdbc_options(address)["url"].removeprefix("jdbc:")).query)
        assert query["sslkey"] == [str(tmp_path / "mine.pk8")]


def test_a_server_that_does_not_speak_tls(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_DSN", f"{dsn} sslmode=require")
    error = failure(lambda: connect(Address(dsn_env="SHOP_DSN")))
    assert (error.code, "does not support SSL" in error.message) == ("SOURCE_TLS", True)


def test_nothing_is_logged_of_a_password(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("SHOP_DSN", server.dsn_for(SUPERUSER, SECRET))
    failure(lambda: connect(Address(dsn_env="SHOP_DSN")))
    assert SECRET not in caplog.text


def _run(address: Address, connection: psycopg.Connection, statement: str) -> None:
    with explained(address):
        connection.execute(statement.encode())


def _unreachable() -> None:
    raise SourceError("SOURCE_UNREACHABLE", "gone.")


def _never(seconds: float) -> None:
    raise AssertionError("it waited")


def _fake_time() -> tuple[list[float], Callable[[float], None]]:
    """A clock that only sleeping moves: the time first, then each wait."""
    times = [0.0]

    def sleep(seconds: float) -> None:
        times[0] += seconds
        times.append(seconds)

    return times, sleep


def _until_refused(address: Address) -> Callable[[], None]:
    def attempt() -> None:
        for _ in range(200):
            connect(address).close()
            time.sleep(0.01)

    return attempt


def _code(error: Exception) -> str:
    assert isinstance(error, SourceError)
    return error.code


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _passfile(file: Path, server: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text(f"127.0.0.1:{server.port}:*:{SUPERUSER}:{server.password}\n")
    file.chmod(0o600)
    monkeypatch.setenv("PGPASSFILE", str(file))


@contextmanager
def _socket_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket, and that any user may write to."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        os.chmod(name, 0o777)
        yield Path(name)
