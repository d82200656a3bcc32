"""A bank in PostgreSQL: writers move money between accounts in transactions, and the total never changes."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from strandline import Warehouse
from strandline.demo.server import SUPERUSER, PostgresServer
from tests.conftest import bag, rows_shown

ACCOUNTS = 500
OPENING = 100
TOTAL = ACCOUNTS * OPENING

VIEWS = {
    "total": "SELECT sum(balance) AS total, count(*) AS accounts FROM bank.accounts",
    "moved": (
        "SELECT a.owner, count(*) AS transfers, sum(t.amount) AS amount FROM bank.transfers AS t "
        "JOIN bank.accounts AS a ON a.id = t.payer GROUP BY a.owner"
    ),
    "rich": "SELECT id, owner, balance FROM bank.accounts WHERE balance > 100",
}
"""Each is SQL that PostgreSQL understands too, once ``bank.`` is a schema there."""


class Bank:
    """A server with the bank in it. Within the context writers write."""

    def __init__(self, folder: Path, seed: int = 1, *, pause: float = 0.003, writers: int = 2) -> None:
        self.server = PostgresServer.start(folder)
        self.dsn = self.server.dsn_for(SUPERUSER, self.server.password)
        self._seed = seed
        self._pause = pause
        self._count = writers
        self._stop = threading.Event()
        self._threads: list[threading.Thread] = []
        self.transfers = 0
        self._lock = threading.Lock()
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            connection.execute("CREATE SCHEMA bank")
            connection.execute(
                "CREATE TABLE bank.accounts (id int PRIMARY KEY, owner text NOT NULL, balance numeric(12,2) NOT NULL)"
            )
            connection.execute(
                "CREATE TABLE bank.transfers (id bigserial PRIMARY KEY, payer int, payee int, amount numeric(12,2))"
            )
            connection.execute(
                "INSERT INTO bank.accounts SELECT n, 'owner ' || n %% 20, %s FROM generate_series(1, %s) AS n",
                (OPENING, ACCOUNTS),
            )

    @property
    def declaration(self) -> dict[str, Any]:
        """The source, for ``add_source``; its connection string is in BANK_DSN."""
        return {"kind": "postgres", "dsn_env": "BANK_DSN", "schema": "bank", "tables": ["accounts", "transfers"]}

    def answer(self, view: str) -> list[tuple[Any, ...]]:
        """What PostgreSQL itself says."""
        with psycopg.connect(self.dsn) as connection:
            return connection.execute(VIEWS[view].encode()).fetchall()

    def transact(self, count: int) -> None:
        """So many transactions, one after the other."""
        chance = random.Random(f"{self._seed} {self.transfers}")
        with psycopg.connect(self.dsn) as connection:
            for _ in range(count):
                self._transaction(connection, chance)

    def __enter__(self) -> Self:
        self._stop.clear()
        self._threads = [threading.Thread(target=self._write, args=(n,), daemon=True) for n in range(self._count)]
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def close(self) -> None:
        """Stop the server."""
        self.server.stop()

    def _write(self, number: int) -> None:
        chance = random.Random(f"{self._seed} {number} {self.transfers}")
        while not self._stop.is_set():
            try:
                with psycopg.connect(self.dsn) as connection:
                    while not self._stop.is_set():
                        self._transaction(connection, chance)
                        time.sleep(self._pause)
            except psycopg.OperationalError:
                # The server is being killed: come back when it is there again.
                time.sleep(0.1)

    def _transaction(self, connection: psycopg.Connection, chance: random.Random) -> None:
        payer, payee = sorted(chance.sample(range(1, ACCOUNTS + 1), 2))
        amount = chance.randrange(1, 1000) / 100
        moves = chance.choice([1, 1, 1, 5])
        for _ in range(moves):
            connection.execute("UPDATE bank.accounts SET balance = balance - %s WHERE id = %s", (amount, payer))
            connection.execute("UPDATE bank.accounts SET balance = balance + %s WHERE id = %s", (amount, payee))
            connection.execute(
                "INSERT INTO bank.transfers (payer, payee, amount) VALUES (%s, %s, %s)", (payer, payee, amount)
            )
        if chance.random() < 0.1:
            connection.rollback()
            return
        connection.commit()
        with self._lock:
            self.transfers += moves


def money_held(warehouse: Warehouse, bank: Bank) -> int:
    """Views and copies equal what the bank holds, and no state shows half a transfer: the number of such states."""
    for name in VIEWS:
        assert bag(rows_shown(warehouse, name)) == bag(bank.answer(name)), name
        assert warehouse.verify(name).ok, name
    for table in warehouse.copies():
        assert warehouse.verify_source(table).ok, table
    states = [state.number for state in warehouse.states() if "total" in state.entries]
    for number in states:
        found = rows_shown(warehouse, "total", number)
        assert found == [(TOTAL, ACCOUNTS)], f"money was lost in state {number}: {found}"
    return len(states)
