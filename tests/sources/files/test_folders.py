"""Which dumps there are, which is taken, and what is known of it; no Spark is needed for that."""

from __future__ import annotations

import gzip
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from strandline.algebra.schema import Column
from strandline.errors import SourceError
from strandline.sources.adapters import adapter
from strandline.sources.arrow_types import plain_type, spark_type
from strandline.sources.files.declared import FilesTable
from strandline.sources.files.source import FilesSource
from strandline.sources.jdbc import JdbcAddress, ranges
from strandline.sources.snapshots import Newest
from tests.sources.files.dumps import EVENTS, PARTS, age, text, write

ROWS = [(1, "a"), (1, "a")]


def source(path: Path, *, clock: Callable[[], int] = time.time_ns, **given: Any) -> FilesSource:
    """A source with the one table t."""
    settings = {"format": "parquet", "settle": 0.0, **given}
    return FilesSource("src", {"t": FilesTable(str(path), **settings)}, clock=clock)


def taken(found: Newest) -> str | None:
    return None if found.dump is None else found.dump.name


def test_the_newest_dump_is_taken_by_name_or_by_time(tmp_path: Path) -> None:
    for name, seconds in (("2026-02", 300), ("2026-01", 100), ("2026-03", 200)):
        age(write(tmp_path / f"{name}.parquet", ROWS, EVENTS), seconds)
    assert taken(source(tmp_path).newest("t", None)) == "2026-03.parquet"
    assert taken(source(tmp_path, order="modified").newest("t", None)) == "2026-01.parquet"


def test_a_dump_may_be_a_file_or_a_folder_and_names_of_unfinished_ones_are_never_taken(tmp_path: Path) -> None:
    write(tmp_path / "1.parquet", ROWS, EVENTS)
    write(tmp_path / "2" / "part-0.parquet", ROWS, EVENTS)
    write(tmp_path / "2" / "part-1.parquet", ROWS, EVENTS)
    write(tmp_path / "2" / "_part-2.parquet", ROWS, EVENTS)
    for name in ("3.parquet.tmp", "_4.parquet", ".5.parquet", "6.parquet~", "7.partial", "8.parquet.md5", "9.txt"):
        write(tmp_path / name, ROWS, EVENTS)
    (tmp_path / "99").mkdir()
    found = source(tmp_path).newest("t", None)
    assert (taken(found), found.waiting, found.skipped) == ("2", (), ())
    assert found.dump is not None
    assert source(tmp_path).contents("t", found.dump).rows == 4


def test_a_dump_is_whole_when_it_was_left_alone_for_a_while(tmp_path: Path) -> None:
    file = write(tmp_path / "1.parquet", ROWS, EVENTS)
    age(file, 3600)
    now = time.time_ns()
    # Contents that were given an old date have still only just been written.
    early = source(tmp_path, settle=60.0, clock=lambda: now)
    assert early.newest("t", None) == Newest(waiting=("1.parquet",))
    later = source(tmp_path, settle=60.0, clock=lambda: now + 61 * 10**9)
    assert taken(later.newest("t", None)) == "1.parquet"


def test_a_dump_is_whole_when_its_marker_is_there(tmp_path: Path) -> None:
    write(tmp_path / "1" / "part-0.parquet", ROWS, EVENTS)
    marked = source(tmp_path, marker="_SUCCESS")
    assert marked.newest("t", None) == Newest(waiting=("1",))
    text(tmp_path / "1" / "_SUCCESS")
    assert taken(marked.newest("t", None)) == "1"
    text(tmp_path / "2" / "_SUCCESS")
    found = marked.newest("t", None)
    assert taken(found) == "2", "a folder with nothing but its marker is a dump without rows"
    write(tmp_path / "3.parquet", ROWS, EVENTS)
    assert marked.newest("t", None).waiting == ("3.parquet",)
    text(tmp_path / "3.parquet_SUCCESS")
    assert taken(marked.newest("t", None)) == "3.parquet"


def test_only_what_came_after_the_dump_that_is_shown_is_taken(tmp_path: Path) -> None:
    files = source(tmp_path)
    for number in (1, 2):
        write(tmp_path / f"{number}.parquet", ROWS, EVENTS)
    shown = files.newest("t", None).dump
    assert shown is not None
    assert files.newest("t", shown.identity) == Newest()
    (tmp_path / "2.parquet").unlink()
    assert files.newest("t", shown.identity) == Newest(), "it does not go back to an older one"
    for number in (3, 4):
        write(tmp_path / f"{number}.parquet", ROWS, EVENTS)
    found = files.newest("t", shown.identity)
    assert (taken(found), found.skipped) == ("4.parquet", ("3.parquet",))


