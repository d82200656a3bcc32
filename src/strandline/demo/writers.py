"""Writers: threads that change the shop's database, each with a connection of its own, whatever we are doing."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from random import Random
from types import TracebackType
from typing import Self

import psycopg

from strandline.demo.shop import Shop, place_order

Act = Callable[[psycopg.Connection, Random], None]
"""One transaction."""

TELLERS = 2

TELLER_PAUSE = 0.12
"""Seconds, on average, from one transaction of a teller to the next."""

CLERK_PAUSE = 0.3

GIVEN_UP = 0.08
"""The share of transfers that are rolled back half-way."""

STOP_SECONDS = 30


class Writers:
    """Two tellers, who transfer money between accounts, and a clerk, who takes orders and changes their status.

    They work from when the context is entered until it is left, or until :meth:`stop`.
    """

    def __init__(self, shop: Shop) -> None:
        self._dsn = shop.dsn
        self._accounts = shop.accounts
        self._customers = shop.customers
        self._orders = shop.orders
        self._stop = threading.Event()
        self._counts: Counter[str] = Counter()
        self._placed: list[int] = []
        self._lock = threading.Lock()
        self.problem: str | None = None
        """Why a writer stopped working, if one did."""
        works: list[tuple[str, Act, float]] = [("teller", self._transfer, TELLER_PAUSE)] * TELLERS
        works.append(("clerk", self._serve, CLERK_PAUSE))
        self._threads = [
            threading.Thread(target=self._work, args=(act, pause), name=f"demo-{name}-{number}", daemon=True)
            for number, (name, act, pause) in enumerate(works)
        ]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Let each writer finish its transaction, and go."""
        self._stop.set()
        for thread in self._threads:
            thread.join(STOP_SECONDS)

    @property
    def committed(self) -> int:
        """Transactions committed so far."""
        return self._counts["committed"]

    @property
    def rolled_back(self) -> int:
        """Transactions rolled back so far."""
        return self._counts["rolled back"]

    def placed(self) -> list[int]:
        """The orders that the clerk took since this was last asked."""
        with self._lock:
            placed, self._placed = self._placed, []
            return placed

    def _work(self, act: Act, pause: float) -> None:
        random = Random()
        try:
            with psycopg.connect(self._dsn, autocommit=True) as connection:
                while not self._stop.wait(pause * random.uniform(0.5, 1.5)):
                    self._count(self._committed(act, connection, random))
        except Exception as error:
            self.problem = f"{threading.current_thread().name} stopped: {error}"

    def _committed(self, act: Act, connection: psycopg.Connection, random: Random) -> bool:
        """Carry out one transaction; whether it was committed."""
        try:
            with connection.transaction():
                act(connection, random)
        except (_GivenUp, psycopg.errors.CheckViolation):
            return False
        return True

    def _count(self, committed: bool) -> None:
        with self._lock:
            self._counts["committed" if committed else "rolled back"] += 1

    def _transfer(self, connection: psycopg.Connection, random: Random) -> None:
        # In the order of their numbers, so that two transfers never wait for each other.
        accounts = sorted(random.sample(range(self._accounts), 2))
        amount = random.choice((1, -1)) * Decimal(random.randint(1, 5_000)).scaleb(-2)
        given_up = random.random() < GIVEN_UP
        for account, change in zip(accounts, (amount, -amount), strict=True):
            connection.execute(
                "UPDATE shop.accounts SET balance = balance + %s WHERE account_id = %s", (change, account)
            )
            if given_up:
                raise _GivenUp

    def _serve(self, connection: psycopg.Connection, random: Random) -> None:
        if random.random() < 0.7:
            order = place_order(connection, random.randrange(self._customers))
            with self._lock:
                self._placed.append(order)
        else:
            status, order = random.choice(("shipped", "delivered", "cancelled")), random.randrange(self._orders)
            connection.execute("UPDATE shop.orders SET status = %s WHERE order_id = %s", (status, order))


class _GivenUp(Exception):
    """A transfer that ends after money was taken and before it was given."""
