"""Views over dumps: each dump that is taken is compared with the copy, and views follow by the changes."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from decimal import Decimal as D
from pathlib import Path
from typing import Any

import psycopg
import pytest

from strandline import Warehouse
from strandline.algebra.bag import Row
from strandline.engine.session import Engine
from strandline.propagate.report import RefreshReport
from tests.conftest import bag, new_project, rows_shown
from tests.sources.files.dumps import EVENTS, PARTS, declaration, text, write
from tests.sources.postgres.live import refused

pytestmark = pytest.mark.spark

PRICES = "SELECT id, name, price FROM dump.parts"
JOINED = (
    "SELECT o.id, p.name, o.quantity * p.price AS amount FROM shop.orders AS o JOIN dump.parts AS p ON p.id = o.part"
)
COUNTED = "SELECT p.name, count(*) AS n FROM dump.events AS e JOIN dump.parts AS p ON p.id = e.part GROUP BY p.name"

A, B, C = (1, "bolt", D("1.50")), (2, "nut", D("0.25")), (3, "gear", D("40.00"))
MORE = [(number, f"part {number}", D(number)) for number in range(4, 12)]


class Folder:
    """The dumps, and what the warehouse must show of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts: list[Row] = []
        self.events: list[Row] = []

    def dump(self, name: str, parts: list[Row] | None = None, events: list[Row] | None = None) -> None:
        """Write dumps of one or both tables."""
        if parts is not None:
            write(self.path / "parts" / f"{name}.parquet", parts, PARTS)
            self.parts = parts
        if events is not None:
            write(self.path / "events" / f"{name}.parquet", events, EVENTS)
            self.events = events

    def assert_shown(self, warehouse: Warehouse, orders: list[Row]) -> None:
        """The views are what the dumps and the orders give."""
        by_id = {row[0]: row for row in self.parts}
        joined = [(o, by_id[p][1], q * by_id[p][2]) for o, p, q in orders if p in by_id]
        counts: dict[str, int] = {}
        for part, _ in self.events:
            if part in by_id:
                counts[by_id[part][1]] = counts.get(by_id[part][1], 0) + 1
        assert bag(rows_shown(warehouse, "joined")) == bag(joined)
        assert bag(rows_shown(warehouse, "counted")) == bag(counts.items())