def test_one_file_or_one_folder_that_is_overwritten_is_a_new_dump_each_time(tmp_path: Path) -> None:
    file = write(tmp_path / "t.parquet", ROWS, EVENTS)
    for files in (source(file), source(tmp_path, whole=True), source(tmp_path / "*.parquet")):
        first = files.newest("t", None).dump
        assert first is not None and files.newest("t", first.identity).dump is None
        write(file, [*ROWS, (2, "b")], EVENTS)
        second = files.newest("t", first.identity).dump
        assert second is not None
        assert files.contents("t", second).rows == files.contents("t", second).rows == 3
        write(file, ROWS, EVENTS)


def test_equal_contents_have_equal_fingerprints(tmp_path: Path) -> None:
    files = source(tmp_path)
    seen = []
    for number, rows in enumerate((ROWS, ROWS, [(1, "b"), (1, "a")])):
        write(tmp_path / f"{number}.parquet", rows, EVENTS)
        dump = files.newest("t", None).dump
        assert dump is not None
        seen.append(files.contents("t", dump).fingerprint)
    assert seen[0] == seen[1] != seen[2]


def test_a_dump_that_was_taken_away_or_changed_is_an_error(tmp_path: Path) -> None:
    files = source(tmp_path)
    write(tmp_path / "1.parquet", ROWS, EVENTS)
    dump = files.newest("t", None).dump
    assert dump is not None
    changed = pytest.raises(SourceError, match=r"\[DUMP_GONE\] dump 1.parquet of src.t has been changed")
    with changed, files.opened("t", dump.identity, (), ""):
        write(tmp_path / "1.parquet", [(5, "e")], EVENTS)
    (tmp_path / "1.parquet").unlink()
    gone = pytest.raises(SourceError, match=r"\[DUMP_GONE\] dump 1.parquet of src.t was taken away")
    with gone, files.opened("t", dump.identity, (), ""):
        raise AssertionError("there is nothing to read")


def test_a_file_that_is_not_what_it_should_be_is_held_back(tmp_path: Path) -> None:
    files = source(tmp_path)
    write(tmp_path / "1.parquet", ROWS, EVENTS)
    (tmp_path / "2.parquet").write_bytes((tmp_path / "1.parquet").read_bytes()[:-20])
    found = files.newest("t", None)
    assert found.problem is not None
    assert found.problem.code == "DUMP_HELD_BACK" and "2.parquet is not a Parquet file" in found.problem.text
    assert files.tables()["t"].columns == (Column("part", "bigint"), Column("what", "string"))
    write(tmp_path / "3" / "a.parquet", ROWS, EVENTS)
    write(tmp_path / "3" / "b.parquet", [(1, "b", None)], PARTS)
    problem = files.newest("t", None).problem
    assert problem is not None and "its files have other columns" in problem.text


def test_columns_of_text_are_those_of_its_header_and_of_the_declaration(tmp_path: Path) -> None:
    text(tmp_path / "1.csv", "\ufeffid;'odd; name';day", "1;x;2026-01-01", "2;y;")
    options = {"sep": ";", "quote": "'"}
    files = source(tmp_path, format="csv", columns={"id": "bigint", "day": "date"}, options=options, key=("id",))
    assert files.tables()["t"].columns == (Column("id", "bigint"), Column("odd; name", "string"), Column("day", "date"))
    files.check()
    dump = files.newest("t", None).dump
    assert dump is not None and files.contents("t", dump).rows == 2
    with gzip.open(tmp_path / "2.csv.gz", "wt") as file:
        file.write("id;'odd; name';day\n1;x;2026-01-01\n2;y;\n3;z;")
    dump = files.newest("t", None).dump
    assert dump is not None and files.contents("t", dump).rows == 3
    text(tmp_path / "3" / "a.csv", "id;day", "1;")
    text(tmp_path / "3" / "b.csv", "day;id", ";1")
    problem = files.newest("t", None).problem
    assert problem is not None and "in another order" in problem.text
    bare = source(tmp_path / "1.csv", format="csv", columns={"a": "int"}, options={"header": "false"})
    assert bare.tables()["t"].columns == (Column("a", "int"),)


