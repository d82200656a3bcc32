"""Few rows of a large table sought without Spark: just those that a scan of the table would give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.engine import seeking
from strandline.engine.seeking import Seeking
from strandline.engine.session import Engine

LINES: dict[str, list[Any]] = {"o": [1, 1, 2, 3, 3, 3, 4, 5], "p": [7, 9, 7, 8, None, 9, 7, 1], "n": list(range(8))}
MANY = 100


@pytest.fixture(autouse=True)
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a few rows are sought in as well."""
    monkeypatch.setattr(seeking, "LEAST_ROWS", 0)
    monkeypatch.setattr(seeking, "MOST_SHARE", 1.0)


def write(path: Path, *parts: Mapping[str, Any]) -> str:
    """A table with a file for each of *parts*."""
    for part in parts:
        write_deltalake(str(path), pa.table(dict(part)), mode="append")
    return str(path)


def stored(path: Path, **columns: Sequence[Any]) -> str:
    """Stored files with these columns."""
    path.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path / "part-0.parquet")
    return str(path)


def told(among: Mapping[str, Any], columns: Sequence[str] = ("o", "p", "n"), **more: Any) -> dict[str, Any]:
    return {"among": {name: [origin] for name, origin in among.items()}, "columns": list(columns), **more}


def of(path: str, column: str) -> dict[str, Any]:
    return {"files": path, "column": column}


def sought(folder: Path, table: str, asked: Mapping[str, Any], version: int | None = None) -> list[Any] | None:
    at = DeltaTable(table).version() if version is None else version
    found = Seeking(folder / "kept", None).rows(table, at, asked)
    return None if found is None else sorted(found.column("n").to_pylist())


@pytest.mark.parametrize("other", [None, 0, 1], ids=["scanned", "half of it arranged", "arranged"])
@pytest.mark.parametrize(
    ("parts", "lines"), [([7], [0, 2, 6]), ([1, 8], [3, 7]), ([5], []), ([7, None], [0, 2, 4, 6])], ids=str
)
def test_rows_are_sought_by_stored_keys(
    tmp_path: Path, other: int | None, parts: list[int | None], lines: list[int]
) -> None:
    half = len(LINES["n"]) // 2
    halves = [{name: values[s] for name, values in LINES.items()} for s in (slice(half), slice(half, None))]
    table = write(tmp_path / "lines", *halves)
    keys = stored(tmp_path / "keys", part=parts)
    asked = told({"p": of(keys, "part")}, other=other)
    assert sought(tmp_path, table, asked) == lines
    assert sought(tmp_path, table, asked) == lines
    assert (tmp_path / "kept").exists() is (other is not None and None not in parts)


def test_a_version_that_the_log_does_not_tell_any_more_has_no_files(tmp_path: Path) -> None:
    table = write(tmp_path / "lines", LINES)
    asked = told({"p": of(stored(tmp_path / "keys", part=[7]), "part")}, other=99)
    assert sought(tmp_path, table, asked) == [0, 2, 6]
    assert not (tmp_path / "kept").exists()


def test_rows_that_were_sought_tell_what_to_seek_next(tmp_path: Path) -> None:
    lines = write(tmp_path / "lines", LINES)
    orders = write(tmp_path / "orders", {"o": [1, 2, 3, 4, 5], "c": [10, 20, 10, 30, None]})
    customers = stored(tmp_path / "customers", c=[10, 99])
    by_customer = {"table": orders, "version": 0, "column": "o", **told({"c": of(customers, "c")}, ["o", "c"], other=0)}
    assert sought(tmp_path, lines, told({"o": by_customer}, other=0)) == [0, 1, 3, 4, 5]


def test_values_of_several_origins_are_united(tmp_path: Path) -> None:
    table = write(tmp_path / "lines", LINES)
    some, more = stored(tmp_path / "some", o=[2]), stored(tmp_path / "more", o=[5, 2])
    asked = {"among": {"o": [of(some, "o"), of(more, "o")]}, "columns": ["n"]}
    assert sought(tmp_path, table, asked) == [2, 7]


def test_all_columns_have_to_be_among_their_values(tmp_path: Path) -> None:
    table = write(tmp_path / "lines", LINES)
    keys = stored(tmp_path / "keys", o=[1, 3, 4], p=[9, 9, 1])
    for other in (None, 0):
        assert sought(tmp_path, table, told({"o": of(keys, "o"), "p": of(keys, "p")}, other=other)) == [1, 5]


def test_files_outside_of_ranges_are_not_looked_at(tmp_path: Path) -> None:
    table = write(tmp_path / "lines", {"o": [1], "p": [7], "n": [0]}, {"o": [9], "p": [7], "n": [1]})
    keys = stored(tmp_path / "keys", p=[7])
    assert sought(tmp_path, table, told({"p": of(keys, "p")}, within={"o": [(5, 10)]}, other=1)) == [1]


