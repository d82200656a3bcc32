"""The log of a source that is not copied, and what base views at different positions know of it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

from strandline.algebra.bag import SignedBag
from strandline.catalog import AddView, Catalog, Lease, VersionRecord, ViewRecord
from strandline.ingest.uncopied import NOTED, UncopiedSource
from strandline.integrate.advance import held
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.source import PostgresSource
from tests.sources.postgres.slots import Slot, slot_of
from tests.sources.postgres.test_visibility import WRITE, commits_that_wait, write_until_it_waits

pytestmark = pytest.mark.postgres


@dataclass
class Followed:
    """A source with one table, which base views without tables of their own follow."""

    source: UncopiedSource
    catalog: Catalog
    lease: Lease
    slot: Slot
    table: str = "seen"

    @property
    def leaf(self) -> str:
        return f"{self.source.name}.{self.table}"

    def define(self, view: str) -> None:
        info = self.source.inner.tables()[self.table]
        self.catalog.leaves.put(
            self.source.name,
            self.table,
            location=info.location,
            columns=info.columns,
            key=info.key,
            position=None,
        )
        added = AddView(
            view,
            kind="base",
            sql="",
            options={},
            definition=None,
            fingerprint="",
            columns=(),
            inputs=[self.leaf],
            location=view,
        )
        self.catalog.views.apply([added])

    def fill(self, view: str, *, capture: bool = True) -> None:
        """As a first fill, or another."""
        if capture:
            self.source.take_in([self.table], self.lease)
        with self.source.inner.hold() as snapshot:
            details = snapshot.copy(self.table, ["xid"]).details
            noted = {NOTED: {self.leaf: self.source.noted(self.table, details)}}
            self._record(view, noted, self.source.start(snapshot.seen))

    def move(self, view: str) -> SignedBag:
        """What a base view takes in next."""
        after = self.base(view)
        with held(self.source, {self.table: [after.positions[self.leaf]]}, self.lease) as (_, place):
            assert self.anew(view) is None
            told = list(self.source.logged(self.table, ["xid"], after.positions[self.leaf], place))
            self._record(view, after.inputs, self.source.at(place))
        return SignedBag(row for transaction in told for row in transaction.rows)

    def anew(self, view: str) -> str | None:
        reason = self.source.anew(self._view(view), self.base(view), self.source.lost())
        return None if reason is None else str(reason)

    def base(self, view: str) -> VersionRecord:
        found = self.catalog.versions.baseline(self._view(view).id)
        assert found is not None
        return found

    def _view(self, name: str) -> ViewRecord:
        found = self.catalog.views.get(name)
        assert found is not None
        return found

    def _record(self, view: str, inputs: object, position: object) -> None:
        known = (self._view(view).id, 0, inputs, {self.leaf: position}, uuid.uuid4().hex)
        self.catalog.versions.record(*known, lease=self.lease)  # type: ignore[arg-type]


@pytest.fixture
def followed(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Followed]:
    monkeypatch.setenv("FOLLOWED_DSN", database)
    with slot_of(database) as slot, closing(Catalog.open(f"sqlite:///{tmp_path}/catalog.db")) as catalog:
        slot.execute("CREATE TABLE seen (xid bigint, more text)", "ALTER TABLE seen REPLICA IDENTITY FULL")
        inner = PostgresSource("shop", Address(dsn_env="FOLLOWED_DSN"), owner="tests", patience=5, copies=False)
        catalog.sources.put("shop", "postgres", {})
        lease = catalog.lock.acquire("test")
        yield Followed(UncopiedSource(inner, catalog, str(tmp_path), {}), catalog, lease, slot)
        lease.release()
        inner.close()


def test_what_was_seen_beyond_a_place_is_not_taken_in_twice(followed: Followed, database: str) -> None:
    """A commit waits for a standby; one that stands after it in the log is in what the base view was filled from."""
    followed.define("v")
    source = followed.source
    with psycopg.connect(database, autocommit=True) as other, ThreadPoolExecutor(1) as threads:
        source.take_in([followed.table], followed.lease)
        with commits_that_wait(followed.slot):
            write = write_until_it_waits(followed.slot, other, threads)
            followed.slot.execute(WRITE)
            followed.fill("v", capture=False)
            early = source.inner.hold()
        write.result(timeout=20)
        source.take_in((), followed.lease)
        since = {followed.table: [followed.base("v").positions[followed.leaf]]}
        with early:
            assert source.reached(early.seen, since) is None, "it shows the later one and not the earlier"
    assert sum(followed.move("v").values()) == 1
    assert not followed.move("v")


def test_a_break_in_the_log_stays_known_to_who_is_before_it(followed: Followed) -> None:
    for view in ("behind", "ahead"):
        followed.define(view)
        followed.fill(view)
    followed.slot.execute("ALTER TABLE seen REPLICA IDENTITY DEFAULT", "INSERT INTO seen VALUES (1, '')")
    followed.slot.execute("ALTER TABLE seen ADD PRIMARY KEY (xid)", "UPDATE seen SET more = 'x'")
    followed.slot.execute("ALTER TABLE seen REPLICA IDENTITY FULL")
    followed.source.take_in((), followed.lease)
    assert "SOURCE_TABLE_REWRITTEN" in (followed.anew("ahead") or "")
    followed.fill("ahead")
    followed.slot.execute("INSERT INTO seen VALUES (2, '')")
    assert followed.move("ahead") == SignedBag.of([(2,)])
    assert "SOURCE_TABLE_REWRITTEN" in (followed.anew("behind") or "")
    followed.fill("behind")
    assert followed.anew("behind") is None and not followed.move("behind")


def test_who_follows_a_log_of_other_columns_is_filled_anew(followed: Followed) -> None:
    """A view that is defined after a column went has the changes logged without it, elsewhere."""
    followed.define("behind")
    followed.fill("behind")
    followed.slot.execute("INSERT INTO seen VALUES (1, '')")
    followed.source.take_in((), followed.lease)
    followed.slot.execute("ALTER TABLE seen DROP COLUMN more")
    followed.define("ahead")
    followed.fill("ahead")
    followed.slot.execute("INSERT INTO seen VALUES (2)")
    assert followed.move("ahead") == SignedBag.of([(2,)])
    assert "SOURCE_TABLE_REWRITTEN" in (followed.anew("behind") or ""), "row 1 is in the other log"


def test_a_table_is_logged_as_the_newest_base_view_knows_it(followed: Followed) -> None:
    """One that cannot follow a table which was made anew does not keep another from it."""
    followed.define("ahead")
    followed.define("stuck")
    followed.fill("ahead")
    followed.fill("stuck")
    followed.slot.execute("DROP TABLE seen", "CREATE TABLE seen (xid bigint, more text)")
    followed.slot.execute("ALTER TABLE seen REPLICA IDENTITY FULL")
    assert "SOURCE_TABLE_REPLACED" in (followed.anew("ahead") or "")
    followed.fill("ahead")
    followed.slot.execute("INSERT INTO seen VALUES (1, '')")
    assert followed.move("ahead") == SignedBag.of([(1,)])
    assert "SOURCE_TABLE_REPLACED" in (followed.anew("stuck") or "")
