"""The same queries from scratch in DuckDB, over the files of the tables, each written to a table of its own."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import duckdb

from bench.processors import Stopwatch
from bench.tpch.lake import Lake
from tests.campaign.corpus.definitions import Definition
from tests.campaign.tpch.tables import KEYS


def recomputed(lake: Lake, views: Sequence[Definition], folder: Path) -> dict[str, Stopwatch]:
    """What each view took."""
    file = folder / "recomputed.duckdb"
    file.unlink(missing_ok=True)
    found = {}
    with duckdb.connect(str(file), config={"threads": os.cpu_count() or 2}) as connection:
        connection.execute("CREATE SCHEMA tpch")
        for table in KEYS:
            files = ", ".join(f"'{file}'" for file in lake.files(table))
            connection.execute(f"CREATE VIEW tpch.{table} AS SELECT * FROM read_parquet([{files}])")
        for view in views:
            with Stopwatch() as watch:
                connection.execute(f"CREATE TABLE {view.name} AS {view.query}")
            found[view.name] = watch
    file.unlink()
    return found
