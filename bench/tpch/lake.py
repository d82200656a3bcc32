"""The eight tables as Delta tables with a change feed, and changes of a given part of them.

A change is TPC-H's pair of refresh functions, orders with their line items in (RF1) and out (RF2), and updates of as
large a part of the orders and their lines, of customers, parts, their suppliers' offers, and suppliers. What comes in
is like other orders than those that go out. Updates change what queries select, group and join by, too. Keys are one
stretch each, or lie everywhere. Foreign keys hold before and after.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, write_deltalake

from bench.tpch.settings import Settings
from tests.campaign.tpch.tables import KEYS, make_tables

FEED = {"delta.enableChangeDataFeed": "true"}

FOREIGN_KEYS: dict[str, dict[tuple[str, ...], str]] = {
    "lineitem": {("l_orderkey",): "orders", ("l_partkey", "l_suppkey"): "partsupp",
                 ("l_partkey",): "part", ("l_suppkey",): "supplier"},
    "orders": {("o_custkey",): "customer"},
    "customer": {("c_nationkey",): "nation"},
    "supplier": {("s_nationkey",): "nation"},
    "partsupp": {("ps_partkey",): "part", ("ps_suppkey",): "supplier"},
    "nation": {("n_regionkey",): "region"},
}  # fmt: skip
"""Of each table: the table that columns refer to."""

UPDATES = {
    "orders": {
        "o_orderstatus": "'F'",
        "o_totalprice": "o_totalprice + 100",
        "o_orderpriority": "'1-URGENT'",
        "o_orderdate": "CAST(o_orderdate - INTERVAL '30 days' AS DATE)",
        "o_custkey": "o_custkey % {customers} + 1",
    },
    "lineitem": {
        "l_quantity": "l_quantity + 1",
        "l_discount": "0.06",
        "l_returnflag": "'R'",
        "l_shipdate": "CAST(l_shipdate + INTERVAL '30 days' AS DATE)",
        "l_suppkey": "CASE WHEN l_suppkey = (l_partkey + 3 * {apart}) % {suppliers} + 1 "
        "THEN l_partkey % {suppliers} + 1 ELSE (l_suppkey - 1 + {apart}) % {suppliers} + 1 END",
    },
    "customer": {
        "c_acctbal": "c_acctbal + 1000",
        "c_mktsegment": "'BUILDING'",
        "c_nationkey": "(c_nationkey + 1) % 25",
    },
    "part": {"p_retailprice": "p_retailprice + 1", "p_container": "'MED BOX'", "p_size": "p_size % 50 + 1"},
    "partsupp": {"ps_availqty": "ps_availqty + 7", "ps_supplycost": "ps_supplycost + 1"},
    "supplier": {"s_acctbal": "s_acctbal - 5"},
}
"""What updates set. A line goes to the next supplier of its part."""

_APART = "({suppliers} / 4 + (l_partkey - 1) / {suppliers})"
"""How far apart the keys of the four suppliers of a part lie (TPC-H, 4.2.3)."""

_BLOCK = 32
"""TPC-H uses the first 8 of each 32 keys of orders; the others are for new ones."""

_AT_ONCE = 400_000
"""Keys of orders that are copied at a time."""

Versions = Mapping[str, int]
Rows = dict[str, dict[str, int]]
"""By table: how many rows were inserted, deleted and updated."""


@dataclass(frozen=True)
class Some:
    """A part of a table, by key: of *key* those from *first* on and below *last*, one in so many or all."""

    first: int
    last: int
    one_in: int = 1
    rest: int = 0

    def condition(self, key: str) -> str:
        """In SQL."""
        text = f"{key} >= {self.first} AND {key} < {self.last}"
        return text if self.one_in == 1 else f"{text} AND {_PLACE.format(key=key)} % {self.one_in} = {self.rest}"

    def chosen(self, key: str) -> Any:
        """For a scan of Arrow."""
        field = pc.field(key)
        found = (field >= self.first) & (field < self.last)
        if self.one_in == 1:
            return found
        place = field / _BLOCK * 8 + (field - field / _BLOCK * _BLOCK)
        return found & (place - place / self.one_in * self.one_in == self.rest)

    def pieces(self, width: int) -> Iterator[Some]:
        for first in range(self.first, self.last, width):
            yield Some(first, min(self.last, first + width), self.one_in, self.rest)


_PLACE = f"({{key}} / {_BLOCK} * 8 + {{key}} % {_BLOCK})"
"""Keys of orders without the gaps."""


class Lake:
    """The tables below a folder; they are made if they are not there."""

    def __init__(self, folder: Path, scale: float) -> None:
        self.folder = folder
        if not folder.exists():
            unfinished = folder.with_name(f"{folder.name}-unfinished")
            shutil.rmtree(unfinished, ignore_errors=True)
            make_tables(unfinished, scale, FEED)
            unfinished.rename(folder)

    def path(self, table: str) -> str:
        return str(self.folder / table)

    def versions(self) -> dict[str, int]:
        return {table: self._table(table).version() for table in KEYS}

    def files(self, table: str, version: int | None = None) -> list[str]:
        """The files that make up a version, or the newest."""
        found = DeltaTable(self.path(table), version=version)
        return [str(self.folder / table / name) for name in _column(found, "path")]

    def touched(self, before: Versions, after: Versions) -> list[str]:
        """The files that only one of two versions has."""
        pairs = ((table, v, after[table]) for table, v in before.items() if v != after[table])
        return [file for table, a, b in pairs for file in {*self.files(table, a)} ^ {*self.files(table, b)}]

    def feed(self, table: str, after: int, upto: int) -> pa.Table:
        """The change feed of a table behind one version and up to another."""
        return pa.table(self._table(table).load_cdf(starting_version=after + 1, ending_version=upto).read_all())

    def change(self, settings: Settings) -> Rows:
        """Change about ``delta`` percent of the rows in each way; what was done."""
        before = self.versions()
        random = Random(before["orders"])
        first, last = self._bounds("orders", "o_orderkey")
        old, updated = self._two_parts(settings, random, first, last, least=_BLOCK)
        _, like = self._two_parts(settings, random, first, last, least=_BLOCK)
        rows: Rows = {"orders": {}, "lineitem": {}}
        for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
            rows[table]["deleted"] = self._table(table).delete(old.condition(key))["num_deleted_rows"]
            if settings.updates:
                rows[table]["updated"] = self._updated(table, updated.condition(key))
        for table, count in self._inserted(like, before, last, settings.scattered).items():
            rows[table]["inserted"] = count
        others = ("customer", "part", "partsupp", "supplier") if settings.updates else ()
        for table in others:
            key = KEYS[table][0]
            _, some = self._two_parts(settings, random, *self._bounds(table, key), least=1)
            rows[table] = {"updated": self._updated(table, some.condition(key))}
        return rows

    def tidy(self) -> None:
        """Remove the files of old versions: a run would fill the disk."""
        for table in KEYS:
            self._table(table).vacuum(retention_hours=0, dry_run=False, enforce_retention_duration=False)

    def _two_parts(self, settings: Settings, random: Random, first: int, last: int, *, least: int) -> tuple[Some, Some]:
        """What goes, and what changes: the oldest keys and a stretch of others, or two sets of keys that lie apart."""
        if settings.scattered:
            one_in = max(2, round(100 / settings.delta))
            rest = random.randrange(one_in)
            other = (rest + random.randrange(1, one_in)) % one_in
            return Some(first, last + 1, one_in, rest), Some(first, last + 1, one_in, other)
        width = max(least, round((last + 1 - first) * settings.delta / 100))
        start = first + width + random.randrange(max(1, last + 1 - first - 2 * width))
        return Some(first, first + width), Some(start, min(last + 1, start + width))

    def _inserted(self, like: Some, before: Versions, last: int, scattered: bool) -> dict[str, int]:
        """Copies of orders and their lines as they were, under keys behind all others or among them."""
        taken = self._keys() if scattered else None
        count = {"orders": 0, "lineitem": 0}
        for piece in like.pieces(_AT_ONCE):
            orders = self._rows("orders", before, piece.chosen("o_orderkey"))
            by = _BLOCK * ((last - like.first) // _BLOCK + 1)
            if taken is not None:
                by, orders = max((_free(orders, by, taken) for by in (8, 16, 24)), key=lambda free: free[1].num_rows)
            lines = self._rows("lineitem", before, piece.chosen("l_orderkey"))
            lines = lines.filter(pc.is_in(lines["l_orderkey"], orders["o_orderkey"].combine_chunks()))
            for table, key, rows in (("orders", "o_orderkey", orders), ("lineitem", "l_orderkey", lines)):
                write_deltalake(self.path(table), _moved(rows, key, by), mode="append")
                count[table] += rows.num_rows
        return count

    def _updated(self, table: str, condition: str) -> int:
        updates = {column: value.format(**self._numbers) for column, value in UPDATES[table].items()}
        return int(self._table(table).update(predicate=condition, updates=updates)["num_updated_rows"])

    @cached_property
    def _numbers(self) -> dict[str, str]:
        """What the texts of updates leave open; customers and suppliers neither come nor go."""
        customers, suppliers = (self._bounds(table, KEYS[table][0])[1] for table in ("customer", "supplier"))
        return {"customers": str(customers), "suppliers": str(suppliers), "apart": _APART.format(suppliers=suppliers)}

    def _rows(self, table: str, versions: Versions, chosen: Any) -> pa.Table:
        found = DeltaTable(self.path(table), version=versions[table])
        return found.to_pyarrow_dataset().to_table(filter=chosen)

    def _keys(self) -> pa.Array:
        column = self._table("orders").to_pyarrow_dataset().to_table(columns=["o_orderkey"])["o_orderkey"]
        return column.combine_chunks()

    def _bounds(self, table: str, key: str) -> tuple[int, int]:
        found = self._table(table)
        return min(_column(found, f"min.{key}")), max(_column(found, f"max.{key}"))

    def _table(self, table: str) -> DeltaTable:
        return DeltaTable(self.path(table))


def _column(table: DeltaTable, name: str) -> list[Any]:
    found: list[Any] = pa.table(table.get_add_actions(flatten=True)).column(name).to_pylist()
    return found


def _free(orders: pa.Table, by: int, taken: pa.Array) -> tuple[int, pa.Table]:
    """Those of *orders* whose keys, moved *by* so much, are not taken."""
    return by, orders.filter(pc.invert(pc.is_in(pc.add(orders["o_orderkey"], by), taken)))


def _moved(rows: pa.Table, column: str, by: int) -> pa.Table:
    place = rows.schema.get_field_index(column)
    return rows.set_column(place, rows.schema.field(column), pc.add(rows[column], by))