@pytest.mark.postgres
def test_ten_dumps_joined_with_postgres(tmp_path: Path, engine: Engine, database: str) -> None:
    folder = Folder(tmp_path / "dumps")
    folder.dump("01", [A, B, C, *MORE], [(1, "sold"), (1, "sold"), (2, "lost")])
    with (
        pytest.MonkeyPatch.context() as patch,
        psycopg.connect(database, autocommit=True) as writer,
        Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse,
    ):
        patch.setenv("SHOP_DSN", database)
        writer.execute("CREATE TABLE orders (id int PRIMARY KEY, part int, quantity int)")
        writer.execute("INSERT INTO orders VALUES (1, 1, 10), (2, 3, 1), (3, 99, 5)")
        orders: list[Row] = [(1, 1, 10), (2, 3, 1), (3, 99, 5)]
        warehouse.add_source("shop", kind="postgres", dsn_env="SHOP_DSN", tables=["orders"])
        warehouse.add_source("dump", **declaration(folder.path, keys={"parts": ["id"]}))
        warehouse.sql(f"CREATE MATERIALIZED VIEW joined AS {JOINED}")
        warehouse.sql(f"CREATE MATERIALIZED VIEW counted AS {COUNTED}")
        folder.assert_shown(warehouse, orders)

        # 2: an insert, an update, a delete; duplicates come and go; PostgreSQL changes too.
        folder.dump(
            "02", [A, (2, "nut", D("0.30")), *MORE, (99, "wheel", D("7.00"))], [(1, "sold"), (2, "lost"), (2, "lost")]
        )
        writer.execute("UPDATE orders SET quantity = 11 WHERE id = 1")
        orders[0] = (1, 1, 11)
        report = refreshed(warehouse)
        assert report.hidden["dump.parts"].reason.code == "DUMP_COMPARED"
        assert (report.hidden["dump.parts"].rows_inserted, report.hidden["dump.parts"].rows_deleted) == (2, 2)
        assert str(report.hidden["dump.parts"].how).startswith("window: both snapshots fit in memory")
        assert {view.strategy for view in report.views.values()} == {"incremental"}
        folder.assert_shown(warehouse, orders)

        # 3: the same dump under another name, byte for byte: nothing to do.
        folder.dump("03", folder.parts, folder.events)
        assert warehouse.plan().empty
        assert refreshed(warehouse).state == report.state

        # 4: the same rows in another order: found out by comparing, and no new state.
        folder.dump("04", folder.parts[::-1], folder.events[::-1])
        same = refreshed(warehouse)
        assert same.state == report.state and same.hidden["dump.parts"].install == "none"
        assert warehouse.plan().empty
        assert all(view.fresh for view in warehouse.status().views)
        folder.assert_shown(warehouse, orders)

        # 5: a dump that is being written, under its own name or another: the one before stays.
        (folder.path / "parts" / "05.parquet.tmp").write_bytes(b"PAR1 and so on")
        assert warehouse.plan().empty

        # 6: a dump that lost most of its rows is held back, with all views over it; PostgreSQL alone goes on.
        before = folder.parts
        folder.dump("06", [A])
        held = warehouse.refresh()
        problem = str(held.views["joined"].problem)
        assert not held.ok and problem.startswith("DUMP_HELD_BACK: dump 06.parquet of dump.parts has 1 rows")
        assert "strandline source accept dump parts" in problem
        status = warehouse.status()
        assert not any(view.fresh for view in status.views)
        assert {leaf.leaf: bool(leaf.problem) for leaf in status.sources} == {
            "dump.parts": True,
            "dump.events": False,
            "shop.orders": False,
        }
        folder.parts = before
        folder.assert_shown(warehouse, orders)

        # 7: a better one, and one that was never looked at: the newest counts.
        folder.dump("07", [B])
        folder.dump("08", [A, B, *MORE])
        report = refreshed(warehouse)
        assert "2 older dumps are skipped" in report.hidden["dump.parts"].reason.text
        folder.assert_shown(warehouse, orders)

        # 9: an empty dump is held back, accepted, and taken; the next one is compared with it.
        folder.dump("09", [], [(1, "sold")] * 3)
        assert not warehouse.refresh().ok
        assert warehouse.accept_dump("dump", "parts") == "09.parquet"
        refreshed(warehouse)
        folder.assert_shown(warehouse, orders)
        refused(lambda: warehouse.accept_dump("dump", "parts"), "NO_DUMP")

        # 10: everything is back.
        folder.dump("10", [A, B, C], [(1, "sold"), (3, "sold")])
        refreshed(warehouse)
        folder.assert_shown(warehouse, orders)
        assert warehouse.verify("joined").ok and warehouse.verify("counted").ok
        assert warehouse.verify_source("dump.parts").ok
        shown = {leaf.leaf: leaf.seen for leaf in warehouse.status().sources}
        assert isinstance(position := shown["dump.parts"], dict) and position["dump"] == "10.parquet"
        refused(lambda: warehouse.remove_source("dump"), "SOURCE_IN_USE")


def refreshed(warehouse: Warehouse) -> RefreshReport:
    report = warehouse.refresh()
    assert report.ok, report.to_dict()
    return report


@pytest.fixture
def warehouse(tmp_path: Path, engine: Engine) -> Iterator[Warehouse]:
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        yield warehouse


def rows(warehouse: Warehouse, view: str) -> Any:
    return bag(rows_shown(warehouse, view))


