"""Random changes of a PostgreSQL table with a column of every type: its copy holds what the table does, to the bit.

``python -m tests.campaign.postgres_types [ROUNDS] [SEED]``
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC
from decimal import Decimal
from pathlib import Path
from typing import Any

import psycopg
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from psycopg import sql

from strandline.demo.server import SUPERUSER, PostgresServer
from strandline.engine.session import Engine
from strandline.sources.postgres.connect import set_session
from strandline.sources.postgres.source import PostgresSource
from strandline.sql.names import quoted
from tests.sources.postgres.live import Live, live
from tests.sources.postgres.test_types import ARRAY, CASES, DDL, RANDOM, TEXT, comparable

STATEMENTS = 60
LARGEST = 30_000
"""Characters of a value: more than fits into a page, so that it is stored out of line."""

KEYS = {
    "id": "int8",
    "k_text": "text",
    "k_day": "date",
    "k_moment": "timestamptz",
    "k_number": "numeric(9,4)",
    "k_bytes": "bytea",
}
NAMES = [f"c{number}" for number in range(len(CASES))]

_DIGITS = st.text("01", max_size=9)
STRATEGIES: dict[str, st.SearchStrategy[Any]] = {
    **{pg: values for pg, (_, values) in RANDOM.items()},
    "int2": st.integers(-(2**15), 2**15 - 1),
    "int4": st.integers(-(2**31), 2**31 - 1),
    "oid": st.integers(0, 2**32 - 1),
    "numeric(12,2)": st.decimals(-(10**9), 10**9, places=2),
    "numeric(38,0)": st.integers(-(10**37), 10**37),
    "numeric(38,38)": st.decimals(Decimal("-0.9"), Decimal("0.9"), places=38),
    "bool": st.booleans(),
    "varchar(9)": TEXT.map(lambda text: text[:9]),
    "bpchar(4)": TEXT.map(lambda text: text[:4]),
    "timestamp(0)": st.datetimes(),
    "time": st.times(),
    "interval": st.timedeltas(),
    "uuid": st.uuids(),
    "varbit": _DIGITS,
    "bit(3)": st.text("01", min_size=3, max_size=3),
    "inet": st.ip_addresses(),
    "int4[]": st.lists(st.none() | st.integers(-(2**31), 2**31 - 1), max_size=4),
    "bool[]": st.lists(st.none() | st.booleans(), max_size=4),
    "date[]": st.lists(st.none() | st.dates(), max_size=3),
    "timestamptz[]": st.lists(st.none() | st.datetimes(timezones=st.just(UTC)), max_size=3),
    "bytea[]": st.lists(st.none() | st.binary(max_size=9), max_size=3),
    "text[]": ARRAY,
}


def drawn(strategies: Sequence[st.SearchStrategy[Any]], number: int, chosen: int) -> list[tuple[Any, ...]]:
    """Some values of each strategy, the same for the same seed."""
    found: list[tuple[Any, ...]] = []

    @seed(chosen)
    @settings(
        max_examples=number,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.tuples(*strategies))
    def collect(row: tuple[Any, ...]) -> None:
        found.append(row)

    collect()
    return found


class Changes:
    """Draws rows and changes of a table."""

    def __init__(self, writer: psycopg.Connection[Any], chosen: int) -> None:
        self.writer = writer
        self.random = random.Random(chosen)
        self.next_id = 0
        self.ids: list[int] = []
        fixed = [st.sampled_from([_shortened(value) for value in case.values]) for case in CASES]
        given = [STRATEGIES.get(case.pg, own) | own for case, own in zip(CASES, fixed, strict=True)]
        keys = [STRATEGIES[pg] for pg in KEYS.values()]
        self.rows = drawn([*keys, *given], 40, chosen)

    def round(self) -> None:
        """Several transactions, of which some are rolled back."""
        left = STATEMENTS
        while left > 0:
            size = min(left, self.random.choice([1, 1, 2, 5, 15]))
            left -= size
            before = list(self.ids)
            with self.writer.transaction(force_rollback=(undone := self.random.random() < 0.1)):
                for _ in range(size):
                    self.change()
            if undone:
                self.ids = before

    def change(self) -> None:
        draw = self.random.random()
        if draw < 0.4 or not self.ids:
            self.insert()
        elif draw < 0.7:
            self.update(self.random.sample(NAMES, self.random.choice([1, 3, 20])))
        elif draw < 0.85:
            self.update([*self.random.sample(list(KEYS)[1:], 2), *self.random.sample(NAMES, 5)])
        elif draw < 0.88:
            (old, new), self.next_id = (self.random.choice(self.ids), self.next_id), self.next_id + 1
            self.writer.execute("UPDATE held SET id = %s WHERE id = %s", (new, old))
            self.ids = [new if one == old else one for one in self.ids]
        elif draw < 0.99:
            self.writer.execute("DELETE FROM held WHERE id = %s", (gone := self.random.choice(self.ids),))
            self.ids.remove(gone)
        else:
            self.writer.execute("TRUNCATE held")
            self.ids = []

    def insert(self) -> None:
        values = [self.next_id, *(self.value(name) for name in [*list(KEYS)[1:], *NAMES])]
        self.writer.execute(
            sql.SQL("INSERT INTO held VALUES ({})").format(sql.SQL(", ").join([sql.Placeholder()] * len(values))),
            values,
        )
        self.ids.append(self.next_id)
        self.next_id += 1

    def update(self, names: Sequence[str]) -> None:
        changed = sql.SQL(", ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in names)
        self.writer.execute(
            sql.SQL("UPDATE held SET {} WHERE id = %s").format(changed),
            [*(self.value(name) for name in names), self.random.choice(self.ids)],
        )

    def value(self, name: str) -> Any:
        """A value for a column; keys are never null, others now and then."""
        if name in KEYS:
            return self.random.choice(self.rows)[list(KEYS).index(name)]
        return None if self.random.random() < 0.1 else self.random.choice(self.rows)[len(KEYS) + NAMES.index(name)]


def create(writer: psycopg.Connection[Any]) -> None:
    """The table, empty."""
    writer.execute(DDL.encode())
    keys = ", ".join(f"{name} {pg} NOT NULL" for name, pg in KEYS.items())
    columns = ", ".join(f"{name} {case.pg}" for name, case in zip(NAMES, CASES, strict=True))
    writer.execute(f"CREATE TABLE held ({keys}, {columns}, PRIMARY KEY ({', '.join(KEYS)}))".encode())
    # So that now and then an update leaves a value out of the log.
    text = NAMES[[case.pg for case in CASES].index("text")]
    writer.execute(f"ALTER TABLE held ALTER {text} SET STORAGE EXTERNAL".encode())


def assert_held(followed: Live) -> int:
    """Row by row, the copy holds what the table does; how many rows that are."""
    inner = followed.source.inner
    assert isinstance(inner, PostgresSource)
    node = followed.source.node("held")
    base = followed.warehouse._catalog.versions.baseline(node.record.id)
    assert base is not None
    types = inner._columns("held", inner._table("held"))
    shown, read = [], []
    cases = {name: case.read_as for name, case in zip(NAMES, CASES, strict=True)}
    for column in node.visible:
        name = quoted(column.name)
        moments = {"timestamp": f"unix_micros({name})", "array<timestamp>": f"transform({name}, y -> unix_micros(y))"}
        shown.append(moments.get(column.type, name))
        cast = f"::{cases[column.name]}" if cases.get(column.name) else ""
        read.append(types[column.name].read(column.name) if column.type == "string" else f"{column.name}{cast}")
    copied = followed.warehouse._engine.rows(
        f"SELECT {', '.join(shown)} FROM ({node.select(base.version)}) ORDER BY id"
    )
    there = followed.rows(f"SELECT {', '.join(read)} FROM held ORDER BY id")
    assert [row[0] for row in copied] == [row[0] for row in there]
    for here, original in zip(copied, there, strict=True):
        for column, value, expected in zip(node.visible, here, original, strict=True):
            both = [comparable(_unsigned(one), column.type) for one in (value, expected)]
            assert both[0] == both[1], (column, original[0], both)
    return len(copied)


def run(dsn: str, folder: Path, engine: Engine, rounds: int, chosen: int) -> list[int]:
    """Change the table and refresh its copy so many times; how many rows it had each time."""
    with psycopg.connect(dsn, autocommit=True) as writer:
        create(writer)
    counts = []
    with live(dsn, folder, engine, tables=["held"]) as followed:
        followed.execute(set_session())
        changes = Changes(followed.writer, chosen)
        followed.follow("v", "SELECT * FROM src.held")
        for _ in range(rounds):
            changes.round()
            followed.refresh("src.held")
            counts.append(assert_held(followed))
    return counts


def _unsigned(value: Any) -> Any:
    """Zero without its sign, which Spark takes away when it groups rows to count their copies."""
    if isinstance(value, list):
        return [_unsigned(item) for item in value]
    return 0.0 if isinstance(value, float) and value == 0 else value


def _shortened(value: Any) -> Any:
    """A value that is not too large to be written again and again."""
    if isinstance(value, list):
        return [_shortened(item) for item in value]
    return value[:LARGEST] if isinstance(value, str | bytes) else value


def main(rounds: int, chosen: int) -> None:
    engine = Engine(settings={"spark.driver.memory": "2g"})
    began, at_once = time.monotonic(), 5
    with (
        tempfile.TemporaryDirectory(prefix="strandline-types-") as folder,
        PostgresServer.start(Path(folder) / "server") as server,
    ):
        for number in range(0, rounds, at_once):
            name = f"types_{number}"
            with psycopg.connect(server.dsn_for(SUPERUSER, server.password), autocommit=True) as maker:
                maker.execute(f"CREATE DATABASE {name}".encode())
            dsn = server.dsn_for(SUPERUSER, server.password, name)
            counts = run(dsn, Path(folder) / name, engine, at_once, chosen + number)
            print(f"{number + at_once}/{rounds} rounds {time.monotonic() - began:6.0f} s  rows {counts}", flush=True)
    engine.close()
    print(f"{rounds} rounds of {STATEMENTS} random statements: the copy held what the table did, each time")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 50, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
