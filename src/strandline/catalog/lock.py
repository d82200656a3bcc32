"""The one exclusive lock of a warehouse.

Whether a holder on another machine is alive shows in its heartbeats alone. They are dated by a clock, and a clock may
be set: so a holder that looks dead by the clock is watched for a while before its lock is taken over, and a heartbeat
that lies ahead is dated anew.
"""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from strandline.catalog.damage import required
from strandline.catalog.database import Database
from strandline.catalog.lease import HEARTBEAT_SECONDS, Lease
from strandline.catalog.models import LockRow
from strandline.catalog.process import ProcessIdentity, is_dead, this_process
from strandline.errors import CatalogError

STALE_AFTER = timedelta(seconds=60)
WATCHED_SECONDS = 2 * HEARTBEAT_SECONDS
POLL_SECONDS = (0.02, 0.5)


class Lock:
    """Whoever changes the warehouse holds this lock."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._leases: list[Lease] = []
        self._watched: tuple[int, datetime | None, float] | None = None

    def acquire(self, purpose: str, wait_seconds: float = 0) -> Lease:
        """Take the lock, waiting up to *wait_seconds* for its holder; ``WAREHOUSE_BUSY`` if it stays held."""
        deadline = time.monotonic() + wait_seconds
        pause, longest = POLL_SECONDS
        while True:
            lease = self._try(purpose)
            if isinstance(lease, Lease):
                self._leases = [*(one for one in self._leases if not one.released), lease]
                return lease
            left = max(deadline, self._watched_until()) - time.monotonic()
            if left <= 0:
                raise lease
            time.sleep(min(pause, left))
            pause = min(pause * 2, longest)

    def release_all(self) -> None:
        """Release every lease taken through this catalog that is still out, the lost ones too."""
        for lease in self._leases:
            lease.release()

    def _try(self, purpose: str) -> Lease | CatalogError:
        me = this_process()
        with self._database.writing() as session:
            row = required(session, LockRow, 1)
            now = self._database.now(session)
            if row.pid is not None and not (self._was_given_back(row) or self._is_abandoned(row, now)):
                return _busy(row, now)
            _hold(row, me, purpose, now)
            token = row.token
        return Lease(self._database, token=token, purpose=purpose, owner=str(me), since=now)

    def _is_abandoned(self, row: LockRow, now: datetime) -> bool:
        dead = is_dead(ProcessIdentity(row.host or "", row.machine or "", row.pid or 0, row.process_start or ""))
        if dead is not None:
            self._watched = None
            return dead
        if row.heartbeat_at is not None and row.heartbeat_at > now:
            row.heartbeat_at = now
        if row.heartbeat_at is not None and now - row.heartbeat_at <= STALE_AFTER:
            self._watched = None
            return False
        if self._watched is None or self._watched[:2] != (row.token, row.heartbeat_at):
            self._watched = (row.token, row.heartbeat_at, time.monotonic())
        return time.monotonic() >= self._watched_until()

    def _watched_until(self) -> float:
        """Until when, by this process's own time, a holder is watched; past if none is."""
        return 0.0 if self._watched is None else self._watched[2] + WATCHED_SECONDS

    def _was_given_back(self, row: LockRow) -> bool:
        # The database may have been out of reach when the lease was released.
        return any(one.released and one.token == row.token for one in self._leases)


def _hold(row: LockRow, me: ProcessIdentity, purpose: str, now: datetime) -> None:
    row.token += 1
    row.host, row.machine, row.pid, row.process_start = me.host, me.machine, me.pid, me.start
    row.purpose = purpose
    row.acquired_at = row.heartbeat_at = now


def _busy(row: LockRow, now: datetime) -> CatalogError:
    since = f"{row.acquired_at:%Y-%m-%d %H:%M:%S} UTC"
    beat = (now - row.heartbeat_at).total_seconds() if row.heartbeat_at else 0
    return CatalogError(
        "WAREHOUSE_BUSY",
        f"the warehouse is locked; process {row.pid} on host {row.host} holds it for {row.purpose} since "
        f"{since}, last heartbeat {max(beat, 0):.0f} s ago; wait for it to finish, or end that process "
        "and try again.",
    )
