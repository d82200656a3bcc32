"""What a good engineer writes instead: a pipeline from change feed to MERGE for each of some queries.

A pipeline keeps sums and a count by group. The change feed of each table is read once and cached. Of each query, the
changes of one table after another are joined with the others, before it as they are and behind it as they were; what
cancels out in the columns that the query uses is left out. One MERGE adds the sums, and takes out groups that ended.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.processors import Stopwatch
from bench.tpch.lake import Lake, Versions

_VOLUME = "l_extendedprice * (1 - l_discount)"


@dataclass(frozen=True)
class Pipeline:
    """A query as sums by group over a join, and how its rows come from them."""

    reads: Mapping[str, Sequence[str]]
    """Tables, those that change most first, with the columns that are used."""
    condition: str
    keys: Sequence[str]
    sums: Mapping[str, str]
    result: str
    """Over ``{state}``, and tables of the lake in braces."""

    def select(self, tables: Mapping[str, str], sign: str) -> str:
        """The sums over *tables*, each given as rows; *sign* is 1 or a product of columns."""
        times = "" if sign == "1" else f" * ({sign})"
        sums = [f"sum(({value}){times}) AS {name}" for name, value in self.sums.items()]
        listed = ", ".join([*self.keys, *sums, f"sum({sign}) AS n"])
        joined = ", ".join(f"({rows}) AS {table}" for table, rows in tables.items())
        grouped = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {listed} FROM {joined} WHERE {self.condition}{grouped}"


PIPELINES = {
    "q1": Pipeline(
        {"lineitem": ("l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount", "l_tax",
                      "l_shipdate")},
        "l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAY",
        ("l_returnflag", "l_linestatus"),
        {"sum_qty": "l_quantity", "sum_base_price": "l_extendedprice", "sum_disc_price": _VOLUME,
         "sum_charge": f"{_VOLUME} * (1 + l_tax)", "sum_disc": "l_discount"},
        "SELECT l_returnflag, l_linestatus, sum_qty, sum_base_price, sum_disc_price, sum_charge, "
        "CAST(sum_qty / n AS DECIMAL(19, 6)) AS avg_qty, CAST(sum_base_price / n AS DECIMAL(19, 6)) AS avg_price, "
        "CAST(sum_disc / n AS DECIMAL(19, 6)) AS avg_disc, n AS count_order FROM {state}",
    ),
    "q3": Pipeline(
        {"lineitem": ("l_orderkey", "l_extendedprice", "l_discount", "l_shipdate"),
         "orders": ("o_orderkey", "o_custkey", "o_orderdate", "o_shippriority"),
         "customer": ("c_custkey", "c_mktsegment")},
        "c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey "
        "AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'",
        ("l_orderkey", "o_orderdate", "o_shippriority"),
        {"revenue": _VOLUME},
        "SELECT l_orderkey, revenue, o_orderdate, o_shippriority FROM {state} "
        "ORDER BY revenue DESC, o_orderdate LIMIT 10",
    ),
    "q5": Pipeline(
        {"lineitem": ("l_orderkey", "l_suppkey", "l_extendedprice", "l_discount"),
         "orders": ("o_orderkey", "o_custkey", "o_orderdate"),
         "customer": ("c_custkey", "c_nationkey"), "supplier": ("s_suppkey", "s_nationkey"),
         "nation": ("n_nationkey", "n_regionkey", "n_name"), "region": ("r_regionkey", "r_name")},
        "c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey "
        "AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' "
        "AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL 1 YEAR",
        ("n_name",),
        {"revenue": _VOLUME},
        "SELECT n_name, revenue FROM {state}",
    ),
    "q6": Pipeline(
        {"lineitem": ("l_extendedprice", "l_discount", "l_quantity", "l_shipdate")},
        "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL 1 YEAR "
        "AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24",
        (),
        {"revenue": "l_extendedprice * l_discount"},
        "SELECT sum(revenue) AS revenue FROM {state}",
    ),
    "q10": Pipeline(
        {"lineitem": ("l_orderkey", "l_extendedprice", "l_discount", "l_returnflag"),
         "orders": ("o_orderkey", "o_custkey", "o_orderdate")},
        "l_orderkey = o_orderkey AND o_orderdate >= DATE '1993-10-01' "
        "AND o_orderdate < DATE '1993-10-01' + INTERVAL 3 MONTH AND l_returnflag = 'R'",
        ("o_custkey",),
        {"revenue": _VOLUME},
        "SELECT c_custkey, c_name, revenue, c_acctbal, n_name, c_address, c_phone, c_comment "
        "FROM {state}, {customer}, {nation} WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey "
        "ORDER BY revenue DESC LIMIT 20",
    ),
    "q12": Pipeline(
        {"lineitem": ("l_orderkey", "l_shipmode", "l_shipdate", "l_commitdate", "l_receiptdate"),
         "orders": ("o_orderkey", "o_orderpriority")},
        "o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate "
        "AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' "
        "AND l_receiptdate < DATE '1994-01-01' + INTERVAL 1 YEAR",
        ("l_shipmode",),
        {"high_line_count": "CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END",
         "low_line_count": "CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END"},
        "SELECT l_shipmode, high_line_count, low_line_count FROM {state}",
    ),
    "q14": Pipeline(
        {"lineitem": ("l_partkey", "l_extendedprice", "l_discount", "l_shipdate"), "part": ("p_partkey", "p_type")},
        "l_partkey = p_partkey AND l_shipdate >= DATE '1995-09-01' "
        "AND l_shipdate < DATE '1995-09-01' + INTERVAL 1 MONTH",
        (),
        {"promo": f"CASE WHEN p_type LIKE 'PROMO%' THEN {_VOLUME} ELSE 0 END", "volume": _VOLUME},
        "SELECT 100.00 * promo / volume AS promo_revenue FROM {state}",
    ),
}  # fmt: skip

SHARED = "changes"
"""Reading the change feeds, among the seconds of the pipelines."""


class Pipelines:
    """The states of all pipelines below a folder, and the versions of the tables that they show."""

    def __init__(self, spark: Any, lake: Lake, folder: Path, names: Sequence[str]) -> None:
        self.names = names
        self._spark = spark.newSession()
        self._lake = lake
        self._folder = folder
        self._note = folder / "versions.json"

    def prepare(self, versions: Versions) -> None:
        """Make the states anew where they do not show *versions*."""
        if self._note.exists() and json.loads(self._note.read_text("utf-8")) == dict(versions):
            return
        for name in self.names:
            reads = PIPELINES[name].reads.items()
            tables = {table: self._rows(table, columns, versions) for table, columns in reads}
            made = self._spark.sql(PIPELINES[name].select(tables, "1"))
            made.write.format("delta").mode("overwrite").save(self._path(name))
        self._note_down(versions)

    def follow(self, before: Versions, after: Versions) -> dict[str, Stopwatch]:
        """Bring all states from one set of versions to another; what each took, and reading what changed."""
        self._note.unlink()
        changed = [table for table in after if before[table] != after[table]]
        with Stopwatch() as watch:
            feeds = [self._feed(table, before[table], after[table]) for table in changed]
        found = {SHARED: watch}
        for name in self.names:
            with Stopwatch() as watch:
                self._one(name, PIPELINES[name], changed, before, after)
            found[name] = watch
        for feed in feeds:
            feed.unpersist()
        self._note_down(after)
        return found

    def rows(self, name: str) -> str:
        """The result of a query, in parentheses."""
        tables = {table: f"delta.`{self._lake.path(table)}`" for table in ("customer", "nation")}
        return f"({PIPELINES[name].result.format(state=f'delta.`{self._path(name)}`', **tables)})"

    def _one(self, name: str, pipeline: Pipeline, changed: Sequence[str], before: Versions, after: Versions) -> None:
        terms = list(self._terms(pipeline, changed, before, after))
        if not terms:
            return
        listed = ", ".join([*pipeline.keys, *(f"coalesce(sum({c}), 0) AS {c}" for c in (*pipeline.sums, "n"))])
        grouped = f" GROUP BY {', '.join(pipeline.keys)}" if pipeline.keys else ""
        delta = f"SELECT {listed} FROM ({' UNION ALL '.join(terms)}){grouped}"
        matched = " AND ".join(f"state.{key} <=> delta.{key}" for key in pipeline.keys) or "true"
        added = ", ".join(f"state.{c} = state.{c} + delta.{c}" for c in (*pipeline.sums, "n"))
        columns = ", ".join([*pipeline.keys, *pipeline.sums, "n"])
        values = ", ".join(f"delta.{c}" for c in (*pipeline.keys, *pipeline.sums, "n"))
        self._spark.sql(
            f"MERGE INTO delta.`{self._path(name)}` AS state USING ({delta}) AS delta ON {matched} "
            "WHEN MATCHED AND state.n + delta.n = 0 THEN DELETE "
            f"WHEN MATCHED THEN UPDATE SET {added} "
            f"WHEN NOT MATCHED AND delta.n <> 0 THEN INSERT ({columns}) VALUES ({values})"
        )

    def _terms(self, pipeline: Pipeline, changed: Sequence[str], before: Versions, after: Versions) -> Iterator[str]:
        """A term for each table whose changes the query sees."""
        for place, (table, columns) in enumerate(pipeline.reads.items()):
            if table not in changed:
                continue
            net = self._net(table, columns)
            if net is None:
                continue
            rows = {
                other: net if other == table else self._rows(other, used, after if number < place else before)
                for number, (other, used) in enumerate(pipeline.reads.items())
            }
            yield pipeline.select(rows, "sign")

    def _net(self, table: str, columns: Sequence[str]) -> str | None:
        """The changes of a table in some columns; None if there are none."""
        listed = ", ".join(columns)
        net = f"SELECT {listed}, sum(sign) AS sign FROM feed_{table} GROUP BY {listed} HAVING sum(sign) <> 0"
        return None if self._spark.sql(net).isEmpty() else net

    def _feed(self, table: str, after: int, upto: int) -> Any:
        reader = self._spark.read.format("delta").option("readChangeFeed", "true")
        feed = reader.option("startingVersion", after + 1).option("endingVersion", upto).load(self._lake.path(table))
        sign = "CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1 ELSE -1 END AS sign"
        feed = feed.selectExpr("*", sign).drop("_change_type", "_commit_version", "_commit_timestamp").cache()
        feed.count()
        feed.createOrReplaceTempView(f"feed_{table}")
        return feed

    def _rows(self, table: str, columns: Sequence[str], versions: Versions) -> str:
        return f"SELECT {', '.join(columns)} FROM delta.`{self._lake.path(table)}` VERSION AS OF {versions[table]}"

    def _path(self, name: str) -> str:
        return str(self._folder / name)

    def _note_down(self, versions: Versions) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._note.write_text(json.dumps(dict(versions)), encoding="utf-8")
