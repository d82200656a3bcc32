"""The eight tables of TPC-H as Delta tables, made by ``tpchgen-cli``, and cycles of changes of all of them."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, write_deltalake

KEYS = {
    "customer": ["c_custkey"],
    "lineitem": ["l_orderkey", "l_linenumber"],
    "nation": ["n_nationkey"],
    "orders": ["o_orderkey"],
    "part": ["p_partkey"],
    "partsupp": ["ps_partkey", "ps_suppkey"],
    "region": ["r_regionkey"],
    "supplier": ["s_suppkey"],
}
"""Also the tables there are."""

FILE_BYTES = 16 << 20
"""Of a file, about; a table of less has one."""


def generator() -> str | None:
    """The program that makes the data, if it is installed."""
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    return next((found for folder in (*folders, None) if (found := shutil.which("tpchgen-cli", path=folder))), None)


def make_tables(folder: Path, scale: float, properties: Mapping[str, str] | None = None) -> None:
    """Make the eight tables below *folder*, each in files of consecutive keys, with table *properties* if any."""
    program = generator()
    assert program is not None, "tpchgen-cli is not installed"
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix="generated-") as files:
        command = [program, "parquet", "--scale-factor", str(scale), "--output-dir", files]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for table in KEYS:
            for rows in _file_by_file(Path(files) / f"{table}.parquet"):
                given = {"delta.targetFileSize": str(FILE_BYTES), **(properties or {})}
                write_deltalake(str(folder / table), rows, mode="append", configuration=given)
            (Path(files) / f"{table}.parquet").unlink()


def _file_by_file(file: Path) -> Iterator[pa.Table]:
    """The rows of a file, so many at a time that they fill a file of the table."""
    found = pq.ParquetFile(file)
    most = max(1, round(0.8 * FILE_BYTES * found.metadata.num_rows / file.stat().st_size))
    rows: list[pa.RecordBatch] = []
    for batch in found.iter_batches(min(most, 65_536)):
        if rows and sum(each.num_rows for each in rows) + batch.num_rows > most:
            yield _with_plain_strings(pa.Table.from_batches(rows))
            rows = []
        rows.append(batch)
    yield _with_plain_strings(pa.Table.from_batches(rows))


class Tables:
    """The tables below *folder*, at a scale factor."""

    def __init__(self, folder: Path, scale: float, seed: int) -> None:
        self.folder = folder
        self.random = random.Random(seed)
        self._offset = 0
        self._one_in = 500
        make_tables(folder, scale)
        self._first = {table: self._table(table).to_pyarrow_table() for table in KEYS}

    def cycle(self, *, clustered: bool) -> None:
        """Insert, delete and update rows of every table; keys are one stretch each, or lie everywhere."""
        self.change(500, clustered=clustered)
        self._rename("nation", "n_nationkey", "n_name", ["FRANCE", "GERMANY", "BRAZIL", "CANADA", "SAUDI ARABIA"])
        self._rename("region", "r_regionkey", "r_name", ["ASIA", "EUROPE", "AMERICA"])

    def change(self, one_in: int, *, clustered: bool) -> None:
        """Insert, delete and update about one row in so many each of the large tables.

        Nations and regions stay: one of them is a large part of its table and of all that refers to it.
        """
        self._offset += 10_000_000
        self._one_in = one_in
        self._new_orders(clustered)
        for table, column in (
            ("orders", "o_orderkey"),
            ("lineitem", "l_orderkey"),
            ("customer", "c_custkey"),
            ("part", "p_partkey"),
            ("partsupp", "ps_partkey"),
            ("supplier", "s_suppkey"),
        ):
            self._table(table).delete(self._some(table, column, clustered))
            for updates in UPDATES[table]:
                self._table(table).update(predicate=self._some(table, column, clustered), updates=updates)
        for table, column in (("customer", "c_custkey"), ("part", "p_partkey"), ("supplier", "s_suppkey")):
            self._again(table, column)
        self._again("partsupp", "ps_suppkey")

    def _new_orders(self, clustered: bool) -> None:
        """Copies of some orders and their line items under other keys."""
        orders = self._first["orders"]
        size = max(5, orders.num_rows // self._one_in)
        if clustered:
            start = self.random.randrange(orders.num_rows - size)
            chosen = orders.slice(start, size)
        else:
            chosen = orders.take(self.random.sample(range(orders.num_rows), size))
        lines = self._first["lineitem"]
        lines = lines.filter(pc.is_in(lines["l_orderkey"], chosen["o_orderkey"].combine_chunks()))
        for table, column, rows in (("orders", "o_orderkey", chosen), ("lineitem", "l_orderkey", lines)):
            write_deltalake(self._path(table), self._moved(rows, column), mode="append")

    def _again(self, table: str, column: str) -> None:
        """Copies of a few rows under other keys."""
        rows = self._first[table]
        chosen = rows.take(self.random.sample(range(rows.num_rows), max(2, rows.num_rows // self._one_in)))
        write_deltalake(self._path(table), self._moved(chosen, column), mode="append")

    def _moved(self, rows: pa.Table, column: str) -> pa.Table:
        place = rows.schema.get_field_index(column)
        return rows.set_column(place, rows.schema.field(column), pc.add(rows[column], self._offset))

    def _rename(self, table: str, key: str, column: str, names: list[str]) -> None:
        """Two rows change their names, one goes, and another one comes."""
        count = self._first[table].num_rows
        for name in self.random.sample(names, 2):
            number = self.random.randrange(count)
            self._table(table).update(predicate=f"{key} = {number}", updates={column: f"'{name}'"})
        gone = self.random.randrange(count)
        row = self._first[table].slice(gone, 1)
        self._table(table).delete(f"{key} = {gone}")
        back = (gone + 1) % count
        self._table(table).delete(f"{key} = {back}")
        write_deltalake(self._path(table), self._first[table].slice(back, 1), mode="append")
        write_deltalake(self._path(table), self._moved(row, key), mode="append")

    def _some(self, table: str, column: str, clustered: bool) -> str:
        """A condition that a small part of the rows meets."""
        keys = self._first[table][column]
        if clustered:
            first = int(self.random.choice(keys).as_py())
            width = max(1, int(pc.max(keys).as_py()) // self._one_in)
            return f"{column} >= {first} AND {column} < {first + width}"
        return f"{column} % {self._one_in} = {self.random.randrange(self._one_in)}"

    def _table(self, table: str) -> DeltaTable:
        return DeltaTable(self._path(table))

    def _path(self, table: str) -> str:
        return str(self.folder / table)


UPDATES: dict[str, list[dict[str, str]]] = {
    "orders": [
        {"o_totalprice": "o_totalprice + 100", "o_orderpriority": "'1-URGENT'"},
        {"o_custkey": "o_custkey + 1", "o_orderstatus": "'F'"},
    ],
    "lineitem": [
        {"l_quantity": "l_quantity + 1", "l_discount": "0.06"},
        {"l_shipdate": "l_shipdate + INTERVAL '20' DAY", "l_suppkey": "l_suppkey + 1"},
        {"l_returnflag": "'R'", "l_receiptdate": "l_commitdate + INTERVAL '1' DAY"},
    ],
    "customer": [{"c_acctbal": "c_acctbal + 1000"}, {"c_mktsegment": "'BUILDING'", "c_nationkey": "3"}],
    "part": [
        {"p_size": "15", "p_type": "'PROMO ANODIZED BRASS'"},
        {"p_brand": "'Brand#23'", "p_container": "'MED BOX'"},
    ],
    "partsupp": [{"ps_supplycost": "1.00"}, {"ps_availqty": "ps_availqty + 7"}],
    "supplier": [{"s_nationkey": "7"}, {"s_comment": "'Customer Complaints'", "s_acctbal": "s_acctbal - 5"}],
}


def _with_plain_strings(rows: pa.Table) -> pa.Table:
    fields: list[Any] = [
        pa.field(f.name, pa.string() if pa.types.is_string_view(f.type) else f.type) for f in rows.schema
    ]
    return rows.cast(pa.schema(fields))
