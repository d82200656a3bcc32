"""Readers and writers side by side."""

from __future__ import annotations

import threading
import time

import pytest

from strandline.catalog import Catalog
from strandline.catalog import database as database_module
from strandline.catalog.address import parse
from strandline.catalog.database import Database
from strandline.catalog.models import SettingRow
from strandline.errors import CatalogError


def test_a_reader_does_not_wait_for_a_writer(catalog: Catalog, url: str) -> None:
    catalog.settings.put("engine", "spark")
    writer = Database(parse(url))
    with writer.writing() as session:
        session.merge(SettingRow(key="engine", value="sail"))
        session.flush()
        begun = time.monotonic()
        assert catalog.settings.get("engine") == "spark"
        assert time.monotonic() - begun < 1
    assert catalog.settings.get("engine") == "sail"
    writer.close()


def test_a_reading_transaction_sees_one_state(catalog: Catalog, url: str) -> None:
    catalog.settings.put("engine", "spark")
    reader = Database(parse(url))
    with reader.reading() as session:
        assert session.get_one(SettingRow, "engine").value == "spark"
        catalog.settings.put("engine", "sail")
        session.expire_all()
        assert session.get_one(SettingRow, "engine").value == "spark"
    reader.close()


def test_a_writer_that_does_not_get_its_turn_says_so(
    catalog: Catalog, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(database_module, "WAIT_FOR_TURN", "SET LOCAL lock_timeout = '100ms'")
    monkeypatch.setattr(database_module, "BUSY_SECONDS", 0.1)
    hurried = Database(parse(url))
    other = Database(parse(url))
    with (
        other.writing(),
        pytest.raises(CatalogError) as raised,
        hurried.writing(),
    ):
        pass
    assert raised.value.code == "CATALOG_BUSY"
    hurried.close()
    other.close()


def test_writers_take_turns(catalog: Catalog, url: str) -> None:
    catalog.settings.put("count", "0")

    def count() -> None:
        own = Database(parse(url))
        for _ in range(20):
            with own.writing() as session:
                row = session.get_one(SettingRow, "count")
                row.value = str(int(row.value) + 1)
        own.close()

    threads = [threading.Thread(target=count) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert catalog.settings.get("count") == "60"