def test_a_column_that_files_do_not_have_yet_is_null(tmp_path: Path) -> None:
    table = write(tmp_path / "lines", {"o": [1, 2], "n": [0, 1]})
    write_deltalake(table, pa.table({"o": [1], "n": [2], "p": [7]}), mode="append", schema_mode="merge")
    keys = stored(tmp_path / "keys", o=[1])
    for other in (None, 1):
        found = Seeking(tmp_path / "kept", None).rows(table, 1, told({"o": of(keys, "o")}, other=other))
        assert found is not None
        assert sorted(found.to_pylist(), key=str) == [{"o": 1, "p": 7, "n": 2}, {"o": 1, "p": None, "n": 0}]


@pytest.mark.parametrize(
    ("table_type", "key_type", "keys", "lines"),
    [
        (pa.int32(), pa.int64(), [1, 2**40, -(2**40)], [0]),
        (pa.int64(), pa.int8(), [1], [0]),
        (pa.int8(), pa.int64(), [128, 3], [2]),
        (pa.string(), pa.string(), ["a", "x"], [0]),
        (pa.date32(), pa.date32(), [date(1970, 1, 4)], [2]),
    ],
    ids=["too large ones", "narrow ones", "just too large", "texts", "days"],
)
def test_keys_are_compared_as_values_of_the_column(
    tmp_path: Path, table_type: pa.DataType, key_type: pa.DataType, keys: list[Any], lines: list[int]
) -> None:
    values: list[Any] = [1, 2, 3]
    if table_type == pa.date32():
        values = [date(1970, 1, 1) + timedelta(days=day) for day in values]
    if table_type == pa.string():
        values = ["a", "b", "c"]
    table = write(tmp_path / "t", {"k": pa.array(values, table_type), "n": [0, 1, 2]})
    path = stored(tmp_path / "keys", k=pa.array(keys, key_type))
    for other in (None, 0):
        assert sought(tmp_path, table, told({"k": of(path, "k")}, ["n"], other=other)) == lines


def test_days_that_only_spark_writes_are_sought(tmp_path: Path) -> None:
    """Spark writes moments as nanoseconds of 96 bits, in which the year 9999 has no place here."""
    last = datetime(9999, 12, 31)
    place = tmp_path / "t"
    write(place, {"k": [1, 2], "at": pa.array([last, last], pa.timestamp("us")), "n": [0, 1]})
    [file] = place.glob("*.parquet")
    pq.write_table(pq.read_table(file), file, use_deprecated_int96_timestamps=True)
    keys = stored(tmp_path / "keys", k=[2])
    found = Seeking(tmp_path / "kept", None).rows(str(place), 0, told({"k": of(keys, "k")}, ["at", "n"]))
    assert found is not None and found.to_pylist() == [{"at": last, "n": 1}]


def test_much_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write(tmp_path / "t", {"k": list(range(MANY)), "n": list(range(MANY))})
    keys = stored(tmp_path / "keys", k=[3, 4], other=[None, None])
    asked = told({"k": of(keys, "k")}, ["n"])
    assert sought(tmp_path, table, asked) == [3, 4]
    for limit, value in (("LEAST_ROWS", MANY), ("MOST_KEYS", 1), ("MOST_SHARE", 0.01), ("MOST_ROWS", 1)):
        with monkeypatch.context() as changed:
            changed.setattr(seeking, limit, value)
            assert sought(tmp_path, table, asked) is None, limit


def test_keys_that_are_not_to_be_had_leave_a_table_to_spark(tmp_path: Path) -> None:
    table = write(tmp_path / "t", {"k": [1, 2], "n": [0, 1]})
    assert sought(tmp_path, table, told({"k": of(str(tmp_path / "gone"), "k")}, ["n"])) is None
    unknown = {"table": table, "version": 0, "column": "k"}
    assert sought(tmp_path, table, told({"k": unknown}, ["n"])) is None
    keys = of(stored(tmp_path / "keys", n=[1]), "n")
    assert sought(tmp_path, table, told({"k": unknown, "n": keys}, ["n"])) == [1]


@pytest.mark.parametrize(
    "options",
    [{"partition_by": ["k"]}, {"configuration": {"delta.columnMapping.mode": "name"}}],
    ids=["partitions", "column mapping"],
)
def test_a_table_whose_files_are_not_its_rows_tells_no_keys(tmp_path: Path, options: dict[str, Any]) -> None:
    table = write(tmp_path / "t", {"k": [1, 2], "n": [0, 1]})
    odd = str(tmp_path / "odd")
    write_deltalake(odd, pa.table({"k": [1, 2], "c": [5, 6]}), **options)
    keys = stored(tmp_path / "keys", c=[5])
    by_odd = {"table": odd, "version": 0, "column": "k", **told({"c": of(keys, "c")}, ["k", "c"])}
    assert sought(tmp_path, table, told({"k": by_odd}, ["n"])) is None


def test_nested_values_are_left_to_spark(tmp_path: Path) -> None:
    table = write(tmp_path / "t", {"k": [1, 2], "n": [[0], [1]]})
    keys = stored(tmp_path / "keys", k=[1])
    assert sought(tmp_path, table, told({"k": of(keys, "k")}, ["k", "n"])) is None
    assert Seeking(tmp_path, None).rows(table, 0, told({"k": of(keys, "k")}, ["k"])) is not None


