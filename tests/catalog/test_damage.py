"""A damaged catalog is an error that names the row, and nothing is built on it or written over it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, text

from strandline.algebra.schema import Column
from strandline.catalog import Catalog, Lease, StateEntry
from strandline.catalog.upgrade import REVISION_TABLE, REVISIONS
from strandline.errors import CatalogError

Execute = Callable[..., None]


@pytest.fixture
def filled(catalog: Catalog, lease: Lease) -> Catalog:
    """A catalog with a row in every table."""
    catalog.sources.put("shop", "delta", {"path": "/lake"})
    catalog.leaves.put("shop", "orders", location=None, columns=(Column("id", "int"),), key=(), position={"version": 1})
    catalog.captures.begin("shop", "log", 1, {}, lease)
    for name, inputs in (("daily", ["shop.orders"]), ("weekly", ["daily"])):
        catalog.views.add(
            name,
            kind="view",
            sql="SELECT 1",
            options={},
            definition={"block": None, "reason": None},
            fingerprint="f",
            columns=[Column("id", "int")],
            inputs=inputs,
            location=f"views/{name}",
        )
    for number in (1, 2):
        catalog.versions.record(number, 3, {"shop.orders": {"version": 1}}, {}, f"s{number}")
    catalog.states.publish(None, [StateEntry("daily", 1, 3, {}), StateEntry("weekly", 2, 3, {})], lease)
    catalog.refreshes.begin("r1", {"steps": [{"id": "r1-001"}]}, [("r1-001", "install", "daily")], lease)
    return catalog


READS: dict[str, Callable[[Catalog], Any]] = {
    "views": lambda catalog: catalog.views.all(),
    "leaves": lambda catalog: catalog.leaves.all(),
    "sources": lambda catalog: catalog.sources.all(),
    "captures": lambda catalog: catalog.captures.get("shop"),
    "view_versions": lambda catalog: catalog.versions.baseline(1),
    "state_entries": lambda catalog: catalog.states.newest(),
    "states": lambda catalog: catalog.states.newest(),
    "refreshes": lambda catalog: catalog.refreshes.unfinished(),
    "steps": lambda catalog: catalog.refreshes.steps("r1"),
}


def told(action: Callable[[], object]) -> str:
    with pytest.raises(CatalogError) as raised:
        action()
    assert raised.value.code == "CATALOG_DAMAGED", raised.value
    assert "nothing was changed; put the catalog back from a backup" in raised.value.message
    return raised.value.message


@pytest.mark.parametrize(
    ("table", "column", "row"),
    [
        ("views", "definition", "row id 1 has an unreadable definition ('{\"a\": 1')"),
        ("views", "columns", "row id 1 has an unreadable columns"),
        ("leaves", "position", "row name shop.orders has an unreadable position"),
        ("sources", "config", "row name shop has an unreadable config"),
        ("captures", "tables", "row source shop has an unreadable tables"),
        ("view_versions", "inputs", "row seq 1 has an unreadable inputs"),
        ("state_entries", "positions", "row number 1, view daily has an unreadable positions"),
        ("refreshes", "plan", "row seq 1 has an unreadable plan"),
        ("steps", "result", "row id r1-001 has an unreadable result"),
    ],
)
def test_broken_json_is_named_with_its_table_row_and_column(
    filled: Catalog, execute: Execute, table: str, column: str, row: str
) -> None:
    execute(f"update {table} set {column} = :broken", broken='{"a": 1')
    assert f"in its table {table}, {row}" in told(lambda: READS[table](filled))


@pytest.mark.parametrize(
    ("table", "column", "value", "why"),
    [
        ("views", "kind", "table", "'table' is none of view, block, base, copy"),
        ("views", "options", "[]", "'[]' is no JSON object"),
        ("views", "columns", '[{"name": "id"}]', "there is no 'type'"),
        ("leaves", "columns", "7", "not iterable"),
        ("sources", "config", "null", "'None' is no JSON object"),
        ("captures", "tables", '{"orders": {"where": "/"}}', "unexpected keyword argument 'where'"),
        ("view_versions", "positions", '"text"', "'text' is no JSON object"),
        ("state_entries", "positions", "[1]", "'[1]' is no JSON object"),
        ("refreshes", "status", "paused", None),
        ("steps", "status", "paused", "'paused' is none of pending, running, done, failed, skipped"),
    ],
)
def test_what_cannot_be_is_named_with_its_table_and_row(
    filled: Catalog, execute: Execute, table: str, column: str, value: str, why: str | None
) -> None:
    execute(f"update {table} set {column} = :value", value=value)
    if why is None:
        assert "'paused' is none of running, done" in told(lambda: filled.refreshes.recent(1))
        return
    message = told(lambda: READS[table](filled))
    assert f"in its table {table}, " in message and why in message


def test_a_time_that_is_none_is_named(filled: Catalog, execute: Execute, database: str) -> None:
    if database == "postgres":
        pytest.skip("PostgreSQL keeps times in a type of their own")
    execute("update states set published_at = 'yesterday'")
    assert "in its table states, row number 1 has an unreadable published_at ('yesterday')" in told(
        filled.states.newest
    )


@pytest.mark.parametrize(
    ("statement", "missing"),
    [
        ("delete from views where id = 1", "views, row 1 is missing: state 1 shows daily by it"),
        (
            "delete from view_versions where view_id = 1",
            "view_versions, the row of view 1 (daily) and version 3 is missing: state 1 shows it",
        ),
        ("update view_versions set version = 2", "version 3 is missing: state 1 shows it"),
        ("delete from steps", "steps, row r1-001 is missing: refresh r1 has that step"),
    ],
)
def test_a_row_that_others_need_is_missed(filled: Catalog, execute: Execute, statement: str, missing: str) -> None:
    filled.check()
    execute(statement)
    assert missing in told(filled.check)


def test_a_catalog_without_its_only_rows_is_not_opened(filled: Catalog, execute: Execute, url: str) -> None:
    execute("delete from warehouse_lock")
    for use in (filled.check, lambda: filled.lock.acquire("refresh")):
        assert "in its table warehouse_lock, row 1 is missing" in told(use)
    execute("insert into warehouse_lock (id, token) values (1, 7)")
    execute("update warehouse set id = 2")
    assert "in its table warehouse, row 1 is missing" in told(lambda: Catalog.open(url))
    execute("update warehouse set id = 1")
    execute(f"delete from {REVISION_TABLE}")
    assert f"in its table {REVISION_TABLE}, its only row is missing" in told(lambda: Catalog.open(url))
    execute(f"insert into {REVISION_TABLE} values ('{REVISIONS[-1]}')")
    assert len(filled.views.all()) == 2


def test_a_file_that_was_cut_short_is_left_as_it_is(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    with Catalog.open(url) as catalog:
        for number in range(200):
            catalog.sources.put(f"source {number}", "delta", {"path": "x" * 500})
    file = tmp_path / "catalog.db"
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    cut = file.read_bytes()

    def use() -> None:
        with Catalog.open(url) as catalog:
            catalog.sources.all()

    assert "was cut short or overwritten (database disk image is malformed)" in told(use)
    assert file.read_bytes() == cut
    file.write_bytes(whole)
    with Catalog.open(url) as catalog:
        assert len(catalog.sources.all()) == 200


def test_a_full_disk_is_said_and_what_was_recorded_is_kept(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    with Catalog.open(url) as catalog:
        catalog.sources.put("first", "delta", {"path": "x"})
        engine = catalog._database._writers
        with engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")
        with pytest.raises(
            CatalogError, match="its disk is full; what was recorded before is kept; make space"
        ) as full:
            catalog.sources.put("second", "delta", {"path": "x" * 100_000})
        assert full.value.code == "CATALOG_FULL"
        assert [source.name for source in catalog.sources.all()] == ["first"]
    with Catalog.open(url) as catalog:
        catalog.sources.put("second", "delta", {"path": "x" * 100_000})
        assert [source.name for source in catalog.sources.all()] == ["first", "second"]


def test_the_text_that_is_shown_is_short(filled: Catalog, execute: Execute) -> None:
    execute("update views set definition = :broken where id = 1", broken="{" * 5000)
    assert len(told(filled.views.all)) < 500


def test_where_two_rows_hold_the_text_one_of_them_is_named(filled: Catalog, execute: Execute, url: str) -> None:
    execute("update views set definition = 'x'")
    assert "in its table views, row id" in told(filled.views.all)
    engine = create_engine(url)
    with engine.begin() as connection:
        assert connection.execute(text("select count(*) from views where definition = 'x'")).scalar() == 2
    engine.dispose()
