"""Published states: consistent, immutable, readable by number and time."""

from __future__ import annotations

from pathlib import Path

import pytest
from deltalake import DeltaTable

from strandline import StrandlineError, Warehouse
from strandline.engine.session import Engine
from strandline.propagate.progress import Event
from tests.conftest import bag
from tests.warehouse.shop import Shop, assert_verified

pytestmark = pytest.mark.spark

PER_CUSTOMER = "SELECT c_id, count(*) AS n, sum(total) AS t FROM shop.orders GROUP BY c_id"


def rows(warehouse: Warehouse, view: str, state: int | None = None) -> object:
    return bag(tuple(row) for row in warehouse.read(view, state=state).collect())


def test_old_states_stay_readable_through_refreshes_redefinitions_and_vacuum(
    warehouse: Warehouse, shop: Shop, engine: Engine
) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {PER_CUSTOMER}")
    seen = {1: rows(warehouse, "v")}
    for number in (2, 3):
        shop.place_orders_only()
        assert warehouse.refresh().state == number
        seen[number] = rows(warehouse, "v")
    warehouse.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT day, count(*) AS orders FROM shop.orders GROUP BY day"
    )
    assert warehouse.read("v").columns == ["day", "orders"]
    for path in (Path(warehouse._project.warehouse_root) / "views").iterdir():
        DeltaTable(path).vacuum(dry_run=False)
    assert len({id(state) for state in seen.values()}) == 3
    for number, shown in seen.items():
        assert rows(warehouse, "v", number) == shown
    assert [state.number for state in warehouse.states()] == [4, 3, 2, 1]
    first = warehouse.states()[-1]
    assert rows(warehouse, "v", 1) == bag(
        tuple(row) for row in warehouse.read("v", as_of=first.published_at.isoformat()).collect()
    )


def test_a_state_says_which_positions_of_the_sources_it_shows(warehouse: Warehouse, shop: Shop) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {PER_CUSTOMER}")
    before = warehouse.states()[0].entries["v"].positions["shop.orders"]
    shop.place_orders_only()
    warehouse.refresh()
    after = warehouse.states()[0].entries["v"].positions["shop.orders"]
    assert isinstance(before, dict) and isinstance(after, dict)
    assert (before["version"], after["version"]) == (0, 1)
    status = warehouse.status()
    assert status.views[0].fresh and status.views[0].behind == {"shop.orders": 0}
    shop.place_orders_only()
    assert warehouse.status().views[0].behind == {"shop.orders": 1}


def test_a_plan_is_a_value_that_is_carried_out_or_stale(warehouse: Warehouse, shop: Shop) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL AS {PER_CUSTOMER}")
    shop.place_orders_only()
    plan = warehouse.plan("v")
    assert plan.node("v").strategy == "incremental"
    assert "VERSION AS OF" in plan.explain() and "incremental [CHANGES]" in plan.explain()
    shop.place_orders_only()
    report = warehouse.refresh(plan)
    assert report.views["v"].rows_in == 5
    assert warehouse.status().views[0].behind == {"shop.orders": 1}
    assert warehouse.verify("v").ok
    with pytest.raises(StrandlineError, match="STALE_PLAN"):
        warehouse.refresh(plan)


def test_files_are_the_desired_state(warehouse: Warehouse, shop: Shop, tmp_path: Path, engine: Engine) -> None:
    folder = tmp_path / "project" / "views"
    (folder / "top.sql").write_text("CREATE MATERIALIZED VIEW top AS SELECT max(n) AS most FROM base;")
    (folder / "base.sql").write_text(
        "CREATE MATERIALIZED VIEW base AS SELECT c_id, count(*) AS n FROM shop.orders GROUP BY 1"
    )
    assert any("base: new" in line for line in warehouse.plan().pending)
    report = warehouse.refresh()
    assert set(report.views) == {"base", "top"}
    assert_verified(warehouse)
    (folder / "base.sql").write_text(
        "CREATE MATERIALIZED VIEW base AS SELECT c_id, count(*) + 1 AS n FROM shop.orders GROUP BY 1"
    )
    assert "definition changed" in warehouse.plan().explain()
    report = warehouse.refresh()
    assert report.views["base"].strategy == "full"
    assert_verified(warehouse)
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as again:
        assert again.views() == warehouse.views()
        assert again.refresh().views["base"].strategy == "none"


