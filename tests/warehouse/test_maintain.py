"""Upkeep: old states and files go, and nobody who reads or refreshes notices."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from strandline import StrandlineError, Warehouse
from strandline.algebra.bag import SignedBag
from strandline.cli.context import Context
from strandline.demo.server import PostgresServer
from strandline.engine.session import Engine
from strandline.project.folder import Project
from strandline.propagate.progress import Event
from tests.cli.conftest import Invoke, invoke, parsed
from tests.conftest import bag, new_database, rows_shown
from tests.integrate import live
from tests.warehouse.shop import Shop, assert_verified

__all__ = ["invoke"]

pytestmark = pytest.mark.spark

VIEWS = {
    "priced": "SELECT o_id, c_id, total FROM shop.orders WHERE total >= 0",
    "by_customer": "SELECT c_id, count(*) AS n, sum(total) AS t FROM priced GROUP BY c_id",
}
ROUNDS = 4

Open = Callable[..., Warehouse]


class Old:
    """A warehouse with some history, closed; tests work on copies of it."""

    def __init__(self, folder: Path, shop: Shop, seen: dict[tuple[str, int], SignedBag]) -> None:
        self.folder = folder
        self.shop = shop
        self.seen = seen


def rows(warehouse: Warehouse, view: str, state: int | None = None) -> SignedBag:
    return bag(rows_shown(warehouse, view, state))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Old:
    folder = tmp_path_factory.mktemp("maintain")
    shop = Shop(folder / "lakes", orders=20)
    shop.create()
    with Warehouse.open(folder / "project", spark=engine.spark) as warehouse:
        shop.declare(warehouse)
        for name, query in VIEWS.items():
            warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {query}")
        seen = {}
        for _ in range(ROUNDS):
            shop.place_orders_only(3)
            state = warehouse.refresh().state
            assert state is not None
            for name in VIEWS:
                seen[(name, state)] = rows(warehouse, name)
    return Old(folder / "project", shop, seen)


@pytest.fixture
def project(tmp_path: Path, old: Old) -> Path:
    return Path(shutil.copytree(old.folder, tmp_path / "project"))


@pytest.fixture
def opened(project: Path, engine: Engine) -> Iterator[Open]:
    """Opens the copy, with states kept for another time if one is given."""
    found = []

    def open_it(keep_states: str = "7 days") -> Warehouse:
        keep(project, keep_states)
        found.append(Warehouse.open(project, spark=engine.spark))
        return found[-1]

    yield open_it
    for warehouse in found:
        warehouse.close()


def keep(project: Path, keep_states: str) -> None:
    config = project / "strandline.yml"
    text = re.sub(r"(?m)^keep_states: .*$", f"keep_states: {keep_states}", config.read_text())
    assert f"keep_states: {keep_states}" in text
    config.write_text(text)


def table(warehouse: Warehouse, view: str) -> Path:
    return Path(warehouse._refreshing.node(view).path)


def planned(warehouse: Warehouse) -> list[object]:
    """What a refresh would do; the lakes of all tests are the same, so others may have written to them."""
    return [(node.name, node.strategy, node.changed) for node in warehouse.plan().nodes]


def commits(project: Path) -> int:
    return len(list((project / "warehouse").rglob("_delta_log/*.json")))


def test_compaction_changes_nothing_that_is_read_or_refreshed(opened: Open, old: Old, project: Path) -> None:
    warehouse = opened()
    before = commits(project)
    promised = warehouse.maintain(dry_run=True)
    assert promised.dry_run and promised.tables["priced"].files_before == ROUNDS + 1
    assert commits(project) == before
    to_do = planned(warehouse)

    report = warehouse.maintain()
    assert report.ok and report.tables["priced"].files_before == promised.tables["priced"].files_before
    assert report.tables["priced"].files == 1
    assert report.purged == {"states": 0, "versions": 0, "transactions": 0, "views": 0}
    assert DeltaTable(table(warehouse, "priced")).history(1)[0]["operation"] == "OPTIMIZE"
    newest = warehouse.states()[0].entries["priced"].version
    assert newest == DeltaTable(table(warehouse, "priced")).version()
    for (view, state), seen in old.seen.items():
        assert rows(warehouse, view, state) == seen

    assert planned(warehouse) == to_do
    assert_verified(warehouse)
    old.shop.place_orders_only(3)
    refreshed = warehouse.refresh()
    assert {view.strategy for view in refreshed.views.values()} == {"incremental"}
    assert_verified(warehouse)
    again = warehouse.maintain()
    assert again.bytes_freed == 0 and again.tables["priced"].files_before == 0


def test_what_keep_states_does_not_ask_for_goes(opened: Open, old: Old, project: Path) -> None:
    warehouse = opened("0 seconds")
    warehouse.sql("CREATE MATERIALIZED VIEW brief AS SELECT max(total) AS most FROM shop.orders")
    brief = table(warehouse, "brief")
    shown = {name: rows(warehouse, name) for name in VIEWS}
    warehouse.drop("brief")
    root = project / "warehouse"
    for left in ("views/half_made-0000", "deltas/finished", "histories/a/b", "logs/gone"):
        (root / left).mkdir(parents=True)
        (root / left / "part.parquet").write_bytes(b"left")

    # The newest state still has the dropped view: it is read until another one takes its place.
    report = warehouse.maintain()
    assert brief.exists() and report.purged["views"] == 0
    assert [state.number for state in warehouse.states()] == [ROUNDS + 3]
    assert sorted(Path(path).name for path in report.leftovers) == ["b", "finished", "gone", "half_made-0000"]
    assert not any((root / left).exists() for left in ("views/half_made-0000", "deltas/finished"))
    assert report.bytes_freed > 0 and report.purged["states"] == ROUNDS + 2
    assert len(list(table(warehouse, "priced").glob("*.parquet"))) == 1
    with pytest.raises(StrandlineError, match=rf"UNKNOWN_STATE.*no state 1; states go from {ROUNDS + 3} "):
        warehouse.read("priced", state=1)
    assert {name: rows(warehouse, name) for name in VIEWS} == shown
    # Spark refuses versions beyond the retention, but for the newest: any session can read the newest state.
    for name in VIEWS:
        assert warehouse.states()[0].entries[name].version == DeltaTable(table(warehouse, name)).version()
    properties = DeltaTable(table(warehouse, "priced")).metadata().configuration
    assert properties["delta.deletedFileRetentionDuration"] == "interval 0 seconds"

    old.shop.place_orders_only(3)
    assert {view.strategy for view in warehouse.refresh().views.values()} == {"incremental"}
    assert warehouse.maintain().purged["views"] == 1
    assert not brief.exists()
    assert_verified(warehouse)
    recorded = [len(warehouse._catalog.versions.all(record.id)) for record in warehouse._catalog.views.ever()]
    assert recorded == [1, 1]
    assert warehouse._catalog.unit_of_work.count() == 1


class Killed(BaseException):
    """The process ends here."""


def test_killed_it_is_finished_by_the_next_refresh(opened: Open, old: Old) -> None:
    warehouse = opened("0 seconds")

    def killed(event: Event) -> None:
        if event.step == "compact" and event.what == "done":
            raise Killed

    with pytest.raises(Killed):
        warehouse.maintain(watcher=killed)
    unfinished = warehouse.status().unfinished
    assert unfinished is not None
    for name in VIEWS:
        assert rows(warehouse, name) == old.seen[(name, ROUNDS + 2)]
    old.shop.place_orders_only(3)
    report = warehouse.refresh()
    assert report.resumed == unfinished and report.views["priced"].strategy == "incremental"
    assert [state.number for state in warehouse.states()] == [ROUNDS + 3, ROUNDS + 2]
    assert_verified(warehouse)


def test_a_plain_vacuum_does_no_harm_and_a_forced_one_is_told(opened: Open, old: Old) -> None:
    warehouse = opened()
    priced = table(warehouse, "priced")
    DeltaTable(priced).optimize.compact()
    warehouse.maintain()
    DeltaTable(priced).vacuum(dry_run=False)
    for (view, state), seen in old.seen.items():
        assert rows(warehouse, view, state) == seen

    DeltaTable(priced).vacuum(0, dry_run=False, enforce_retention_duration=False)
    assert rows(warehouse, "priced") == old.seen[("priced", ROUNDS + 2)]
    with pytest.raises(StrandlineError, match=r"FILES_GONE.*states 4 show"):
        warehouse.read("priced", state=4)
    for told in (warehouse.maintain(dry_run=True), warehouse.maintain()):
        assert not told.ok and "FILES_GONE" in told.problems["priced"]
        assert "states 1, 2, 3, 4, 5 show" in told.problems["priced"]
    assert_verified(warehouse)


def test_tables_that_only_spark_writes_are_left_to_spark(opened: Open, old: Old, engine: Engine) -> None:
    warehouse = opened("0 seconds")
    priced = table(warehouse, "priced")
    engine.run(f"ALTER TABLE delta.`{priced}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    assert warehouse.maintain(dry_run=True).tables["priced"].bytes_freed is None
    report = warehouse.maintain()
    assert report.ok and report.tables["priced"].files == 1
    assert report.tables["priced"].bytes_freed
    assert "OPTIMIZE" in {commit["operation"] for commit in DeltaTable(priced).history(4)}
    assert len(list(priced.glob("*.parquet"))) == 1
    assert rows(warehouse, "priced") == old.seen[("priced", ROUNDS + 2)]


def test_a_place_that_several_warehouses_use_is_not_cleared(opened: Open, project: Path) -> None:
    warehouse = opened("0 seconds")
    users = project / "warehouse" / ".strandline"
    users.write_text(users.read_text().replace("]", ', "another"]'))
    (project / "warehouse" / "views" / "theirs").mkdir()
    report = warehouse.maintain()
    assert "ROOT_SHARED" in report.problems["clear"]
    assert (project / "warehouse" / "views" / "theirs").exists()


def test_exported_views_follow(opened: Open, old: Old, engine: Engine) -> None:
    warehouse = opened("0 seconds")
    engine.run("CREATE SCHEMA IF NOT EXISTS shown")
    try:
        assert warehouse.export_views("shown") == ["shown.by_customer", "shown.priced"]
        warehouse.maintain()
        old.shop.place_orders_only(3)
        warehouse.refresh()
        warehouse.maintain()
        for name in VIEWS:
            there = engine.spark.table(f"shown.{name}").collect()
            assert bag(tuple(row) for row in there) == rows(warehouse, name)
        warehouse.drop("by_customer")
        listed = engine.rows("SHOW VIEWS IN shown")
        assert [name for _, name, temporary, *_ in listed if not temporary] == ["priced"]
    finally:
        engine.run("DROP SCHEMA shown CASCADE")
    old.shop.place_orders_only(3)
    assert warehouse.refresh().ok


def test_the_command_tells_what_it_did(project: Path, invoke: Invoke, engine: Engine) -> None:
    left = project / "warehouse" / "deltas" / "finished"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    context = Context(spark=engine.spark)
    shown = invoke("maintain", "--dry-run", project=project, context=context)
    assert shown.exit_code == 0 and f"Would remove {left}" in shown.stdout and left.exists()
    done = invoke("maintain", "--json", project=project, context=context)
    told = parsed(done)
    assert told["ok"] and told["leftovers"] == [str(left)] and told["tables"]["priced"]["files"] == 1
    assert not left.exists()
    text = invoke("maintain", project=project, context=context)
    assert text.exit_code == 0 and "0 bytes freed" in text.stdout and "vacuuming priced: done" in text.stderr


@pytest.mark.postgres
def test_log_entries_that_all_have_taken_in_and_histories_go(
    tmp_path: Path, server: PostgresServer, engine: Engine
) -> None:
    Project.create(tmp_path / "project")
    keep(tmp_path / "project", "0 seconds")
    with (
        new_database(server) as sales,
        new_database(server) as crm,
        live.shop(tmp_path, sales, crm, engine) as shop,
    ):
        warehouse = shop.warehouse
        warehouse.add_source("books", kind="postgres", dsn_env="SHOP_CRM", tables=["customers"], patience=5)
        shop.follow("joined", level="COMPLETE")
        warehouse.sql("CREATE MATERIALIZED VIEW people WITH NO DATA AS SELECT id, name FROM books.customers")
        shop.refreshed()
        shop.sales.execute("INSERT INTO orders VALUES (50, 0, 0, 2.25, 'x')")
        shop.crm.execute("UPDATE customers SET name = 'bea' WHERE id = 1")
        shop.refreshed()
        histories = tmp_path / "project" / "warehouse" / "histories"
        assert warehouse.transactions("joined") and len(list(histories.glob("*/*"))) == 1

        report = warehouse.maintain()
        assert report.ok and report.log_entries == {"books.customers": 1, "crm.customers": 2, "sales.orders": 1}
        assert warehouse.transactions("joined") == [] and not list(histories.glob("*/*"))
        capture = warehouse._catalog.captures.get("books")
        assert capture is not None
        log = DeltaTable(capture.tables["customers"].path)
        assert log.version() == capture.tables["customers"].version and log.to_pyarrow_table().num_rows == 0

        shop.crm.execute("UPDATE customers SET name = 'ben' WHERE id = 1")
        shop.sales.execute("INSERT INTO orders VALUES (51, 1, 0, 2.25, 'x')")
        state = shop.refreshed().state
        assert [each.state for each in warehouse.transactions("joined")] == [state, state]
        # A trimming that was killed before the catalog named what it left.
        log = DeltaTable(capture.tables["customers"].path)
        assert log.to_pyarrow_table().num_rows == 1
        log.delete()
        shop.crm.execute("DELETE FROM customers WHERE id = 0")
        shop.refreshed()
        people = shop.crm.execute("SELECT id, name FROM customers").fetchall()
        assert bag(shop.shown("people")) == bag(people)
        assert warehouse.verify_source("books.customers").ok
        assert warehouse.maintain().log_entries["books.customers"] == 2