def test_a_table_elsewhere_is_left_to_spark(tmp_path: Path) -> None:
    assert Seeking(tmp_path, None).rows("s3://bucket/t", 0, told({"k": of("keys", "k")})) is None


def test_where_nothing_can_be_kept_all_is_read(tmp_path: Path) -> None:
    table = write(tmp_path / "t", {"k": [1, 2], "n": [0, 1]})
    keys = stored(tmp_path / "keys", k=[2])
    (tmp_path / "kept").write_text("not a folder")
    assert sought(tmp_path, table, told({"k": of(keys, "k")}, ["n"], other=0)) == [1]


def test_a_part_of_the_disk_is_left_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = write(tmp_path / "t", {"k": [1, 2], "n": [0, 1]})
    asked = told({"k": of(stored(tmp_path / "keys", k=[2]), "k")}, ["n"], other=0)
    for free, kept in ((9, False), (11, True)):
        monkeypatch.setattr("shutil.disk_usage", lambda _, free=free: SimpleNamespace(total=100, free=free))
        assert sought(tmp_path, table, asked) == [1]
        assert (tmp_path / "kept").exists() is kept


KEYS = st.one_of(st.none(), st.integers(0, 6))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=6), min_size=1, max_size=3),
    st.lists(st.tuples(KEYS, KEYS), min_size=1, max_size=3),
    st.integers(0, 3),
)
def test_what_is_found_is_what_matches(
    tmp_path_factory: pytest.TempPathFactory,
    parts: list[list[tuple[int | None, int | None]]],
    keys: list[tuple[int | None, int | None]],
    other: int,
) -> None:
    folder = tmp_path_factory.mktemp("sought")
    kinds = pa.schema({"a": pa.int64(), "b": pa.int32(), "n": pa.int64()})
    number = 0
    for part in parts:
        written = [{"a": a, "b": b, "n": number + n} for n, (a, b) in enumerate(part)]
        number += len(written)
        write_deltalake(str(folder / "t"), pa.Table.from_pylist(written, kinds), mode="append")
    path = stored(folder / "keys", a=pa.array([a for a, _ in keys], pa.int64()), b=[b for _, b in keys])
    asked = told({"a": of(path, "a"), "b": of(path, "b")}, ["n"], other=min(other, len(parts) - 1))
    rows = [row for part in parts for row in part]
    wanted = [n for n, (a, b) in enumerate(rows) if a in {a for a, _ in keys} and b in {b for _, b in keys}]
    assert sought(folder, str(folder / "t"), asked) == wanted


@pytest.mark.parametrize(
    ("kept", "remote", "master", "seeks"),
    [
        ("/warehouse/kept", None, None, True),
        ("/warehouse/kept", None, "local[4]", True),
        ("/warehouse/kept", None, "spark://host:7077", False),
        ("/warehouse/kept", "sc://host", None, False),
        ("/warehouse/kept", "sc://localhost:15002/;token=t", None, True),
        ("/warehouse/kept", "sc://127.0.0.1", None, True),
        ("/warehouse/kept", "sc://[::1]:15002", None, True),
        ("s3://bucket/kept", None, None, False),
        (None, None, None, False),
    ],
    ids=[
        "here",
        "four cores",
        "a cluster",
        "a Connect server",
        "one on this machine",
        "one at its address",
        "one at its newer address",
        "an object store",
        "no folder",
    ],
)
def test_rows_are_sought_where_spark_works_on_this_machine_alone(
    kept: str | None, remote: str | None, master: str | None, seeks: bool
) -> None:
    engine = Engine(remote=remote, settings={"spark.master": master} if master else {}, kept=kept)
    assert engine.seeks is seeks
    assert not engine.started


# Of rows that were read whole


def met(*values: int | None, kind: pa.DataType | None = None) -> pa.ChunkedArray:
    return pa.chunked_array([pa.array(values, kind or pa.int64())])


READ = pa.table({"k": pa.array(range(40_000), pa.int32()), "s": [str(n % 7) for n in range(40_000)]})


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ({"k": met(7, None, 7, 39_999)}, [7, 39_999]),
        ({"k": met(7, 2**40)}, [7]),
        ({"k": met()}, []),
        # The key that is met with the fewest values.
        ({"s": pa.chunked_array([pa.array(["1"])]), "k": met(7, 9)}, [7, 9]),
        ({"k": met(7), "other": met()}, [7]),
    ],
)
def test_rows_that_meet_nothing_are_left_out(asked: dict[str, pa.ChunkedArray], expected: list[int]) -> None:
    assert seeking.rows_met(READ, asked)["k"].to_pylist() == expected


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"s": pa.chunked_array([pa.array(["1"])])},
        {"k": pa.chunked_array([pa.array([Decimal("7.5")])])},
        {"k": met(*range(20_000))},
    ],
)
def test_where_it_takes_longer_to_tell_all_rows_stay(asked: dict[str, pa.ChunkedArray]) -> None:
    assert seeking.rows_met(READ, asked) is READ
    assert seeking.rows_met(READ.slice(0, 100), {"k": met(7)}).num_rows == 100
