"""Transactions: readers that see one state and never wait, and one writer at a time.

Writers take turns on both databases (an immediate transaction on SQLite, an advisory lock on PostgreSQL), so
that numbers drawn in a transaction become visible in their order, and a check of the lease at its start
holds until its end.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

from sqlalchemy import Connection, Engine, create_engine, event, func, select
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from sqlalchemy.orm import Session

from strandline.catalog.address import Address, unavailable
from strandline.catalog.damage import damaged_catalog, where_unreadable
from strandline.catalog.jsontext import Unreadable
from strandline.catalog.moments import in_utc, utc_now
from strandline.errors import CatalogError
from strandline.stopwatch import spending

BUSY_SECONDS = 30
CONNECT_SECONDS = 10
ANSWER_SECONDS = 20

WAIT_FOR_TURN = f"SET LOCAL lock_timeout = '{BUSY_SECONDS}s'"
# The first key is an arbitrary number of ours; the second keeps catalogs in different schemas apart.
TAKE_TURN = "SELECT pg_advisory_xact_lock(1400139374, hashtext(coalesce(current_schema(), '')))"
LOCK_NOT_AVAILABLE = "55P03"
DISK_FULL = "53100"


class Database:
    """The database behind a catalog."""

    def __init__(self, address: Address) -> None:
        self.address = address
        if address.is_sqlite:
            engine = create_engine(address.url, connect_args={"timeout": BUSY_SECONDS})
            event.listen(engine, "connect", _prepare_sqlite)
            self._readers = engine
        else:
            engine = _postgres_engine(address)
            self._readers = engine.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        self._writers = engine.execution_options(catalog_writer=True)
        event.listen(engine, "begin", self._begin)

    @contextmanager
    def reading(self) -> Iterator[Session]:
        """A transaction that sees one state of the catalog."""
        with spending("catalog"), self._explained(), Session(self._readers) as session, session.begin():
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A transaction that may change the catalog; committed as a whole, or not at all."""
        with spending("catalog"), self._explained(), Session(self._writers) as session, session.begin():
            session.connection()
            yield session

    def now(self, session: Session) -> datetime:
        """The time by the database's clock, the one clock that processes on different hosts share."""
        if self.address.is_sqlite:
            return utc_now()
        return in_utc(session.scalars(select(func.clock_timestamp())).one())

    def close(self) -> None:
        """Close all connections."""
        self._writers.dispose()

    def _begin(self, connection: Connection) -> None:
        writer = connection.get_execution_options().get("catalog_writer", False)
        if self.address.is_sqlite:
            # A transaction that began by reading cannot wait for its turn to write: SQLite refuses at once.
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writer else "BEGIN")
        elif writer:
            connection.exec_driver_sql(WAIT_FOR_TURN)
            connection.exec_driver_sql(TAKE_TURN)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Make catalog errors of database errors; a broken constraint is the caller's to explain."""
        try:
            yield
        except IntegrityError:
            raise
        except DBAPIError as error:
            # The chain is cut: the driver's error may show the connection string.
            if _is_busy(error.orig):
                raise self._busy() from None
            if _is_full(error.orig):
                raise self._full() from None
            if "malformed" in str(error.orig):
                told = f"{self.address} was cut short or overwritten ({error.orig})"
                raise damaged_catalog(told) from None
            reason = self.address.redacted(" ".join(str(error.orig).split()))
            raise unavailable(str(self.address), reason) from None
        except PoolTimeout:
            raise self._busy() from None
        except Unreadable as error:
            with Session(self._readers) as session:
                found = where_unreadable(session, error)
            raise found from None

    def _full(self) -> CatalogError:
        return CatalogError(
            "CATALOG_FULL",
            f"the catalog {self.address} cannot be written: its disk is full; what was recorded before is kept; make "
            "space there and run the command again, which carries on what was begun.",
        )

    def _busy(self) -> CatalogError:
        return CatalogError(
            "CATALOG_BUSY",
            f"the catalog {self.address} could not be written within {BUSY_SECONDS} s; another process is in "
            "the middle of a change; try again, and look for a process that hangs if this stays.",
        )


def _postgres_engine(address: Address) -> Engine:
    # A network that is gone is noticed by nobody who only waits for an answer.
    patience = {"connect_timeout": CONNECT_SECONDS, "tcp_user_timeout": 1000 * ANSWER_SECONDS}
    wait = {option: value for option, value in patience.items() if option not in address.url.query}
    try:
        # Connections of a process that mostly waits are cut by firewalls and restarts: try them before use.
        return create_engine(address.url, connect_args=wait, pool_pre_ping=True)
    except ModuleNotFoundError:
        raise CatalogError(
            "CATALOG_UNAVAILABLE",
            f"the catalog {address} cannot be used; psycopg, which talks to PostgreSQL, is not installed; "
            "install strandline[postgres].",
        ) from None


def _is_busy(error: BaseException | None) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        return "locked" in str(error)
    return getattr(error, "sqlstate", None) == LOCK_NOT_AVAILABLE


def _is_full(error: BaseException | None) -> bool:
    if isinstance(error, sqlite3.OperationalError):
        return "disk is full" in str(error)
    return getattr(error, "sqlstate", None) == DISK_FULL


def _prepare_sqlite(connection: sqlite3.Connection, record: object) -> None:
    # The driver's own idea of when a transaction begins is switched off: `Database._begin` says it.
    connection.isolation_level = None
    connection.execute("PRAGMA foreign_keys = ON")
    _use_write_ahead_log(connection)


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch to WAL. Where two processes do so at once, SQLite refuses one of them without waiting."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
            time.sleep(0.02)
