"""What a very good engineer writes instead: a pipeline from change feed to MERGE for each of some queries.

A pipeline keeps sums and a count by group. The change feed of each table is read once, in the columns that pipelines
use: by primary key what a row was and what it is, cached as signed rows. One job for each table counts them and takes
the bounds of their keys; those stand as literals in the scans of the tables that they are joined with and in MERGE's
condition, so that Delta skips files. Of each query, the changes of one table after another are joined with the others,
before it as they are and behind it as they were. One MERGE adds the sums, and takes out groups that ended.

Two pipelines run at a time. What is told of each is its share of the time that all took, so that shares add up to it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.processors import Stopwatch
from bench.tpch.lake import Lake, Versions
from tests.campaign.tpch.tables import KEYS

_AT_ONCE = 2
"""Pipelines; each leaves the processors idle while Spark plans and Delta commits."""

_VOLUME = "l_extendedprice * (1 - l_discount)"

Ranges = Sequence[tuple[int, int]]
"""Of a key, the least and the most among rows that came, that went and that changed: one range would hold the table
where old rows go and new ones come."""


@dataclass(frozen=True)
class Change:
    """The rows of one table that changed for one pipeline."""

    table: str
    ranges: Mapping[str, Ranges]
    """By column that is joined."""


@dataclass(frozen=True)
class Pipeline:
    """A query as sums by group over a join, and how its rows come from them."""

    reads: Mapping[str, Sequence[str]]
    """Tables, those that change most first, with the columns that are used."""
    joins: Mapping[str, str]
    """Columns that are equal."""
    filters: Mapping[str, str]
    """By table."""
    keys: Sequence[str]
    sums: Mapping[str, str]
    result: str
    """Over ``{state}``, and tables of the lake in braces."""

    def select(self, tables: Mapping[str, str], sign: str, literals: Sequence[str] = ()) -> str:
        """The sums over *tables*, each given as rows; *sign* is 1 or a product of columns."""
        times = "" if sign == "1" else f" * ({sign})"
        sums = [f"sum(({value}){times}) AS {name}" for name, value in self.sums.items()]
        listed = ", ".join([*self.keys, *sums, f"sum({sign}) AS n"])
        joined = ", ".join(f"({rows}) AS {table}" for table, rows in tables.items())
        equal = [f"{one} = {other}" for one, other in self.joins.items()]
        condition = " AND ".join([*equal, *self.filters.values(), *literals])
        grouped = f" GROUP BY {', '.join(self.keys)}" if self.keys else ""
        return f"SELECT {listed} FROM {joined} WHERE {condition}{grouped}"

    def joined(self, table: str) -> list[str]:
        """The columns of a table that are equal to others."""
        return [column for column in self.reads[table] if self.equal_to(column)]

    def equal_to(self, column: str) -> list[str]:
        pairs = [*self.joins.items(), *((other, one) for one, other in self.joins.items())]
        return [other for one, other in pairs if one == column]

    def bounds(self, key: str, changes: Sequence[Change]) -> list[Ranges]:
        """Where *key* may lie in what comes of each of *changes*, as far as that is known."""
        same = (key, *self.equal_to(key))
        found = [[change.ranges[column] for column in same if column in change.ranges] for change in changes]
        return [ranges[0] for ranges in found if ranges]


PIPELINES = {
    "q1": Pipeline(
        {"lineitem": ("l_returnflag", "l_linestatus", "l_quantity", "l_extendedprice", "l_discount", "l_tax",
                      "l_shipdate")},
        {},
        {"lineitem": "l_shipdate <= DATE '1998-12-01' - INTERVAL 90 DAY"},
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
        {"o_custkey": "c_custkey", "l_orderkey": "o_orderkey"},
        {"lineitem": "l_shipdate > DATE '1995-03-15'", "orders": "o_orderdate < DATE '1995-03-15'",
         "customer": "c_mktsegment = 'BUILDING'"},
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
        {"o_custkey": "c_custkey", "l_orderkey": "o_orderkey", "l_suppkey": "s_suppkey",
         "c_nationkey": "s_nationkey", "s_nationkey": "n_nationkey", "n_regionkey": "r_regionkey"},
        {"orders": "o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1994-01-01' + INTERVAL 1 YEAR",
         "region": "r_name = 'ASIA'"},
        ("n_name",),
        {"revenue": _VOLUME},
        "SELECT n_name, revenue FROM {state}",
    ),
    "q6": Pipeline(
        {"lineitem": ("l_extendedprice", "l_discount", "l_quantity", "l_shipdate")},
        {},
        {"lineitem": "l_shipdate >= DATE '1994-01-01' AND l_shipdate < DATE '1994-01-01' + INTERVAL 1 YEAR "
                     "AND l_discount BETWEEN 0.06 - 0.01 AND 0.06 + 0.01 AND l_quantity < 24"},
        (),
        {"revenue": "l_extendedprice * l_discount"},
        "SELECT sum(revenue) AS revenue FROM {state}",
    ),
    "q10": Pipeline(
        {"lineitem": ("l_orderkey", "l_extendedprice", "l_discount", "l_returnflag"),
         "orders": ("o_orderkey", "o_custkey", "o_orderdate")},
        {"l_orderkey": "o_orderkey"},
        {"lineitem": "l_returnflag = 'R'",
         "orders": "o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1993-10-01' + INTERVAL 3 MONTH"},
        ("o_custkey",),
        {"revenue": _VOLUME},
        "SELECT c_custkey, c_name, revenue, c_acctbal, n_name, c_address, c_phone, c_comment "
        "FROM {state}, {customer}, {nation} WHERE o_custkey = c_custkey AND c_nationkey = n_nationkey "
        "ORDER BY revenue DESC LIMIT 20",
    ),
    "q12": Pipeline(
        {"lineitem": ("l_orderkey", "l_shipmode", "l_shipdate", "l_commitdate", "l_receiptdate"),
         "orders": ("o_orderkey", "o_orderpriority")},
        {"l_orderkey": "o_orderkey"},
        {"lineitem": "l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate "
                     "AND l_shipdate < l_commitdate AND l_receiptdate >= DATE '1994-01-01' "
                     "AND l_receiptdate < DATE '1994-01-01' + INTERVAL 1 YEAR"},
        ("l_shipmode",),
        {"high_line_count": "CASE WHEN o_orderpriority IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END",
         "low_line_count": "CASE WHEN o_orderpriority NOT IN ('1-URGENT', '2-HIGH') THEN 1 ELSE 0 END"},
        "SELECT l_shipmode, high_line_count, low_line_count FROM {state}",
    ),
    "q14": Pipeline(
        {"lineitem": ("l_partkey", "l_extendedprice", "l_discount", "l_shipdate"), "part": ("p_partkey", "p_type")},
        {"l_partkey": "p_partkey"},
        {"lineitem": "l_shipdate >= DATE '1995-09-01' AND l_shipdate < DATE '1995-09-01' + INTERVAL 1 MONTH"},
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
        self._view_tables(versions, "after")
        for name in self.names:
            tables = {table: _rows(table, "after") for table in PIPELINES[name].reads}
            made = self._spark.sql(PIPELINES[name].select(tables, "1"))
            made.write.format("delta").mode("overwrite").save(self._path(name))
        self._note_down(versions)

    def follow(self, before: Versions, after: Versions) -> dict[str, Stopwatch]:
        """Bring all states from one set of versions to another; what each took, and reading what changed."""
        self._note.unlink()
        read = {table for name in self.names for table in PIPELINES[name].reads}
        changed = [table for table in after if table in read and before[table] != after[table]]
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            with Stopwatch() as reading:
                self._view_tables(before, "before")
                self._view_tables(after, "after")
                feeds = list(threads.map(lambda table: self._feed(table, before[table], after[table]), changed))
            with Stopwatch() as merging:
                runs = threads.map(lambda name: _seconds(lambda: self._one(name, feeds)), self.names)
                seconds = dict(zip(self.names, runs, strict=True))
        for feed in feeds:
            feed.rows.unpersist()
        self._note_down(after)
        return {SHARED: reading, **_shares(merging, seconds)}

    def rows(self, name: str) -> str:
        """The result of a query, in parentheses."""
        tables = {table: f"delta.`{self._lake.path(table)}`" for table in ("customer", "nation")}
        return f"({PIPELINES[name].result.format(state=f'delta.`{self._path(name)}`', **tables)})"

    def _one(self, name: str, feeds: Sequence[Feed]) -> None:
        pipeline = PIPELINES[name]
        changes = [feed.changes[name] for feed in feeds if name in feed.changes]
        if changes:
            self._spark.sql(merge(pipeline, f"delta.`{self._path(name)}`", name, changes))

    def _feed(self, table: str, before: int, after: int) -> Feed:
        """What changed in a table, cached as a view, and counted."""
        readers = {name: PIPELINES[name] for name in self.names if table in PIPELINES[name].reads}
        reader = self._spark.read.format("delta").option("readChangeFeed", "true")
        feed = reader.option("startingVersion", before + 1).option("endingVersion", after).load(self._lake.path(table))
        rows = self._spark.sql(signed("{feed}", table, readers), feed=feed).cache()
        rows.createOrReplaceTempView(f"changes_{table}")
        found = self._spark.sql(_counted(table, readers)).collect()
        return Feed(rows, {name: change for name, p in readers.items() if (change := _change(name, p, table, found))})

    def _view_tables(self, versions: Versions, when: str) -> None:
        """One snapshot of each table for all pipelines: Delta makes that of an older version each time it is named."""
        for table in {table: None for name in self.names for table in PIPELINES[name].reads}:
            rows = self._spark.read.format("delta").option("versionAsOf", versions[table])
            rows.load(self._lake.path(table)).createOrReplaceTempView(f"{table}_{when}")

    def _path(self, name: str) -> str:
        return str(self._folder / name)

    def _note_down(self, versions: Versions) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        self._note.write_text(json.dumps(dict(versions)), encoding="utf-8")


@dataclass(frozen=True)
class Feed:
    """The cached rows that changed in a table, and what they are for each pipeline that sees any."""

    rows: Any
    changes: Mapping[str, Change]


def signed(feed: str, table: str, readers: Mapping[str, Pipeline]) -> str:
    """The rows of a table that went and came, with a column for each of *readers*: whether it sees them.

    It does not where its columns are as they were, or its filter drops the row.
    """
    columns = list(dict.fromkeys([*KEYS[table], *(c for pipeline in readers.values() for c in pipeline.reads[table])]))
    event = f"struct(IF(_change_type IN ('insert', 'update_postimage'), 1, -1) AS sign, {', '.join(columns)})"
    # Of a key, what one commit takes out comes before what it puts in.
    place = "struct(_commit_version, _change_type IN ('insert', 'update_postimage'))"
    ends = f"SELECT min_by({event}, {place}) AS first, max_by({event}, {place}) AS last FROM {feed}"
    ends = f"{ends} GROUP BY {', '.join(KEYS[table])}"
    sides = f"SELECT IF(first.sign = -1, first, NULL) AS old, IF(last.sign = 1, last, NULL) AS new FROM ({ends})"
    differs = ", ".join(
        f"NOT ({' AND '.join(f'old.{c} <=> new.{c}' for c in pipeline.reads[table])}) AS {name}"
        for name, pipeline in readers.items()
    )
    kind = "CASE WHEN old IS NULL THEN 'in' WHEN new IS NULL THEN 'out' ELSE 'changed' END AS kind"
    each = f"SELECT {kind}, {differs}, explode(filter(array(old, new), side -> side IS NOT NULL)) AS row FROM ({sides})"
    flat = f"SELECT kind, row.*, {', '.join(readers)} FROM ({each})"
    seen = ", ".join(f"{name} AND ({p.filters.get(table, 'true')}) AS {name}" for name, p in readers.items())
    return f"SELECT kind, sign, {', '.join(columns)}, {seen} FROM ({flat}) WHERE {' OR '.join(readers)}"


def _counted(table: str, readers: Mapping[str, Pipeline]) -> str:
    """How many rows that changed each pipeline sees, and the bounds of the columns that it joins."""
    found = ["kind"]
    for name, pipeline in readers.items():
        found.append(f"count_if({name}) AS {name}")
        for column in pipeline.joined(table):
            found += [f"{end}({column}) FILTER (WHERE {name}) AS {name}_{end}_{column}" for end in ("min", "max")]
    return f"SELECT {', '.join(found)} FROM changes_{table} GROUP BY kind"


def _change(name: str, pipeline: Pipeline, table: str, counted: Sequence[Any]) -> Change | None:
    """What :func:`_counted` found for one pipeline; None if it sees nothing."""
    seen = [row for row in counted if row[name]]
    if not seen:
        return None
    columns = pipeline.joined(table)
    return Change(table, {c: [(row[f"{name}_min_{c}"], row[f"{name}_max_{c}"]) for row in seen] for c in columns})


def merge(pipeline: Pipeline, state: str, name: str, changes: Sequence[Change]) -> str:
    """The MERGE that brings the state of a pipeline up to date."""
    totals = (*pipeline.sums, "n")
    listed = ", ".join([*pipeline.keys, *(f"coalesce(sum({c}), 0) AS {c}" for c in totals)])
    grouped = f" GROUP BY {', '.join(pipeline.keys)}" if pipeline.keys else ""
    terms = " UNION ALL ".join(_terms(pipeline, name, changes))
    moved = " OR ".join(f"{c} <> 0" for c in totals)
    delta = f"SELECT * FROM (SELECT {listed} FROM ({terms}){grouped}) WHERE {moved}"
    matched = [f"state.{key} = delta.{key}" for key in pipeline.keys]
    for key in pipeline.keys:
        bounds = pipeline.bounds(key, changes)
        if len(bounds) == len(changes):
            matched.append(_within(f"state.{key}", [each for ranges in bounds for each in ranges]))
    added = ", ".join(f"state.{c} = state.{c} + delta.{c}" for c in totals)
    columns = ", ".join([*pipeline.keys, *totals])
    values = ", ".join(f"delta.{c}" for c in (*pipeline.keys, *totals))
    return (
        f"MERGE INTO {state} AS state USING ({delta}) AS delta ON {' AND '.join(matched) or 'true'} "
        "WHEN MATCHED AND state.n + delta.n = 0 THEN DELETE "
        f"WHEN MATCHED THEN UPDATE SET {added} "
        f"WHEN NOT MATCHED AND delta.n <> 0 THEN INSERT ({columns}) VALUES ({values})"
    )


def _terms(pipeline: Pipeline, name: str, changes: Sequence[Change]) -> Iterator[str]:
    """A term for each table whose changes the query sees."""
    tables = list(pipeline.reads)
    for change in changes:
        place = tables.index(change.table)
        rows = {other: _rows(other, "after" if at < place else "before") for at, other in enumerate(tables)}
        rows[change.table] = f"SELECT * FROM changes_{change.table} WHERE {name}"
        literals = [_within(o, ranges) for column, ranges in change.ranges.items() for o in pipeline.equal_to(column)]
        yield pipeline.select(rows, "sign", literals)


def _within(column: str, ranges: Ranges) -> str:
    return f"({' OR '.join(f'{column} BETWEEN {low} AND {high}' for low, high in ranges)})"


def _rows(table: str, when: str) -> str:
    return f"SELECT * FROM {table}_{when}"


def _seconds(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _shares(whole: Stopwatch, seconds: Mapping[str, float]) -> dict[str, Stopwatch]:
    """Of what all took side by side, parts that are to each other as what each took."""
    parts = {name: each / sum(seconds.values()) for name, each in seconds.items()}
    return {name: Stopwatch(whole.seconds * part, whole.cpu * part) for name, part in parts.items()}
