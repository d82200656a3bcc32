"""Base views over real sources that are not copied: by every algorithm, at every level, through faults."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from strandline import StrandlineError
from strandline.demo.server import PostgresServer
from strandline.engine.session import Engine
from strandline.integrate.levels import check
from strandline.propagate import base_views
from tests.conftest import bag, new_database
from tests.integrate.live import JOINED, RETURNED, TOTALS, Shop, rounds, shop

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

OVER_SEVERAL = ("auto", "sweep", "strobe", "c-strobe", "grouped", "grouped-by-frequency", "parallel-groups")
OVER_ONE = ("eca", "eca-key", "lca")


@pytest.fixture
def opened(tmp_path: Path, server: PostgresServer, engine: Engine) -> Iterator[Shop]:
    with new_database(server) as sales, new_database(server) as crm, shop(tmp_path, sales, crm, engine) as found:
        yield found


def test_every_algorithm_follows_its_sources(opened: Shop) -> None:
    """All base views move together, ask their sources themselves, and nothing is copied."""
    for algorithm in OVER_SEVERAL:
        opened.follow(f"joined_{algorithm.replace('-', '_')}", algorithm=algorithm)
    for algorithm in OVER_ONE:
        opened.follow(f"returned_{algorithm.replace('-', '_')}", RETURNED, algorithm=algorithm)
    opened.refreshed()
    for _ in islice(rounds(opened), 1):
        report = opened.refreshed()
        asked = [report.asked[opened.base_view(f"joined_{name}")] for name in ("auto", "sweep")]
        assert sorted(int(told["sent_bytes"]) > 0 for told in asked) == [False, True], "the same is asked once"
        assert {told["updates"] for told in report.asked.values()} <= {0, 1, 2, 3}
    assert not opened.warehouse.copies()
    for view in opened.warehouse.status().base_views:
        assert len(loads(opened, view.name)) == 1, "what was filled once goes on from there"
    stored = {view.of for view in opened.warehouse.status().base_views if view.of is not None}
    assert len(stored) == 3, "the grouped algorithms keep auxiliary views"
    report = opened.refreshed()
    assert all(not told["updates"] and not told["queries"] for told in report.asked.values())


def test_views_above_follow_and_verify_compares_with_the_sources(opened: Shop) -> None:
    opened.crm.execute("INSERT INTO customers SELECT i, 'many', 'far' FROM generate_series(1000, 5000) AS i")
    opened.follow("joined")
    opened.warehouse.sql(f"CREATE MATERIALIZED VIEW totals WITH NO DATA AS {TOTALS}")
    opened.refreshed()
    for _ in rounds(opened):
        (asked,) = opened.refreshed().asked.values()
        assert int(asked["fetched_rows"]) < 60, "what is fetched is in proportion to the change, not to the tables"
        check_totals(opened)
    opened.sales.execute("INSERT INTO orders VALUES (77, 5, 1, 1, '')")
    found = opened.warehouse.verify("joined")
    assert found.ok and found.rows == len(opened.joined())
    assert opened.warehouse.verify("totals").ok


def check_totals(opened: Shop) -> None:
    expected: dict[tuple[str | None, str], list[Decimal]] = {}
    for _, amount, _, region, title in opened.joined():
        expected.setdefault((region, title), []).append(amount)
    totals = [(region, title, sum(amounts), len(amounts)) for (region, title), amounts in expected.items()]
    assert bag(opened.shown("totals")) == bag(totals)


def test_a_complete_view_shows_every_state_of_its_sources(opened: Shop) -> None:
    opened.follow("joined", level="COMPLETE")
    opened.refreshed()
    states = [bag(opened.joined())]
    for id_, customer, product, amount in ((2, 0, 0, 1), (50, 5, 0, 7), (51, 9, 1, 8), (2, 0, 0, 3)):
        with opened.sales.transaction():
            opened.sales.execute("DELETE FROM orders WHERE id = %s", (id_,))
            given = (id_, customer, product, amount)
            opened.sales.execute("INSERT INTO orders (id, customer, product, amount) VALUES (%s, %s, %s, %s)", given)
        states.append(bag(opened.joined()))
    for statement in ("DELETE FROM customers WHERE id = 5", "INSERT INTO customers VALUES (5, 'eve', 'east')"):
        opened.crm.execute(statement.encode())
        states.append(bag(opened.joined()))
    state = opened.refreshed().state
    arrived = [(each.source, each.number) for each in opened.warehouse.transactions("joined") if each.state == state]
    assert arrived == [("sales", 1), ("sales", 2), ("sales", 3), ("sales", 4), ("crm", 5), ("crm", 6)]
    shown = [bag(map(tuple, opened.warehouse.read("joined", transaction=number).collect())) for number in range(7)]
    verdict = check(states, shown)
    assert verdict.reached == "COMPLETE", verdict.witnesses
    assert refused(lambda: opened.warehouse.read("joined", transaction=7)) == "UNKNOWN_TRANSACTION"


def test_what_cannot_be_kept_is_refused(opened: Shop) -> None:
    create = opened.warehouse.sql
    grouped = "SELECT why, count(*) AS n FROM sales.returns GROUP BY why"
    levels = {
        "CREATE MATERIALIZED VIEW v CONSISTENCY COMPLETE AS " + grouped: "LEVEL_NOT_REACHED",
        "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('strandline.algorithm' = 'eca') AS " + JOINED: "SEVERAL_SOURCES",
        "CREATE MATERIALIZED VIEW v CONSISTENCY COMPLETE AS SELECT id FROM lake.products": "NOTHING_TO_COMPENSATE",
        "SELECT * FROM sales.orders": "NOT_COPIED",
    }
    for statement, code in levels.items():
        assert refused(lambda statement=statement: create(statement)) == code, statement
    strobe = "CREATE MATERIALIZED VIEW v TBLPROPERTIES ('strandline.algorithm' = 'strobe') AS "
    opened.sales.execute("ALTER TABLE returns DROP CONSTRAINT returns_pkey")
    assert refused(lambda: create(strobe + RETURNED)) == "KEYS_MISSING"
    opened.sales.execute("ALTER TABLE returns REPLICA IDENTITY DEFAULT")
    with pytest.raises(StrandlineError, match=r"ALTER TABLE .*returns.* REPLICA IDENTITY FULL"):
        create("CREATE MATERIALIZED VIEW v AS " + RETURNED)
    assert opened.warehouse.views() == []
    opened.follow("orders", "SELECT id FROM sales.orders")
    assert refused(lambda: opened.warehouse.alter_source("sales", copies=True)) == "SOURCE_IN_USE"


def test_a_query_that_is_run_whole_reads_base_views(opened: Shop) -> None:
    query = "SELECT o.customer, length(uuid()) AS n FROM sales.orders o WHERE o.id < 3"
    opened.warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    assert bag(opened.shown("v")) == bag([(1, 36), (2, 36)])
    opened.sales.execute("UPDATE orders SET customer = 7 WHERE id = 2")
    report = opened.warehouse.refresh()
    assert report.views["v"].reason.code == "NON_DETERMINISTIC"
    assert bag(opened.shown("v")) == bag([(1, 36), (7, 36)])
    assert opened.warehouse.verify("v").ok


def test_a_condition_that_the_source_does_not_know_is_evaluated_here(opened: Shop) -> None:
    query = f"{RETURNED} AND soundex(o.note) = soundex(r.why) AND o.amount > 1"
    explained = str(opened.warehouse.sql(f"EXPLAIN CREATE MATERIALIZED VIEW v AS {query}"))
    assert "EVALUATED_HERE" in explained and "soundex" in explained
    opened.warehouse.sql(f"CREATE MATERIALIZED VIEW v WITH NO DATA AS {query}")
    opened.warehouse.refresh()
    opened.sales.execute("UPDATE returns SET why = 'n6' WHERE id = 3")
    opened.sales.execute("INSERT INTO orders VALUES (20, 1, 1, 5, 'x'), (21, 1, 1, 0.5, 'y')")
    opened.sales.execute("INSERT INTO returns VALUES (20, 20, 'x'), (21, 21, 'y'), (22, 20, 'm')")
    assert opened.warehouse.refresh().ok
    assert bag(opened.shown("v")) == bag([(6, Decimal("9.00"), "n6"), (20, Decimal("5.00"), "x")])


def test_a_source_that_fails_delays_its_views_alone(opened: Shop) -> None:
    opened.follow("joined")
    opened.follow("returned", RETURNED)
    opened.refreshed()
    kept = opened.shown("joined")
    opened.crm.execute("ALTER TABLE customers RENAME TO customers_")
    opened.sales.execute("INSERT INTO orders VALUES (30, 0, 0, 1, '')")
    opened.sales.execute("INSERT INTO returns VALUES (30, 30, '')")
    report = opened.warehouse.refresh()
    assert "SOURCE_TABLE_GONE" in str(report.views["joined"].problem)
    assert report.views["returned"].problem is None
    assert opened.shown("joined") == kept
    assert (30, Decimal("1.00"), "") in opened.shown("returned")
    opened.crm.execute("ALTER TABLE customers_ RENAME TO customers")
    opened.refreshed()


def test_odd_values_join_as_in_spark(opened: Shop) -> None:
    """Arrays, NaN, both zeros and NULL, in a self-join."""
    opened.sales.execute("CREATE TABLE odd (id int PRIMARY KEY, tags int[], f float8)")
    opened.sales.execute("ALTER TABLE odd REPLICA IDENTITY FULL")
    opened.sales.execute("INSERT INTO odd VALUES (1, '{1,NULL}', 'NaN'), (2, '{}', 0), (3, NULL, NULL)")
    query = "SELECT a.id, a.tags, b.id AS other FROM sales.odd a JOIN sales.odd b ON a.f = b.f"
    opened.warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
    opened.sales.execute("INSERT INTO odd VALUES (4, '{4}', 'NaN'), (5, '{5,6}', '-0'), (6, '{}', NULL)")
    opened.sales.execute("UPDATE odd SET tags = '{7}' WHERE id = 1")
    assert opened.warehouse.refresh().ok
    pairs = [(1, [7], 1), (1, [7], 4), (4, [4], 1), (4, [4], 4), (2, [], 2), (2, [], 5), (5, [5, 6], 2), (5, [5, 6], 5)]
    assert sorted(opened.shown("v")) == sorted(pairs)
    opened.sales.execute("DELETE FROM odd WHERE id IN (1, 5)")
    assert opened.warehouse.verify("v").ok
    assert sorted(opened.shown("v")) == [(2, [], 2), (4, [4], 4)]


def test_rows_that_lost_their_key_are_not_taken_for_a_set(opened: Shop) -> None:
    opened.follow("returned", RETURNED)
    opened.refreshed()
    opened.sales.execute("ALTER TABLE returns DROP CONSTRAINT returns_pkey")
    opened.sales.execute("INSERT INTO returns SELECT * FROM returns")
    report = opened.warehouse.refresh()
    assert "SOURCE_SCHEMA_CHANGED" in str(report.views["returned"].problem)
    opened.sales.execute("DELETE FROM returns a USING returns b WHERE a.ctid > b.ctid AND a.id = b.id")
    opened.sales.execute("ALTER TABLE returns ADD PRIMARY KEY (id)")
    opened.refreshed()


def test_a_server_that_is_down_is_waited_for_and_loses_nothing(
    opened: Shop, server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strandline.sources.postgres.source.GIVEN_UP_FOR", 0.0)
    opened.follow("returned", RETURNED)
    opened.warehouse.sql("CREATE MATERIALIZED VIEW products WITH NO DATA AS SELECT id, title FROM lake.products")
    opened.refreshed()
    opened.sales.execute("INSERT INTO returns VALUES (40, 7, 'before')")
    opened.add_products((9, "salt"))
    opened.warehouse.alter_source("sales", patience=1)
    server.kill()
    report = opened.warehouse.refresh()
    assert "SOURCE_UNREACHABLE" in str(report.views["returned"].problem)
    assert report.views["products"].problem is None
    assert (9, "salt") in opened.shown("products")
    server.restart()
    opened.warehouse.alter_source("sales", patience=30)
    assert opened.warehouse.refresh().ok
    assert (7, Decimal("10.50"), "before") in opened.shown("returned")
    assert opened.warehouse.verify("returned").ok


def test_what_is_lost_is_filled_anew_with_a_reason(opened: Shop) -> None:
    opened.follow("returned", RETURNED)
    opened.refreshed()
    opened.sales.execute("TRUNCATE returns")
    opened.sales.execute("INSERT INTO returns VALUES (1, 5, 'again')")
    assert filled(opened) == "SOURCE_TRUNCATED"
    opened.sales.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()"
    )
    opened.sales.execute("UPDATE orders SET amount = 9")
    assert filled(opened) == "SLOT_LOST"
    (base,) = opened.warehouse.status().base_views
    assert opened.warehouse.refresh(base.name, full=True).ok
    assert loads(opened, base.name)[0] == "REQUESTED"
    opened.refreshed()


def test_a_table_that_is_emptied_before_its_source_is_held_is_filled_from(
    opened: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The log that is taken in while a source is held may tell more than the one before."""
    opened.warehouse.sql("CREATE MATERIALIZED VIEW whys AS SELECT id, why FROM sales.returns")
    integrate, statements = base_views._integrate, ["TRUNCATE returns; INSERT INTO returns VALUES (9, 9, 'after')"]

    def emptied_first(*args: Any) -> Any:
        while statements:
            opened.sales.execute(statements.pop().encode())
        return integrate(*args)

    monkeypatch.setattr(base_views, "_integrate", emptied_first)
    opened.sales.execute("INSERT INTO returns VALUES (8, 8, 'before')")
    for _ in range(2):
        assert opened.warehouse.refresh().ok
        assert opened.shown("whys") == [(9, "after")]
    assert not statements


