"""Random snapshots with everything that may happen to rows, and what a report makes of them."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from strandline.differential.arrow_rows import plain_value

SCHEMA = pa.schema(
    {
        "id": pa.int64(),
        "part": pa.string(),
        "number": pa.int32(),
        "weight": pa.float64(),
        "text": pa.string(),
        "tags": pa.list_(pa.int32()),
        "pairs": pa.list_(pa.list_(pa.int32())),
        "marks": pa.map_(pa.string(), pa.struct({"at": pa.timestamp("us", "UTC"), "w": pa.float64()})),
    }
)
MOMENT = datetime(2026, 11, 15, 12, tzinfo=UTC)
KEY = ("id", "part")
Row = dict[str, Any]


def values(chance: random.Random) -> Row:
    return {
        "number": chance.choice([None, 0, 1, 2]),
        "weight": chance.choice([None, 0.0, -0.0, 1.5, float("nan")]),
        "text": chance.choice([None, "", "a", "b"]),
        "tags": chance.choice([None, [], [1], [None], [1, 2]]),
        "pairs": chance.choice([None, [], [[1, 2], [3, 4]], [[3, 4], [1, 2]], [[1, 2], None]]),
        "marks": chance.choice([None, [], [("a", None)], marks(0, 0.0), marks(0, -0.0)[::-1], marks(1, 0.0)]),
    }


def marks(microseconds: int, weight: float) -> list[tuple[str, Row]]:
    """A map; one with its entries in another order, or with another zero, is equal."""
    moment = MOMENT + timedelta(microseconds=microseconds)
    return [("a", {"at": moment, "w": weight}), ("b", {"at": None, "w": 1.5})]


def random_set(chance: random.Random, rows: int, *, nulls: bool = True) -> tuple[list[Row], list[Row]]:
    """Two snapshots: rows that stay, move, change, go and come; parts of keys may be NULL."""
    keys: list[tuple[int | None, str | None]] = [(i // 2, chance.choice("xy") + str(i % 2)) for i in range(rows)]
    if nulls:
        keys[::17] = [(i, None) for i in range(len(keys[::17]))]
        keys[1::37] = [(None, f"p{i}") for i in range(len(keys[1::37]))]
    made = [{"id": key[0], "part": key[1], **values(chance)} for key in keys]
    old, new = [dict(row) for row in made], [dict(row) for row in made]
    for row in new:
        if chance.random() < 0.15:
            row.update(values(chance))
    old = [row for row in old if chance.random() > 0.1]
    new = [row for row in new if chance.random() > 0.1]
    for _ in range(len(new) // 10):
        a, b = chance.randrange(len(new)), chance.randrange(len(new))
        new[a], new[b] = new[b], new[a]
    return old, new


def random_bag(chance: random.Random, rows: int) -> tuple[list[Row], list[Row]]:
    """Two snapshots with duplicates; NULL in any column, identification attributes included."""

    def one() -> Row:
        return {
            "id": chance.choice([None, *range(rows // 6 + 1)]),
            "part": chance.choice([None, "x"]),
            **values(chance),
        }

    old = [one() for _ in range(rows)]
    old += [dict(chance.choice(old)) for _ in range(rows // 3)] if old else []
    new = [dict(row) for row in old if chance.random() > 0.1]
    for row in new:
        if chance.random() < 0.1:
            row.update(values(chance))
    new += [one() for _ in range(rows // 10)]
    chance.shuffle(new)
    return old, new


def write(rows: Sequence[Row], path: Path, schema: pa.Schema = SCHEMA, files: int = 2) -> Path:
    """Rows as a folder of Parquet files."""
    path.mkdir(parents=True)
    table = pa.Table.from_pylist(list(rows), schema)
    step = max(1, -(-table.num_rows // files))
    for number in range(files):
        pq.write_table(table.slice(number * step, step), path / f"part-{number}.parquet", row_group_size=50)
    return path


def frozen(row: Row, names: Sequence[str] = SCHEMA.names) -> tuple[Any, ...]:
    """A row as a value, under Spark's grouping equality."""
    return tuple(plain_value(row[name]) for name in names)


def reported(folder: str | Path) -> list[Row]:
    """The rows of a report."""
    rows: list[Row] = ds.dataset(str(folder), format="parquet").to_table().to_pylist()
    return rows


def applied(old: Sequence[Row], changes: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    """The bag of rows after the changes; each removes a row that must be there, or adds one."""
    held = Counter(frozen(row) for row in old)
    for change in changes:
        held[frozen(change)] += 1 if change["_change_type"] in ("insert", "update_postimage") else -1
    assert all(count >= 0 for count in held.values()), "a report removes a row that is not there"
    return +held


def applied_by_key(old: Sequence[Row], changes: Sequence[Row]) -> Counter[tuple[Any, ...]]:
    """The set of rows after changes whose old rows are not known."""
    held = {frozen(row, KEY): frozen(row) for row in old}
    for change in changes:
        if change["_change_type"] == "delete":
            del held[frozen(change, KEY)]
        else:
            held[frozen(change, KEY)] = frozen(change)
    return Counter(held.values())


def kinds(changes: Sequence[Row]) -> Counter[str]:
    return Counter(change["_change_type"] for change in changes)


def fewest(old: Sequence[Row], new: Sequence[Row]) -> int:
    """The smallest number of reports, by key or identification attributes."""
    before, after = Counter(frozen(row) for row in old), Counter(frozen(row) for row in new)
    gone = Counter(row[:2] for row in (before - after).elements())
    came = Counter(row[:2] for row in (after - before).elements())
    return sum((gone | came).values())
