"""Tables of TPC-D that shrink: what is there before, and the deltas, of the same rows whatever else is run."""

from __future__ import annotations

import shutil
from collections.abc import Collection
from pathlib import Path
from random import Random

import pyarrow as pa
from deltalake import DeltaTable

from bench.vdag.tpc_d import TABLES
from strandline.engine.files import write_rows
from strandline.sql.render import SIGN
from strandline.store.deltas import Delta
from tests.campaign.tpch import tables


def make_tables(folder: Path, scale: float) -> dict[str, tuple[str, ...]]:
    """Make the tables, each a Delta table below *folder* under its letter; their keys."""
    lake = folder / "lake"
    tables.make_tables(lake, scale)
    for letter, name in TABLES.items():
        (lake / name).rename(folder / letter)
    shutil.rmtree(lake)
    return {letter: tuple(tables.KEYS[name]) for letter, name in TABLES.items()}


def shrink(before: Path, deltas: Path, percent: int, shrinking: Collection[str]) -> dict[str, Delta]:
    """Deltas below *deltas* that take *percent* of the rows, chosen at random, from the tables that are *shrinking*."""
    found = {}
    for letter in TABLES:
        rows = DeltaTable(str(before / letter)).to_pyarrow_table()
        count = round(rows.num_rows * percent / 100) if letter in shrinking else 0
        chosen = sorted(Random(letter).sample(range(rows.num_rows), count))
        gone = rows.take(pa.array(chosen, pa.int64()))
        path = str(deltas / letter)
        write_rows(gone.append_column(SIGN, pa.array([-1] * count, pa.int32())), path)
        found[letter] = Delta(path, 0, count)
    return found