def test_a_base_view_that_cannot_be_filled_leaves_the_others_alone(opened: Shop) -> None:
    opened.sales.execute("INSERT INTO orders VALUES (99, 0, 0, 'NaN', '')")
    for view in ("amounts AS SELECT id, amount FROM sales.orders", "whys AS SELECT id, why FROM sales.returns"):
        name, _, query = view.partition(" AS ")
        opened.warehouse.sql(f"CREATE MATERIALIZED VIEW {name} WITH NO DATA AS {query}")
    report = opened.warehouse.refresh()
    assert "SOURCE_VALUE" in str(report.views["amounts"].problem)
    assert report.views["whys"].problem is None and len(opened.shown("whys")) == 4
    left = "SELECT count(*) FROM pg_stat_activity WHERE state LIKE 'idle in transaction%'"
    assert opened.sales.execute(left.encode()).fetchall() == [(0,)]


def filled(opened: Shop) -> str:
    """Refresh; why the base view was filled."""
    opened.refreshed()
    return loads(opened, opened.warehouse.status().base_views[0].name)[0]


def loads(opened: Shop, base: str) -> list[str]:
    """Why a base view was filled from its tables, each time, the last first."""
    plans = [entry.refresh.plan for entry in opened.warehouse.history(base) if entry.step.kind == "load"]
    told = [{view["name"]: view["reason"]["code"] for view in plan["views"]} for plan in plans]  # type: ignore[index,call-overload,union-attr]
    return [str(each[base]) for each in told]


def refused(action: object) -> str:
    with pytest.raises(StrandlineError) as caught:
        action()  # type: ignore[operator]
    return caught.value.code
