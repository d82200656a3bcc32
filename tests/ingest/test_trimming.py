"""Change logs are trimmed to what copies have yet to take in, and a trimming that was killed leaves them whole."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from strandline.catalog import Catalog, Json, Lease, LoggedTable
from strandline.ingest.change_log import ChangeLog
from strandline.ingest.trimming import TableLog, outlived_entries, table_logs, trim
from strandline.sources.protocol import Entry


class Logged:
    """A source table with a copy and a log."""

    def __init__(self, folder: Path) -> None:
        self.path = str(folder / "logs" / "orders")
        self.catalog = Catalog.open(f"sqlite:///{folder}/catalog.db")
        self.lease: Lease = self.catalog.lock.acquire("test")
        self.catalog.sources.put("shop", "postgres", {})
        self.catalog.leaves.put("shop", "orders", location=None, columns=(), key=(), position=None)
        self.catalog.captures.begin("shop", "one", 0, {}, self.lease)
        self.copy = self.catalog.views.add(
            "shop.orders",
            kind="copy",
            sql="",
            options={},
            definition={},
            fingerprint="",
            columns=(),
            inputs=(),
            location="copies/orders",
        )

    def capture(self, *places: int, log: str = "one") -> None:
        """Entries at *places*, captured and recorded."""
        known = self.catalog.captures.get("shop")
        before = known.tables.get("orders") if known else None
        written = ChangeLog(self.path, 1, before.version if before else None, {})
        for place in places:
            written.add(0, Entry("orders", "I", (str(place),)), log, place, place)
            written.flush()
        upto = max(places) + 1
        tables = {"orders": LoggedTable(self.path, written.version)}
        self.catalog.captures.record("shop", upto, {"log": log, "place": upto}, tables, {}, self.lease)

    def copied(self, place: int, log: str = "one") -> None:
        """The copy has taken in what was committed before *place*."""
        position: dict[str, Json] = {"shop.orders": {"log": log, "place": place}}
        self.catalog.versions.record(self.copy.id, place, {}, position, f"step-{place}")

    @property
    def log(self) -> TableLog:
        (found,) = table_logs(self.catalog)
        return found

    def places(self) -> list[int]:
        """The places of the entries that count."""
        table = DeltaTable(self.path, version=self.log.version).to_pyarrow_table()
        return sorted(table["_place"].to_pylist())

    def trim(self) -> int:
        return trim(self.catalog, self.log, {}, self.lease)


@pytest.fixture
def logged(tmp_path: Path) -> Iterator[Logged]:
    found = Logged(tmp_path)
    yield found
    found.catalog.close()


def test_entries_go_that_the_copy_has_taken_in(logged: Logged) -> None:
    logged.capture(1, 2, 3, 4, 5)
    logged.copied(4)
    assert outlived_entries(logged.log, {}) == 3
    assert logged.trim() == 3
    assert logged.places() == [4, 5]
    assert len(list(Path(logged.path).glob("*.parquet"))) == 1
    assert logged.trim() == 0
    logged.capture(6)
    assert logged.places() == [4, 5, 6]


def test_a_copy_that_will_be_read_anew_needs_no_entry(logged: Logged) -> None:
    logged.capture(1, 2)
    logged.copied(1, log="an earlier one")
    assert logged.trim() == 2
    assert logged.places() == []


def test_entries_of_an_earlier_log_go(logged: Logged) -> None:
    logged.capture(7, 8, log="an earlier one")
    logged.capture(1, 2)
    logged.copied(1)
    assert logged.trim() == 2
    assert logged.places() == [1, 2]


def test_a_trimming_that_was_killed_is_undone_by_the_next_capture_or_trimming(logged: Logged) -> None:
    logged.capture(1, 2, 3)
    logged.copied(2)
    DeltaTable(logged.path).delete("_place < 2")
    assert logged.places() == [1, 2, 3]
    logged.capture(4)
    assert logged.places() == [1, 2, 3, 4]
    DeltaTable(logged.path).delete("_place < 4")
    assert logged.trim() == 1
    assert logged.places() == [2, 3, 4]
