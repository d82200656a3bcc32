"""A project's life on the command line, with Spark."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.cli.context import Context
from strandline.engine.session import Engine
from tests.cli.conftest import Invoke, parsed, without_java

pytestmark = pytest.mark.spark

REVENUE = """
CREATE MATERIALIZED VIEW revenue AS
SELECT category, count(*) AS n, sum(amount) AS amount FROM lake.orders GROUP BY category
"""
LARGE = "CREATE MATERIALIZED VIEW large AS SELECT category, amount FROM revenue WHERE amount > 5"


@pytest.fixture
def context(engine: Engine) -> Iterator[Context]:
    yield Context(spark=engine.spark)


@pytest.fixture
def shop(empty: Path) -> Path:
    """A project over one table, with two views that are not applied yet."""
    orders = pa.table({"category": ["a", "b", "a"], "amount": pa.array([1, 20, 3], pa.int64())})
    write_deltalake(str(empty / "data" / "orders"), orders)
    (empty / "sources" / "lake.yml").write_text("kind: delta\npath: data\n")
    (empty / "views" / "revenue.sql").write_text(REVENUE)
    (empty / "views" / "large.sql").write_text(LARGE)
    return empty


def test_from_view_files_to_verified_views(shop: Path, context: Context, invoke: Invoke) -> None:
    filled = invoke("refresh", project=shop, context=context)
    assert filled.exit_code == 0, filled.output
    assert "FIRST_FILL" in filled.stdout
    assert "recomputing revenue: done in" in filled.stderr
    assert "the newest state is 1." in filled.stdout

    DeltaTable(str(shop / "data" / "orders")).update({"amount": "amount + 5"}, predicate="category = 'a'")
    behind = invoke("status", project=shop, context=context).stdout
    assert "1 of lake.orders" in behind
    planned = parsed(invoke("plan", "--json", project=shop, context=context))
    assert {view["name"]: view["strategy"] for view in planned["views"]} == {
        "revenue": "incremental", "large": "incremental"
    }  # fmt: skip
    assert "revenue" in invoke("plan", project=shop, context=context).stdout
    explained = invoke("explain", "large", project=shop, context=context).stdout
    assert "steps:" in explained
    assert "costs: fixed" in explained

    report = parsed(invoke("refresh", "--json", project=shop, context=context))
    assert (report["state"], report["ok"]) == (2, True)
    assert report["views"]["large"]["rows_inserted"] == 1
    assert "fresh" in invoke("status", project=shop, context=context).stdout

    verified = invoke("verify", project=shop, context=context)
    assert verified.exit_code == 0
    assert verified.stdout.count("equal") == 2
    named = parsed(invoke("verify", "large", "--json", project=shop, context=context))
    assert named == {
        "ok": True,
        "views": [{"view": "large", "state": 2, "ok": True, "rows": 2, "missing": 0, "extra": 0, "differ_by_order": 0}],
    }

    steps = parsed(invoke("history", "revenue", "--json", project=shop, context=context))["steps"]
    assert [(step["state"], step["kind"], step["strategy"]) for step in steps] == [
        (2, "install", "incremental"),
        (2, "compute", "incremental"),
        (1, "recompute", "full"),
    ]
    assert all(step["predicted"] > 0 and step["mode"] == "interpreted" for step in steps)
    assert steps[1]["measured"]["jobs"] == 0 and steps[1]["left_to_spark"] == steps[2]["left_to_spark"] == []
    history = invoke("history", "revenue", project=shop, context=context).stdout
    assert "FIRST_FILL" in history
    assert "predicted  seconds" in history

    profile = parsed(invoke("history", "--profile", "--json", project=shop, context=context))
    assert profile["state"] == 2
    assert sum(profile["parts"].values()) == pytest.approx(profile["seconds"], abs=0.02)
    profiled = {(step["kind"], step["subject"]): step for step in profile["steps"]}
    assert [step["start"] for step in profile["steps"]] == sorted(step["start"] for step in profile["steps"])
    compute, install = profiled["compute", "revenue"], profiled["install", "revenue"]
    assert compute["seconds"]["columns"] > 0 and "jobs" not in compute["seconds"]
    assert sum(compute["seconds"].values()) == pytest.approx(compute["elapsed"], abs=0.1)
    assert [(read["table"], read["rows"]) for read in compute["read"]] == [
        ("revenue", 2),
        ("changes of lake.orders", 4),
    ]
    assert next((read["table"], read["files"], read["of_files"]) for read in compute["read"]) == ("revenue", 1, 1)
    assert install["read"] == [], "small tables change without Spark"
    assert [commit["files_added"] for commit in install["wrote"]] == [1]
    printed = invoke("history", "--profile", profile["refresh"][:6], project=shop, context=context).stdout
    assert "columns, here" in printed
    assert "install revenue" in printed
    unknown = invoke("history", "--profile", "xyz", project=shop, context=context)
    assert (unknown.exit_code, "NO_PROFILE" in unknown.stderr) == (1, True)

    idle = without_java("--project", shop, "refresh", "--json")
    assert (idle.returncode, idle.stderr) == (0, "")
    assert {view["strategy"] for view in json.loads(idle.stdout)["views"].values()} == {"none"}


def test_what_goes_wrong_ends_with_status_1(shop: Path, context: Context, invoke: Invoke) -> None:
    assert invoke("refresh", project=shop, context=context).exit_code == 0
    tampered = next((shop / "warehouse" / "views").glob("large-*"))
    # Rows that nobody computed, in the version that the state shows.
    for file in tampered.glob("*.parquet"):
        _tamper(file)
    differs = invoke("verify", "large", project=shop, context=context)
    assert differs.exit_code == 1
    assert "differs" in differs.stdout
    assert "large lacks" in differs.stdout

    orders = pa.table({"category": ["a"], "amount": ["many"]})
    write_deltalake(str(shop / "data" / "orders"), orders, mode="overwrite", schema_mode="overwrite")
    report = invoke("refresh", project=shop, context=context)
    assert report.exit_code == 1
    assert "revenue keeps its last state: SOURCE_SCHEMA_CHANGED" in report.stderr
    again = parsed(invoke("refresh", "--json", project=shop, context=context))
    assert again["ok"] is False

    (shop / "views" / "bad.sql").write_text("CREATE MATERIALIZED VIEW bad AS SELECT nothing FROM lake.nowhere")
    refused = invoke("refresh", "--json", project=shop, context=context)
    assert refused.exit_code == 1
    assert parsed(refused)["error"]["file"] == "views/bad.sql"


def _tamper(file: Path) -> None:
    import pyarrow.parquet as pq

    table = pq.read_table(file)
    if table.num_rows == 0:
        return
    amounts = pa.array([value.as_py() + 1 for value in table["amount"]], table["amount"].type)
    place = table.schema.get_field_index("amount")
    pq.write_table(table.set_column(place, "amount", amounts), file)
    (file.parent / f".{file.name}.crc").unlink(missing_ok=True)


def test_a_constraint_that_is_set_aside_is_told(empty: Path, context: Context, invoke: Invoke) -> None:
    lake = empty / "data"
    write_deltalake(str(lake / "orders"), pa.table({"id": [1, 2]}))
    write_deltalake(str(lake / "lines"), pa.table({"of": [1, 2, 2]}))
    keys = "keys: {orders: [id]}\nconstraints: {lines: {foreign_keys: [{columns: [of], references: orders}]}}\n"
    (empty / "sources" / "lake.yml").write_text(f"kind: delta\npath: data\n{keys}")
    query = "SELECT o.id, count(*) AS n FROM lake.lines l JOIN lake.orders o ON l.of = o.id GROUP BY o.id"
    (empty / "views" / "counts.sql").write_text(f"CREATE MATERIALIZED VIEW counts AS {query}")
    assert "SET_ASIDE" not in invoke("refresh", project=empty, context=context).stdout
    write_deltalake(str(lake / "lines"), pa.table({"of": [3]}), mode="append")
    assert "constraint: foreign key" in invoke("explain", "counts", project=empty, context=context).stdout
    done = invoke("refresh", project=empty, context=context)
    assert done.exit_code == 0
    assert "counts: CONSTRAINT_SET_ASIDE: foreign key lake.lines(of) -> lake.orders(id) does not hold" in done.stdout
