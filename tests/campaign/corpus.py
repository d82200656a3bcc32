"""View definitions over three tables with NULLs, duplicates and decimals, followed through random rounds of changes.

``python -m tests.campaign.corpus [SEED] [VIEW ...]``
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import DeltaTable, write_deltalake

from strandline import Warehouse
from strandline.engine.session import Engine

VIEWS = {
    "left_join": "SELECT r.k, r.a, s.k AS sk, s.b FROM l.r LEFT JOIN l.s ON r.a = s.a",
    "right_join": "SELECT r.k, s.k AS sk, s.b FROM l.r RIGHT JOIN l.s ON r.a = s.a AND s.b > 0",
    "full_join": "SELECT r.k, s.k AS sk FROM l.r FULL OUTER JOIN l.s ON r.a = s.a AND r.b = s.b",
    "left_joins": "SELECT r.k, s.k AS sk, t.k AS tk FROM l.r LEFT JOIN l.s ON r.a = s.a LEFT JOIN l.t ON s.b = t.b "
    "WHERE r.t IS NOT NULL",
    "theta_left_join": "SELECT r.k, s.k AS sk FROM l.r LEFT JOIN l.s ON r.a > s.a AND r.t = 'x'",
    "grouped_left_join": "SELECT r.a, count(s.k) AS n, sum(s.d) AS d FROM l.r LEFT JOIN l.s ON r.a = s.a "
    "AND s.t <> 'x' GROUP BY r.a",
    "with_exists": "SELECT k, a FROM l.r WHERE EXISTS (SELECT 1 FROM l.s WHERE s.a = r.a AND s.b <> r.b)",
    "with_not_exists": "SELECT k, a FROM l.r WHERE NOT EXISTS (SELECT * FROM l.s WHERE s.a = r.a)",
    "grouped_exists": "SELECT a, count(*) AS n FROM l.r WHERE EXISTS (SELECT 1 FROM l.s WHERE s.a = r.a) GROUP BY a",
    "in_query": "SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s WHERE b > 0) AND t = 'x'",
    "not_in_query": "SELECT k FROM l.r WHERE a NOT IN (SELECT b FROM l.s WHERE t = 'y')",
    "in_groups": "SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s GROUP BY a HAVING count(*) > 1)",
    "nested_in": "SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s WHERE b IN (SELECT b FROM l.t WHERE t.t = s.t))",
    "semi_join": "SELECT r.k FROM l.r LEFT SEMI JOIN l.s ON r.a = s.a AND s.k > r.k",
    "anti_join": "SELECT r.k, r.b FROM l.r LEFT ANTI JOIN l.s ON r.a = s.a",
    "union_distinct": "SELECT a, b FROM l.r UNION SELECT a, b FROM l.s",
    "intersect_distinct": "SELECT a, b FROM l.r INTERSECT SELECT a, b FROM l.s",
    "intersect_all": "SELECT a FROM l.r INTERSECT ALL SELECT a FROM l.s",
    "except_distinct": "SELECT a, t FROM l.r EXCEPT SELECT a, t FROM l.s",
    "except_all": "SELECT a FROM l.r EXCEPT ALL SELECT b FROM l.s",
    "derived_left_join": "SELECT x.a, x.n, t.k FROM (SELECT a, count(*) AS n FROM l.r GROUP BY a) x "
    "LEFT JOIN l.t ON t.a = x.a",
    "one_scalar": "SELECT k, a FROM l.r WHERE a > (SELECT avg(b) FROM l.s)",
    "correlated_scalar": "SELECT r.k, r.d FROM l.r WHERE r.d >= (SELECT min(s.d) FROM l.s WHERE s.a = r.a)",
    "scalar_count": "SELECT r.k, (SELECT count(*) FROM l.s WHERE s.a = r.a AND s.b > 0) AS n FROM l.r",
    "two_scalars": "SELECT r.k, (SELECT max(b) FROM l.t) AS m, (SELECT sum(d) FROM l.s WHERE s.b = r.b) AS sd FROM l.r "
    "WHERE t = 'x'",
    "having_scalar": "SELECT a, sum(d) AS s FROM l.r GROUP BY a HAVING sum(d) > (SELECT sum(d) / 10 FROM l.s)",
    "like_q13": "SELECT n, count(*) AS c FROM (SELECT r.a, count(s.k) AS n FROM l.r LEFT OUTER JOIN l.s ON r.a = s.a "
    "AND s.t NOT LIKE 'y%' GROUP BY r.a) x GROUP BY n",
    "like_q15": "WITH rev AS (SELECT a, sum(d) AS total FROM l.r GROUP BY a) SELECT t.k, rev.total FROM l.t "
    "JOIN rev ON t.a = rev.a WHERE rev.total = (SELECT max(total) FROM rev)",
    "like_q20": "SELECT k FROM l.r WHERE a IN (SELECT a FROM l.s WHERE b IN (SELECT b FROM l.t WHERE t.t LIKE 'x%') "
    "AND s.k > (SELECT 0.5 * sum(t.b) FROM l.t WHERE t.a = s.a AND t.b = s.b))",
    "like_q21": "SELECT r1.a, count(*) AS n FROM l.r r1 WHERE EXISTS (SELECT * FROM l.r r2 WHERE r2.a = r1.a AND "
    "r2.b <> r1.b) AND NOT EXISTS (SELECT * FROM l.r r3 WHERE r3.a = r1.a AND r3.b <> r1.b AND r3.t = 'y') "
    "GROUP BY r1.a",
    "like_q22": "SELECT t, count(*) AS n, sum(d) AS s FROM l.r WHERE d > (SELECT avg(d) FROM l.r WHERE d > 0.00) "
    "AND NOT EXISTS (SELECT * FROM l.s WHERE s.a = r.a) GROUP BY t",
    "window_sums": "SELECT k, a, sum(b) OVER (PARTITION BY a) AS s, count(*) OVER (PARTITION BY a) AS n FROM l.r",
    "window_ranks": "SELECT k, rank() OVER (PARTITION BY t ORDER BY a, b) AS rk, max(d) OVER (PARTITION BY t, b) AS m "
    "FROM l.r WHERE a IS NOT NULL",
    "window_of_all": "SELECT k, count(*) OVER () AS n FROM l.s",
    "lateral_view": "SELECT r.k, e.x FROM l.r LATERAL VIEW explode(array(a, b)) e AS x WHERE e.x IS NOT NULL",
    "lateral_view_outer": "SELECT k, p, x FROM l.r LATERAL VIEW OUTER posexplode(split(t, 'y')) e AS p, x",
}

TABLE = pa.schema(
    [("k", pa.int64()), ("a", pa.int64()), ("b", pa.int64()), ("t", pa.string()), ("d", pa.decimal128(10, 2))]
)


class Corpus:
    """Three Delta tables, and views over them."""

    def __init__(self, folder: Path, engine: Engine, seed: int, views: Iterable[str]) -> None:
        self.random = random.Random(seed)
        self.folder = folder
        self.next_key = 0
        for table in "rst":
            write_deltalake(self.path(table), self.rows(12))
        self.warehouse = Warehouse.open(folder / "project", spark=engine.spark)
        self.warehouse.add_source("l", kind="delta", path=str(folder / "lake"))
        for name in views:
            self.warehouse.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {VIEWS[name]}")

    def path(self, table: str) -> str:
        return str(self.folder / "lake" / table)

    def rows(self, count: int) -> pa.Table:
        choose = self.random.choice
        found: list[dict[str, Any]] = []
        for _ in range(count):
            self.next_key += 1
            amount = choose([None, Decimal("1.50"), Decimal("2.25"), Decimal("-1.00")])
            text = choose([None, "x", "y", "z"])
            found.append({"k": self.next_key, "a": choose([None, 0, 1, 2, 3]), "b": choose([None, 0, 1, 2]), "t": text})
            found[-1]["d"] = amount
        return pa.Table.from_pylist(found, TABLE)

    def change(self, *, emptying: bool) -> None:
        """Insert, delete and update rows of most tables; now and then a table is emptied."""
        for table in "rst":
            if self.random.random() < 0.2:
                continue
            what = self.random.choice(["insert", "delete", "update", "all", "all", "empty" if emptying else "all"])
            if what == "empty":
                DeltaTable(self.path(table)).delete()
                continue
            if what in ("insert", "all"):
                write_deltalake(self.path(table), self.rows(self.random.randrange(1, 4)), mode="append")
            if what in ("delete", "all"):
                DeltaTable(self.path(table)).delete(f"k % 5 = {self.random.randrange(5)}")
            if what in ("update", "all"):
                values = {"a": str(self.random.randrange(4)), "b": self.random.choice(["b + 1", "NULL"])}
                DeltaTable(self.path(table)).update(predicate=f"k % 4 = {self.random.randrange(4)}", updates=values)

    def refresh(self) -> None:
        """Refresh, and compare every view with its recomputation."""
        report = self.warehouse.refresh()
        assert report.ok, report.to_dict()
        assert all(view.strategy != "full" for view in report.views.values()), report.to_dict()
        self.verify()

    def verify(self) -> None:
        for name in self.warehouse.views():
            found = self.warehouse.verify(name)
            assert found.ok, (name, found.missing.limit(3).collect(), found.extra.limit(3).collect())


def main(seed: int, views: list[str], rounds: int = 4) -> None:
    engine = Engine(settings={"spark.driver.memory": "2g"})
    with tempfile.TemporaryDirectory(prefix="strandline-corpus-") as folder:
        corpus = Corpus(Path(folder), engine, seed, views or list(VIEWS))
        corpus.verify()
        for number in range(rounds):
            corpus.change(emptying=number == rounds - 2)
            corpus.refresh()
            print(f"round {number + 1}: {len(views or VIEWS)} views equal their recomputation", flush=True)
        corpus.warehouse.close()
    engine.close()


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1, sys.argv[2:])
