"""Holding the warehouse lock: a fencing token, and a heartbeat that shows the holder to be alive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from datetime import datetime
from types import TracebackType

from sqlalchemy import update
from sqlalchemy.orm import Session

from strandline.catalog.database import Database
from strandline.catalog.models import LockRow
from strandline.errors import CatalogError

HEARTBEAT_SECONDS = 5.0

SILENT_SECONDS = 40.0
"""A holder that could not show itself alive for so long counts its lease as lost. Another host takes the lock over
somewhat later, so that nothing of the old holder's should be running by then."""

NO_HOLDER = {
    "host": None,
    "machine": None,
    "pid": None,
    "process_start": None,
    "purpose": None,
    "acquired_at": None,
    "heartbeat_at": None,
}


class Lease:
    """The right to change the warehouse, until released or taken over.

    *token* grows with each lease. An operation that is given a lease whose token is no longer the
    holder's fails with ``LEASE_LOST``, so a process that was thought dead can do no harm when it wakes up.
    """

    def __init__(self, database: Database, *, token: int, purpose: str, owner: str, since: datetime) -> None:
        self.token = token
        self.purpose = purpose
        self.owner = owner
        self.since = since
        self._database = database
        self._ended = threading.Event()
        self._lost = threading.Event()
        self._renewed = time.monotonic()
        self._stop: Callable[[], None] | None = None
        self._heart = threading.Thread(target=self._beat, name=f"strandline-lease-{token}", daemon=True)
        self._heart.start()

    @property
    def lost(self) -> bool:
        """Whether the heartbeat has noticed that another process took the lock over, or may be about to."""
        return self._lost.is_set()

    def when_lost(self, stop: Callable[[], None]) -> None:
        """Have *stop* called, by another thread, when the lease is lost: it ends what is being done under it."""
        self._stop = stop

    @property
    def released(self) -> bool:
        """Whether the holder has given the lock back."""
        return self._ended.is_set()

    def release(self) -> None:
        """Give the lock back; does nothing if it is not held any more."""
        if self._ended.is_set():
            return
        self._ended.set()
        self._heart.join()
        with self._database.writing() as session:
            session.execute(update(LockRow).where(LockRow.token == self.token).values(NO_HOLDER))

    def __enter__(self) -> Lease:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.release()
        except CatalogError:
            # The error that ended the work says more; the lock falls free with the end of this process.
            if error is None:
                raise

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_SECONDS):
            try:
                if not self._renew():
                    self._lose()
                    return
                self._renewed = time.monotonic()
            except CatalogError:
                # A database out of reach for a while is no reason to stop: the next beat tries again.
                if time.monotonic() - self._renewed > SILENT_SECONDS and not self.lost:
                    self._lose()

    def _lose(self) -> None:
        self._lost.set()
        if self._stop is not None:
            self._stop()

    def _renew(self) -> bool:
        with self._database.writing() as session:
            held = session.get(LockRow, 1)
            if held is None or held.token != self.token or held.pid is None:
                return False
            held.heartbeat_at = self._database.now(session)
            return True


def require_held(session: Session, lease: Lease) -> None:
    """Refuse to go on in this writing transaction unless *lease* is still the one in force."""
    row = session.get(LockRow, 1)
    if row is not None and row.token == lease.token and row.pid is not None:
        return
    if row is not None and row.pid is not None:
        now_held = f"process {row.pid} on host {row.host} has held the lock for {row.purpose} since then"
    else:
        now_held = "nobody holds the lock now"
    raise CatalogError(
        "LEASE_LOST",
        f"the lock taken for {lease.purpose} by {lease.owner} is no longer held; {now_held}; "
        "nothing was changed by this operation: run the command again.",
    )
