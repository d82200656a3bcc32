"""Folding log entries into a copy gives the table as it is after them: random histories, many at once."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline.algebra.bag import SignedBag
from strandline.algebra.schema import Column, Schema, names
from strandline.engine import tables
from strandline.engine.session import Engine
from strandline.ingest.change_log import ChangeLog
from strandline.ingest.fold import Stretch, delta
from strandline.sources.protocol import Entry
from tests.conftest import bag

COLUMNS: Schema = (
    Column("history", "int"),
    Column("id", "int"),
    Column("small value", "string"),
    Column("large value", "string"),
)
KEY = ("history", "id")


def _parser(column: Column) -> Callable[[str], str]:
    return lambda text: f"CAST({text} AS {column.type})"


PARSERS = {column.name: _parser(column) for column in COLUMNS}

Row = tuple[int, int, str | None, str | None]


class Histories:
    """Several tables in one, told apart by their first column: what they were, what was logged, what they are."""

    def __init__(self, folder: Path, seed: int, *, keyed: bool, inserts_only: bool = False) -> None:
        self.random = random.Random(seed)
        self.keyed = keyed
        self.inserts_only = inserts_only
        self.before: list[Row] = []
        self.after: list[Row] = []
        self.log = ChangeLog(str(folder / "log"), len(COLUMNS), None, {})
        self.copy = str(folder / "copy")
        self.place = 100
        self.flags: set[str] = set()

    def value(self) -> str | None:
        return self.random.choice([None, "", "a", "b", "it's", "1"])

    def add(self, number: int, steps: int) -> None:
        rows: list[Row] = [(number, n, self.value(), self.value()) for n in range(self.random.randrange(4))]
        if not self.keyed:
            rows += [row for row in rows if self.random.random() < 0.5]
        self.before += rows
        for _ in range(steps):
            rows = self.step(number, rows)
        self.after += rows

    def step(self, number: int, rows: list[Row]) -> list[Row]:
        kind = "insert" if self.inserts_only else self.random.choice(["insert", "update", "update", "delete", "move"])
        if kind == "insert" or not rows:
            taken = {row[1] for row in rows}
            free = [n for n in range(8) if n not in taken or not self.keyed]
            if not free:
                return rows
            new = (number, self.random.choice(free), self.value(), self.value())
            self.entry("I", new)
            return [*rows, new]
        old = self.random.choice(rows)
        rest = list(rows)
        rest.remove(old)
        if kind == "delete":
            self.gone(old)
            return rest
        if kind == "move":
            free = [n for n in range(8) if n not in {row[1] for row in rows}]
            if not free:
                return rows
            new = (number, self.random.choice(free), old[2], self.value())
            self.gone(old)
            self.entry("I", new)
            return [*rest, new]
        keeps = self.random.random() < 0.5
        new = (number, old[1], self.value(), old[3] if keeps else self.value())
        if self.keyed:
            self.entry("U", (*new[:3], None) if keeps else new, (3,) if keeps else ())
        else:
            self.gone(old)
            self.entry("I", new)
        return [*rest, new]

    def gone(self, row: Row) -> None:
        self.entry("D", (*row[:2], None, None) if self.keyed else row)

    def entry(self, op: Literal["I", "U", "D", "T"], row: tuple[Any, ...], unchanged: tuple[int, ...] = ()) -> None:
        values = [None if value is None else str(value) for value in row]
        self.place += self.random.randrange(2)
        self.flags.update([op, "unchanged"] if unchanged else [op])
        self.log.add(self.random.randrange(3), Entry("t", op, values, unchanged), "log", self.place, 7)
        self.place += 1

    def truncate(self) -> None:
        self.entry("T", (None, None, None, None))
        self.after = []

    def folded(self, engine: Engine, **flags: Any) -> SignedBag:
        self.log.flush()
        schema = pa.schema([("history", pa.int32()), ("id", pa.int32()), ("s", pa.string()), ("l", pa.string())])
        listed = [dict(zip(schema.names, row, strict=True)) for row in self.before]
        write_deltalake(self.copy, pa.Table.from_pylist(listed, schema))
        assert self.log.version is not None
        copy = f"SELECT history, id, s AS `small value`, l AS `large value` FROM {tables.table(self.copy, 0)}"
        stretch = Stretch(self.log.path, self.log.version, "log", 100, self.place + 1, **flags)
        sql = delta(stretch, COLUMNS, KEY if self.keyed else (), PARSERS, copy, names(COLUMNS))
        found = engine.rows(f"SELECT history, id, `small value`, `large value`, __sign FROM ({sql})")
        return SignedBag((tuple(row[:-1]), row[-1]) for row in found)

    def expected(self) -> SignedBag:
        return bag(self.after) - bag(self.before)


pytestmark = pytest.mark.spark


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "bag"])
def test_the_delta_leads_from_the_copy_to_the_table(engine: Engine, tmp_path: Path, keyed: bool) -> None:
    histories = Histories(tmp_path, 1, keyed=keyed)
    for number in range(300):
        histories.add(number, steps=histories.random.randrange(12))
    assert histories.flags >= ({"I", "U", "D", "unchanged"} if keyed else {"I", "D"})
    assert histories.folded(engine, unchanged=keyed) == histories.expected()


@pytest.mark.parametrize("keyed", [True, False], ids=["keyed", "bag"])
def test_what_was_there_before_a_truncate_is_gone(engine: Engine, tmp_path: Path, keyed: bool) -> None:
    histories = Histories(tmp_path, 2, keyed=keyed)
    for number in range(50):
        histories.add(number, steps=5)
    histories.truncate()
    before = histories.before
    histories.before = []
    for number in range(100, 150):
        histories.before = []
        rows: list[Row] = []
        for _ in range(6):
            rows = histories.step(number, rows)
        histories.after += rows
    histories.before = before
    assert histories.folded(engine, unchanged=keyed, truncated=True) == histories.expected()


def test_inserts_need_no_look_at_the_copy(engine: Engine, tmp_path: Path) -> None:
    histories = Histories(tmp_path, 3, keyed=True, inserts_only=True)
    for number in range(50):
        histories.add(number, steps=4)
    assert histories.flags == {"I"}
    assert histories.folded(engine, only_inserts=True) == histories.expected()


def test_entries_that_do_not_count_are_left_out(engine: Engine, tmp_path: Path) -> None:
    log = ChangeLog(str(tmp_path / "log"), 4, None, {})
    for number, (name, place, xid) in enumerate([("log", 100, 5), ("log", 200, 6), ("log", 300, 7), ("other", 200, 6)]):
        log.add(0, Entry("t", "I", ["1", str(number), None, None]), name, place, xid)
    log.flush()
    assert log.version is not None
    schema = pa.schema([("history", pa.int32()), ("id", pa.int32()), ("s", pa.string()), ("l", pa.string())])
    write_deltalake(str(tmp_path / "copy"), schema.empty_table())
    copy = f"SELECT history, id, s AS `small value`, l AS `large value` FROM {tables.table(str(tmp_path / 'copy'), 0)}"

    def kept(after: int, upto: int, counted: str | None = None) -> set[int]:
        stretch = Stretch(log.path, log.version or 0, "log", after, upto, counted, only_inserts=True)
        return {
            row[0]
            for row in engine.rows(f"SELECT id FROM ({delta(stretch, COLUMNS, KEY, PARSERS, copy, names(COLUMNS))})")
        }

    assert kept(100, 301) == {0, 1, 2}
    assert kept(101, 300) == {1}
    assert kept(100, 301, "_xid <> 6") == {0, 2}