def test_text_that_cannot_be_read_is_an_error_or_set_aside(tmp_path: Path, warehouse: Warehouse) -> None:
    lines = ["id,name,day", "1,a,2026-01-01", '2,"b, or ""c""",', "3,,2026-01-03"]
    text(tmp_path / "dumps" / "csv" / "1.csv", *lines)
    text(tmp_path / "dumps" / "json" / "1.json", '{"id": 1, "more": {"x": [1]}}', '{"id": 2}')
    columns = {"id": "bigint", "day": "date"}
    tables = {
        "csv": {"format": "csv", "columns": columns, "key": ["id"]},
        "json": {"format": "json", "columns": {"id": "int", "more": "string"}, "unreadable": "set-aside"},
    }
    warehouse.add_source("dump", **declaration(tmp_path / "dumps", tables=tables))
    warehouse.sql("CREATE MATERIALIZED VIEW c AS SELECT name, day, id FROM dump.csv")
    warehouse.sql("CREATE MATERIALIZED VIEW j AS SELECT id, more FROM dump.json")
    assert bag((r["id"], r["name"], str(r["day"])) for r in warehouse.read("c").collect()) == bag(
        [(1, "a", "2026-01-01"), (2, 'b, or "c"', "None"), (3, None, "2026-01-03")]
    )
    assert rows(warehouse, "j") == bag([(1, '{"x": [1]}'), (2, None)])
    text(tmp_path / "dumps" / "csv" / "2.csv", *lines, "4,d,tomorrow")
    text(tmp_path / "dumps" / "json" / "2.json", '{"id": 1}', "{broken", '{"id": "no number"}', '{"id": 3}')
    report = warehouse.refresh()
    assert str(report.hidden["dump.csv"].problem).startswith("UNREADABLE_ROWS: dump 2.csv of dump.csv cannot be taken")
    assert "4,d,tomorrow" in str(report.hidden["dump.csv"].problem)
    assert "--" not in str(report.hidden["dump.csv"].problem)
    assert "2 rows that cannot be read were set aside" in str(report.hidden["dump.json"].how)
    assert report.views["c"].problem is not None and report.views["j"].problem is None
    assert rows(warehouse, "j") == bag([(1, None), (3, None)])
    warehouse.alter_source("dump", tables={**tables, "csv": {**tables["csv"], "unreadable": "set-aside"}})
    assert refreshed(warehouse).hidden["dump.csv"].rows_inserted == 0


def test_a_key_that_is_none_and_columns_that_change(tmp_path: Path, warehouse: Warehouse) -> None:
    folder = tmp_path / "dumps" / "parts"
    write(folder / "1.parquet", [A, B], PARTS)
    warehouse.add_source("dump", **declaration(tmp_path / "dumps", keys={"parts": ["id"]}))
    warehouse.sql("CREATE MATERIALIZED VIEW p AS SELECT id, name FROM dump.parts")
    write(folder / "2.parquet", [A, (1, "other", D(1))], PARTS)
    problem = str(warehouse.refresh().views["p"].problem)
    assert "KEY_NOT_UNIQUE" in problem and "id=1" in problem and "2.parquet" in problem
    added = PARTS.append(PARTS.field("name").with_name("colour"))
    write(folder / "3.parquet", [(*A, "red"), (*C, "blue")], added)
    refreshed(warehouse)
    assert rows(warehouse, "p") == bag([(1, "bolt"), (3, "gear")])
    assert "colour" in str(warehouse.status().sources[0].note)
    write(folder / "4.parquet", [(1, D(1))], PARTS.remove(1))
    report = warehouse.refresh()
    assert str(report.views["p"].problem).startswith("SOURCE_SCHEMA_CHANGED: dump.parts has no column name any more")
    assert rows(warehouse, "p") == bag([(1, "bolt"), (3, "gear")])
    write(folder / "5.parquet", [A, B], PARTS)
    refreshed(warehouse)
    assert rows(warehouse, "p") == bag([(1, "bolt"), (2, "nut")])
    assert warehouse.refresh("dump.parts", full=True).ok
    refreshed(warehouse)
    assert rows(warehouse, "p") == bag([(1, "bolt"), (2, "nut")]) and warehouse.verify("p").ok


@pytest.mark.kill
def test_a_killed_refresh_is_finished_without_its_dump(tmp_path: Path, engine: Engine) -> None:
    folder, project = tmp_path / "dumps" / "parts", tmp_path / "project"
    write(folder / "1.parquet", [A, B], PARTS)
    new_project(project)
    with Warehouse.open(project, spark=engine.spark) as warehouse:
        warehouse.add_source("dump", **declaration(tmp_path / "dumps", keys={"parts": ["id"]}))
        warehouse.sql("CREATE MATERIALIZED VIEW p AS SELECT id, name FROM dump.parts")
    write(folder / "2.parquet", [A, C], PARTS)
    # The changes are stored, and are being installed.
    assert "started install dump.parts" in killed(project, event=2)
    (folder / "2.parquet").unlink()
    with Warehouse.open(project, spark=engine.spark) as warehouse:
        assert refreshed(warehouse).resumed is not None
        assert rows(warehouse, "p") == bag([(1, "bolt"), (3, "gear")]) and warehouse.verify("p").ok