@pytest.mark.parametrize(
    ("given", "code", "words"),
    [
        ({"key": ("no",)}, "KEY_MISSING", "declared with a column no, and its dump 1.csv has day, id"),
        ({"columns": {"dya": "date"}}, "UNKNOWN_COLUMN", "declared with a column dya, and its dump 1.csv has day, id"),
        ({"format": "json"}, "COLUMNS_MISSING", "declare them under `columns`"),
    ],
)
def test_a_declaration_that_does_not_fit_is_refused(tmp_path: Path, given: Any, code: str, words: str) -> None:
    text(tmp_path / "1.csv", "id,day", "1,")
    text(tmp_path / "1.json", '{"id": 1}')
    with pytest.raises(SourceError) as error:
        source(tmp_path, **{"format": "csv", **given}).check()
    assert error.value.code == code and words in error.value.message


def test_every_folder_below_a_path_is_a_table(tmp_path: Path) -> None:
    write(tmp_path / "parts" / "1.parquet", [], PARTS)
    text(tmp_path / "events" / "1.csv", "part,what")
    (tmp_path / "empty").mkdir()
    config = {
        "kind": "files",
        "path": str(tmp_path),
        "settle": 0,
        "keys": {"parts": ["id"]},
        "tables": {"events": {"format": "csv", "shrink": 0.1, "options": {"sep": ","}}},
    }
    files = adapter("src", config, None, {}, "")  # type: ignore[arg-type]
    assert isinstance(files, FilesSource)
    there = {name: info.key for name, info in files.tables().items() if info.columns}
    assert there == {"events": (), "parts": ("id",)}
    assert (files.rules("events").shrink, files.rules("parts").shrink) == (0.1, 0.5)
    assert [finding.ok for finding in files.findings()] == [True, True]
    (tmp_path / "parts" / "1.parquet").unlink()
    assert [name for name, info in files.tables().items() if info.columns] == ["events"]
    (tmp_path / "events" / "1.csv").rename(tmp_path / "events" / "1.txt")
    assert [finding.what.split("; ")[-1] for finding in files.findings()] == ["no csv by their names: 1.txt"]
    missing = adapter("src", {**config, "path": str(tmp_path / "no"), "tables": {}}, None, {}, "")  # type: ignore[arg-type]
    with pytest.raises(SourceError, match="SOURCE_PATH_MISSING"):
        missing.check()


def test_types_have_their_names_in_spark() -> None:
    nested = pa.struct([("a b", pa.list_(pa.int32())), ("m", pa.map_(pa.string(), pa.timestamp("ns", "UTC")))])
    assert spark_type(nested) == "struct<`a b`:array<int>,m:map<string,timestamp>>"
    assert spark_type(pa.dictionary(pa.int8(), pa.large_string())) == "string"
    assert spark_type(pa.uint32()) == "bigint"
    assert [spark_type(kind) for kind in (pa.uint64(), pa.time64("us"), pa.null())] == [None, None, None]
    assert [plain_type(t) for t in ("INTEGER", "numeric(12, 2)", "decimal", "text", "decimal(50,1)")] == [
        "int",
        "decimal(12,2)",
        "decimal(10,0)",
        None,
        None,
    ]


@pytest.mark.parametrize(("low", "high", "parts"), [(1, 1, 4), (0, 10, 3), (-7, 100, 8), (5, 6, 100)])
def test_each_row_lies_in_one_range(low: int, high: int, parts: int) -> None:
    conditions = ranges("k", low, high, parts)
    assert len(conditions) <= parts
    for value in range(low - 2, high + 3):
        met = [
            c
            for c in conditions
            if eval(c.replace("OR k IS NULL", "").replace("AND", "and").replace("1 = 1", "True"), {"k": value})
        ]
        assert len(met) == 1, value
    assert sum("IS NULL" in c for c in conditions) == (conditions != ["1 = 1"])


def test_a_url_with_a_password_is_refused() -> None:
    for url in ("jdbc:postgresql://h/d?user=a&password=b", "jdbc:x://a:b@h/d"):
        with pytest.raises(SourceError, match="SOURCE_PASSWORD_IN_DSN"):
            JdbcAddress(url)
    with pytest.raises(SourceError, match="SOURCE_ADDRESS"):
        JdbcAddress()
    with pytest.raises(SourceError, match=r"SOURCE_DSN_UNSET.*NO_SUCH_VARIABLE"):
        JdbcAddress("jdbc:x://h/d", password_env="NO_SUCH_VARIABLE").options()
