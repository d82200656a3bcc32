"""The one exclusive lock of a warehouse."""

from __future__ import annotations

import time
from datetime import datetime, timedelta

from strandline.catalog.damage import required
from strandline.catalog.database import Database
from strandline.catalog.lease import Lease
from strandline.catalog.models import LockRow
from strandline.catalog.process import ProcessIdentity, is_dead, this_process
from strandline.errors import CatalogError

STALE_AFTER = timedelta(seconds=60)
POLL_SECONDS = (0.02, 0.5)


class Lock:
    """Whoever changes the warehouse holds this lock."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._leases: list[Lease] = []

    def acquire(self, purpose: str, wait_seconds: float = 0) -> Lease:
        """Take the lock, waiting up to *wait_seconds* for its holder; ``WAREHOUSE_BUSY`` if it stays held."""
        deadline = time.monotonic() + wait_seconds
        pause, longest = POLL_SECONDS
        while True:
            lease = self._try(purpose)
            if isinstance(lease, Lease):
                self._leases = [*(one for one in self._leases if not one.released), lease]
                return lease
            left = deadline - time.monotonic()
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
            if row.pid is not None and not (self._was_given_back(row) or _is_abandoned(row, now)):
                return _busy(row, now)
            _hold(row, me, purpose, now)
            token = row.token
        return Lease(self._database, token=token, purpose=purpose, owner=str(me), since=now)

    def _was_given_back(self, row: LockRow) -> bool:
        # The database may have been out of reach when the lease was released.
        return any(one.released and one.token == row.token for one in self._leases)


def _hold(row: LockRow, me: ProcessIdentity, purpose: str, now: datetime) -> None:
    row.token += 1
    row.host, row.machine, row.pid, row.process_start = me.host, me.machine, me.pid, me.start
    row.purpose = purpose
    row.acquired_at = row.heartbeat_at = now


def _is_abandoned(row: LockRow, now: datetime) -> bool:
    dead = is_dead(ProcessIdentity(row.host or "", row.machine or "", row.pid or 0, row.process_start or ""))
    if dead is None:
        return row.heartbeat_at is None or now - row.heartbeat_at > STALE_AFTER
    return dead


def _busy(row: LockRow, now: datetime) -> CatalogError:
    since = f"{row.acquired_at:%Y-%m-%d %H:%M:%S} UTC"
    beat = (now - row.heartbeat_at).total_seconds() if row.heartbeat_at else 0
    return CatalogError(
        "WAREHOUSE_BUSY",
        f"the warehouse is locked; process {row.pid} on host {row.host} holds it for {row.purpose} since "
        f"{since}, last heartbeat {max(beat, 0):.0f} s ago; wait for it to finish, or end that process "
        "and try again.",
    )