def test_another_schedule_changes_no_data(warehouse: Warehouse, shop: Shop, tmp_path: Path) -> None:
    query = "SELECT c_id, count(*) AS n FROM shop.orders GROUP BY c_id"
    warehouse.view("v", query, policy="INCREMENTAL STRICT", schedule="5 minutes")
    (before,) = warehouse.status().views
    assert before.schedule == "EVERY 5 MINUTES"
    file = tmp_path / "project" / "views" / "v.sql"
    file.write_text(file.read_text().replace("5 MINUTES", "1 HOUR"))
    assert warehouse.plan().pending == ("v: schedule changed (views/v.sql)",)
    assert warehouse.refresh().views["v"].strategy == "none"
    (after,) = warehouse.status().views
    assert (after.schedule, after.state) == ("EVERY 1 HOUR", before.state)
    statement = f"CREATE OR REPLACE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT AS {query}"
    assert warehouse.sql(statement).state == before.state
    assert warehouse.status().views[0].schedule is None and len(warehouse.states()) == 1
    shop.place_orders_only()
    (behind,) = warehouse.behind().views
    assert behind.changed and behind.since is not None and behind.sources == {"shop"}
    assert warehouse.behind("v").state == before.state
    described = {row[0]: row[1] for row in warehouse.sql("DESCRIBE MATERIALIZED VIEW v").collect()}
    assert "# schedule" not in described


def test_everything_that_is_not_incremental_says_why(warehouse: Warehouse, shop: Shop) -> None:
    queries = {
        "CLAUSE": "SELECT * FROM (SELECT c_id, day FROM shop.orders) PIVOT (count(c_id) FOR c_id IN (1, 2))",
        "NON_DETERMINISTIC": "SELECT o_id FROM shop.orders WHERE day < current_date()",
        "SUBQUERY": "SELECT name FROM shop.customers c WHERE EXISTS "
        "(SELECT o.c_id FROM shop.orders o WHERE o.c_id = c.c_id GROUP BY o.c_id HAVING count(*) > 1)",
        "LIMIT": "SELECT o_id FROM shop.orders ORDER BY o_id LIMIT 1 + 2",
    }
    for code, query in queries.items():
        warehouse.sql(f"CREATE MATERIALIZED VIEW {code.lower()} AS {query}")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW above REFRESH POLICY INCREMENTAL AS SELECT count(*) AS n FROM non_deterministic"
    )
    shop.place_orders_only()
    report = warehouse.refresh()
    for code in queries:
        assert (report.views[code.lower()].strategy, report.views[code.lower()].reason.code) == ("full", code)
    assert report.views["above"].strategy == "incremental"
    assert_verified(warehouse)


def test_schema_changes_of_a_source_hold_back_the_views_that_use_the_column(
    warehouse: Warehouse, shop: Shop, engine: Engine
) -> None:
    warehouse.sql("CREATE MATERIALIZED VIEW names AS SELECT name FROM shop.customers")
    warehouse.sql(
        "CREATE MATERIALIZED VIEW regions AS SELECT region, count(*) AS n FROM shop.customers GROUP BY region"
    )
    table = f"delta.`{shop.path('customers')}`"
    engine.run(f"ALTER TABLE {table} ADD COLUMN note STRING")
    engine.run(f"INSERT INTO {table} VALUES (99, 'new', 'r0', 'hello')")
    assert warehouse.refresh().ok
    assert_verified(warehouse)
    engine.run(
        f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.columnMapping.mode' = 'name', "
        "'delta.minReaderVersion' = '2', 'delta.minWriterVersion' = '5')"
    )
    engine.run(f"ALTER TABLE {table} RENAME COLUMN region TO area")
    engine.run(f"INSERT INTO {table} VALUES (100, 'newer', 'r1', 'hello')")
    report = warehouse.refresh()
    problem = report.views["regions"].problem
    assert problem is not None and "SOURCE_SCHEMA_CHANGED" in problem and "region" in problem
    assert report.views["names"].problem is None
    assert warehouse.verify("names").ok


def test_a_view_that_is_redefined_without_data_shows_its_last_state_until_it_is_filled(
    warehouse: Warehouse, shop: Shop
) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {PER_CUSTOMER}")
    warehouse.sql("CREATE MATERIALIZED VIEW definition AS SELECT n FROM v")
    shown = rows(warehouse, "v")
    warehouse.sql(
        "CREATE OR REPLACE MATERIALIZED VIEW v WITH NO DATA AS SELECT day, count(*) AS n FROM shop.orders GROUP BY 1"
    )
    assert rows(warehouse, "v") == shown
    assert warehouse.verify("v").ok
    warehouse.sql("CREATE MATERIALIZED VIEW other AS SELECT name FROM shop.customers")
    assert rows(warehouse, "v") == shown
    assert warehouse.refresh().ok
    assert warehouse.read("v").columns == ["day", "n"]
    assert_verified(warehouse)
    assert {view.strategy for view in warehouse.refresh().views.values()} == {"none"}