def test_a_dump_that_goes_before_it_is_read_fails_the_plan_and_not_the_next(
    tmp_path: Path, warehouse: Warehouse
) -> None:
    folder = tmp_path / "dumps" / "parts"
    write(folder / "1.parquet", [A, B], PARTS)
    warehouse.add_source("dump", **declaration(tmp_path / "dumps", keys={"parts": ["id"]}))
    warehouse.sql("CREATE MATERIALIZED VIEW p AS SELECT id, name FROM dump.parts")
    write(folder / "2.parquet", [A, C], PARTS)
    plan = warehouse.plan()
    (folder / "2.parquet").unlink()
    write(folder / "3.parquet", [B], PARTS)
    problem = str(warehouse.refresh(plan).views["p"].problem)
    assert "DUMP_GONE: dump 2.parquet of dump.parts was taken away" in problem
    refreshed(warehouse)
    assert rows(warehouse, "p") == bag([(2, "nut")])
    refused(lambda: warehouse.verify_source("dump.no"), "UNKNOWN_VIEW")
    (folder / "3.parquet").unlink()
    (folder / "1.parquet").unlink()
    refused(lambda: warehouse.verify_source("dump.parts"), "DUMP_GONE")
    assert warehouse.plan().empty and not any(node.blocked for node in warehouse.plan().nodes)
    folder.rmdir()
    assert str(warehouse.refresh().views["p"].problem).startswith("SOURCE_TABLE_GONE")


@pytest.mark.postgres
def test_a_database_that_can_only_be_read_is_compared_at_each_refresh(
    tmp_path: Path, warehouse: Warehouse, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(database, autocommit=True) as writer:
        writer.execute("CREATE TABLE stock (part int PRIMARY KEY, n int)")
        writer.execute("INSERT INTO stock SELECT k, k % 3 FROM generate_series(1, 20) AS k")
        monkeypatch.setenv("SHOP_PASSWORD", writer.info.password)
        warehouse.add_source(
            "shop",
            kind="jdbc",
            url=f"jdbc:postgresql://{writer.info.host}:{writer.info.port}/{writer.info.dbname}",
            user=writer.info.user,
            password_env="SHOP_PASSWORD",
            properties={"driver": "org.postgresql.Driver"},
            tables={"stock": {"query": "SELECT part, n FROM stock", "key": ["part"]}},
        )
        assert [finding.ok for finding in warehouse.check_source("shop")] == [True]
        warehouse.sql("CREATE MATERIALIZED VIEW counted AS SELECT n, count(*) AS parts FROM shop.stock GROUP BY n")
        state = warehouse.states()[0].number
        assert refreshed(warehouse).state == state, "nothing has changed"
        writer.execute("UPDATE stock SET n = 9 WHERE part < 3")
        report = refreshed(warehouse)
        assert (report.hidden["shop.stock"].rows_inserted, report.hidden["shop.stock"].rows_deleted) == (2, 2)
        assert report.views["counted"].strategy == "incremental" and warehouse.verify("counted").ok
        assert warehouse.verify_source("shop.stock").ok
        assert warehouse.status().views[0].behind == {"shop.stock": None}
        writer.execute("DELETE FROM stock WHERE part > 4")
        assert "DUMP_HELD_BACK" in str(warehouse.refresh().hidden["shop.stock"].problem)
        warehouse.accept_dump("shop", "stock")
        refreshed(warehouse)
        assert rows(warehouse, "counted") == bag([(9, 2), (0, 1), (1, 1)])
        writer.execute("DROP TABLE stock")
        report = warehouse.refresh()
        assert not report.ok and "stock" in str(report.views["counted"].problem)
        assert "does not exist" in warehouse.check_source("shop")[0].what


def killed(project: Path, event: int) -> str:
    """Where a refresh by a process of its own was killed."""
    command = [sys.executable, "-m", "tests.campaign.kill_child", str(project), str(event), "0", "both"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == -9, done.stderr
    return done.stdout
