"""The control catalog as a whole."""

from __future__ import annotations

from types import TracebackType

from strandline.catalog.address import make_folder, parse
from strandline.catalog.captures import Captures
from strandline.catalog.damage import required
from strandline.catalog.database import Database
from strandline.catalog.leaves import Leaves
from strandline.catalog.lock import Lock
from strandline.catalog.models import WarehouseRow
from strandline.catalog.moments import Clock, utc_now
from strandline.catalog.purging import Purging
from strandline.catalog.refreshes import Refreshes
from strandline.catalog.settings import Settings
from strandline.catalog.soundness import check
from strandline.catalog.sources import Sources
from strandline.catalog.states import States
from strandline.catalog.unit_of_work import UnitOfWork
from strandline.catalog.upgrade import bring_up_to_date
from strandline.catalog.versions import Versions
from strandline.catalog.views import Views


class Catalog:
    """What the warehouse knows of itself; every attribute is one part of it."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self.clock = clock
        self.settings = Settings(database)
        self.sources = Sources(database, clock)
        self.leaves = Leaves(database)
        self.unit_of_work = UnitOfWork(database)
        self.captures = Captures(database)
        self.views = Views(database, clock)
        self.versions = Versions(database, clock)
        self.refreshes = Refreshes(database, clock)
        self.states = States(database, clock)
        self.purging = Purging(database)
        self.lock = Lock(database)
        with database.reading() as session:
            self.warehouse_id = required(session, WarehouseRow, 1).uuid

    @classmethod
    def open(cls, url: str, *, clock: Clock = utc_now) -> Catalog:
        """Open the catalog at *url*, made or upgraded as needed.

        *url* is ``sqlite:///path`` or ``postgresql+psycopg://user@host/database``. *clock* dates the records.
        """
        address = parse(url)
        make_folder(address)
        database = Database(address)
        try:
            bring_up_to_date(database, clock)
            return cls(database, clock)
        except BaseException:
            database.close()
            raise

    def check(self) -> None:
        """Raise ``CATALOG_DAMAGED`` if rows are missing that others need."""
        with self._database.reading() as session:
            check(session)

    def close(self) -> None:
        """Release the lock if it is held through this catalog, and close all connections."""
        try:
            self.lock.release_all()
        finally:
            self._database.close()

    def __enter__(self) -> Catalog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Catalog({self._database.address})"