def test_a_redefinition_that_cannot_be_filled_leaves_everything_as_it_was(warehouse: Warehouse, tmp_path: Path) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW v COMMENT 'kept' AS {PER_CUSTOMER}")
    file = tmp_path / "project" / "views" / "v.sql"
    text, shown, state = file.read_text(), rows(warehouse, "v"), warehouse.states()[0].number
    with pytest.raises(StrandlineError, match="FILL_FAILED"):
        warehouse.sql("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT CAST(name AS INT) AS n FROM shop.customers")
    with pytest.raises(StrandlineError, match="FILL_FAILED"):
        warehouse.sql("CREATE MATERIALIZED VIEW w AS SELECT CAST(name AS INT) AS n FROM shop.customers")
    assert (file.read_text(), rows(warehouse, "v"), warehouse.states()[0].number) == (text, shown, state)
    assert warehouse.views() == ["v"] and warehouse.plan().pending == ()
    assert {view.strategy for view in warehouse.refresh().views.values()} == {"none"}


def test_a_strict_view_is_rebuilt_by_an_edited_file_only_when_that_is_accepted(
    warehouse: Warehouse, tmp_path: Path
) -> None:
    file = tmp_path / "project" / "views" / "v.sql"
    text = f"CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT CLUSTER BY (c_id) AS {PER_CUSTOMER}"
    warehouse.sql(text)
    file.write_text(text.replace("count(*)", "count(day)"))
    with pytest.raises(StrandlineError, match="NOT_ACCEPTED"):
        warehouse.refresh()
    assert warehouse.refresh(accept=True).views["v"].strategy == "full"
    assert warehouse.verify("v").ok
    file.unlink()
    told = "v: its file is gone; DROP the view, or put the file back"
    assert warehouse.status().notes == warehouse.plan().notes == (told,)
    assert warehouse.status().pending == ()


def test_published_views_are_exported_to_the_catalog_of_the_session(
    warehouse: Warehouse, shop: Shop, engine: Engine
) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {PER_CUSTOMER}")
    engine.run("CREATE SCHEMA IF NOT EXISTS exported")
    assert warehouse.export_views("exported") == ["exported.v"]
    assert bag(engine.rows("SELECT * FROM exported.v")) == rows(warehouse, "v")
    engine.run("DROP SCHEMA exported CASCADE")


def test_a_wider_column_of_a_source_is_absorbed_and_another_type_waits_for_a_full_refresh(
    warehouse: Warehouse, engine: Engine, tmp_path: Path
) -> None:
    lake = tmp_path / "typed"
    table = f"delta.`{lake / 't'}`"
    engine.run(
        f"CREATE TABLE {table} (k INT, v INT, w INT) USING delta TBLPROPERTIES ('delta.enableTypeWidening' = 'true')"
    )
    engine.run(f"INSERT INTO {table} VALUES (1, 1, 1), (2, 2, 2)")
    warehouse.add_source("typed", kind="delta", path=str(lake))
    warehouse.sql("CREATE MATERIALIZED VIEW sums AS SELECT k, sum(v) AS v FROM typed.t GROUP BY k")
    warehouse.sql("CREATE MATERIALIZED VIEW others AS SELECT k, w FROM typed.t")
    engine.run(f"ALTER TABLE {table} ALTER COLUMN k TYPE BIGINT")
    engine.run(f"INSERT INTO {table} VALUES (5000000000, 3, 3)")
    assert warehouse.refresh().ok
    assert warehouse.read("others").schema["k"].dataType.simpleString() == "bigint"
    assert_verified(warehouse)
    replaced = engine.query("SELECT 7L AS k, 7 AS v, 'seven' AS w").write.format("delta").mode("overwrite")
    replaced.option("overwriteSchema", "true").save(str(lake / "t"))
    report = warehouse.refresh()
    problem = report.views["others"].problem
    assert problem is not None and "SOURCE_SCHEMA_CHANGED" in problem and "full refresh" in problem
    assert report.views["sums"].problem is None
    assert warehouse.refresh("others", full=True).ok
    assert [tuple(row) for row in warehouse.read("others").collect()] == [(7, "seven")]
    assert_verified(warehouse)


def test_an_interrupted_refresh_is_taken_up_again_in_the_same_process(warehouse: Warehouse, shop: Shop) -> None:
    warehouse.sql(f"CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL AS {PER_CUSTOMER}")
    shop.place_orders_only()

    def interrupt(event: Event) -> None:
        if (event.what, event.step) == ("started", "install"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        warehouse.refresh(watcher=interrupt)
    unfinished = warehouse.status().unfinished
    assert unfinished is not None
    report = warehouse.refresh()
    assert report.resumed == unfinished and report.state == 2
    assert warehouse.status().unfinished is None
    assert warehouse.verify("v").ok
