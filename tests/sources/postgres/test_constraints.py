"""A foreign key over copies: both tables are seen after the same transactions, so a key that does not hold is an error.

Costs about half a minute of Spark on two cores.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.sources.postgres.live import Live, live

pytestmark = [pytest.mark.postgres, pytest.mark.spark]

FOREIGN_KEY = {"columns": ["o_id"], "references": "orders"}
QUERY = "SELECT o.state, count(*) AS n, sum(l.qty) AS qty FROM src.lines l JOIN src.orders o ON l.o_id = o.id"


def execute(opened: Live, *statements: str) -> None:
    with opened.writer.transaction():
        for statement in statements:
            opened.writer.execute(statement.encode())


def test_a_foreign_key_between_copies(database: str, tmp_path: Path, small: Engine) -> None:
    constraints = {"lines": {"foreign_keys": [FOREIGN_KEY]}}
    with live(database, tmp_path / "project", small) as opened:
        execute(
            opened,
            "CREATE TABLE orders (id int PRIMARY KEY, state text)",
            "CREATE TABLE lines (o_id int, line int, qty bigint, PRIMARY KEY (o_id, line))",
            "INSERT INTO orders SELECT i, 's' || i % 2 FROM generate_series(1, 6) AS i",
            "INSERT INTO lines SELECT i, n, i + n FROM generate_series(1, 6) AS i, generate_series(1, 2) AS n",
        )
        opened.warehouse.add_source("src", kind="postgres", dsn_env="STRANDLINE_TEST_DSN", constraints=constraints)
        opened.follow("totals", f"{QUERY} GROUP BY o.state")
        opened.warehouse.sql("CREATE MATERIALIZED VIEW lines_only WITH NO DATA AS SELECT o_id, qty FROM src.lines")
        opened.refresh()
        execute(
            opened,
            "INSERT INTO orders VALUES (7, 's7')",
            "INSERT INTO lines VALUES (7, 1, 70)",
            "DELETE FROM lines WHERE o_id = 1",
            "DELETE FROM orders WHERE id = 1",
            "UPDATE orders SET state = 's9' WHERE id IN (2, 3)",
        )
        assert "meet no old rows" in opened.warehouse.plan().node("totals").constraints[0]
        opened.refresh()
        opened.assert_same("totals")

        execute(opened, "DELETE FROM orders WHERE id = 4")
        execute(opened, "INSERT INTO lines VALUES (8, 1, 1)")
        before = opened.read("totals")
        report = opened.warehouse.refresh()
        problem = str(report.views["totals"].problem)
        assert problem.startswith("CONSTRAINT_VIOLATED: foreign key src.lines(o_id) -> src.orders(id) does not hold")
        assert opened.read("totals") == before
        assert report.views["lines_only"].problem is None

        execute(opened, "INSERT INTO orders VALUES (8, 's8')", "DELETE FROM lines WHERE o_id = 4")
        opened.refresh()
        opened.assert_same("totals")
        opened.assert_verified("totals")
