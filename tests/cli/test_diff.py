"""``strandline diff``: what it prints, what it writes, and what it says about input that will not do."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from strandline.cli.context import Context
from strandline.engine.session import Engine
from tests.cli.conftest import Invoke, parsed, without_java
from tests.differential.snapshots import reported

MONDAY = {"id": [1, 2, 3, 4], "name": ["ann", "bob", None, "dee"], "amount": [1.5, 2.5, 3.5, 4.5]}
TUESDAY = {"id": [4, 1, 3, 5], "name": ["dee", "ann", "cyd", "eve"], "amount": [4.5, 1.5, 3.5, 5.5]}
COUNTS = {"inserted": 1, "deleted": 1, "updated": 1}


@pytest.fixture
def dumps(tmp_path: Path) -> tuple[Path, Path]:
    paths = tmp_path / "monday.parquet", tmp_path / "tuesday.parquet"
    for path, rows in zip(paths, (MONDAY, TUESDAY), strict=True):
        pq.write_table(pa.table(rows), path)
    return paths


def csv(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def test_small_dumps_are_compared_without_java(dumps: tuple[Path, Path], tmp_path: Path) -> None:
    done = without_java("diff", *dumps, "--key", "id", "--output", tmp_path / "changes", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    found = json.loads(done.stdout)
    assert found["counts"] == COUNTS
    assert found["algorithm"] == "window"
    assert "fit in memory" in found["reason"]
    assert found["error_probability"] == 0
    assert found["bytes_read"] == sum(path.stat().st_size for path in dumps)
    rows = {(row["_change_type"], row["id"], row["name"]) for row in reported(tmp_path / "changes")}
    assert rows == {
        ("insert", 5, "eve"), ("delete", 2, "bob"), ("update_preimage", 3, None), ("update_postimage", 3, "cyd")
    }  # fmt: skip


def test_differences_are_shown(dumps: tuple[Path, Path], invoke: Invoke) -> None:
    shown = invoke("diff", *dumps, "--key", "id")
    assert shown.exit_code == 0
    lines = [line.split() for line in shown.stdout.splitlines()]
    assert lines[0] == ["id", "name", "amount"]
    assert [line for line in lines if line[0] in "+-"] == [["-", "2", "bob", "2.5"], ["+", "5", "eve", "5.5"]]
    assert [line for line in lines if line[0] in "<>"] == [["<", "3", "NULL", "3.5"], [">", "3", "cyd", "3.5"]]
    assert "1 inserted, 1 deleted, 1 updated; 4 rows before, 4 after." in shown.stdout
    assert "Compared with window:" in shown.stdout


def test_equal_snapshots_have_no_differences(dumps: tuple[Path, Path], invoke: Invoke) -> None:
    shown = invoke("diff", dumps[0], dumps[0], "--key", "id")
    assert shown.exit_code == 0
    assert "0 inserted, 0 deleted, 0 updated" in shown.stdout


def test_rows_without_a_key_are_compared_as_a_bag(tmp_path: Path, invoke: Invoke) -> None:
    old = csv(tmp_path / "old.csv", "account,amount", "1,5", "1,5", "2,7")
    new = csv(tmp_path / "new.csv", "account,amount", "1,5", "2,8", "3,1")
    found = parsed(invoke("diff", old, new, "--bag", "--identify", "account", "--json"))
    assert found["counts"] == COUNTS
    found = parsed(invoke("diff", old, new, "--bag", "--json"))
    assert found["counts"] == {"inserted": 2, "deleted": 2, "updated": 0}


def test_versions_of_a_delta_table_are_compared_by_the_files_that_differ(tmp_path: Path, invoke: Invoke) -> None:
    path = tmp_path / "lake" / "orders"
    write_deltalake(path, pa.table(MONDAY))
    write_deltalake(path, pa.table({"id": [9], "name": ["new"], "amount": [9.5]}), mode="append")
    DeltaTable(path).delete("id = 9")
    found = parsed(invoke("diff", f"{path}@v0", f"{path}@v1", "--key", "id", "--json"))
    assert found["counts"] == {"inserted": 1, "deleted": 0, "updated": 0}
    assert found["rows"] == {"old": 0, "new": 1}
    assert parsed(invoke("diff", f"{path}@v0", path, "--key", "id", "--json"))["counts"]["inserted"] == 0
    failed = invoke("diff", f"{path}@v7", path, "--key", "id")
    assert (failed.exit_code, failed.stderr[:19]) == (1, "[SNAPSHOT_MISSING] ")
    assert "no version 7; its newest is 2" in failed.stderr


def test_a_text_file_takes_on_the_types_of_the_other_side(
    dumps: tuple[Path, Path], tmp_path: Path, invoke: Invoke
) -> None:
    dump = csv(tmp_path / "dump.csv", "id,name,amount", "1,ann,1.50", "2,bob,2.5", "3,,3.5", "4,dee,4.5")
    found = parsed(invoke("diff", dumps[0], dump, "--key", "id", "--json"))
    assert found["counts"] == {"inserted": 0, "deleted": 0, "updated": 0}


def test_unreadable_rows_are_an_error_or_set_aside(dumps: tuple[Path, Path], tmp_path: Path, invoke: Invoke) -> None:
    lines = ("id,name,amount", "1,ann,1.5", "2,bob", "3,,many", "4,dee,4.5")
    dump = csv(tmp_path / "dump.csv", *lines)
    failed = invoke("diff", dumps[0], dump, "--key", "id")
    assert failed.exit_code == 1
    assert failed.stderr.splitlines()[-3].startswith("[UNREADABLE_ROWS] 2 rows of")
    assert [line.strip() for line in failed.stderr.splitlines()[-2:]] == ["2,bob", "3,,many"]
    found = parsed(invoke("diff", dumps[0], dump, "--key", "id", "--unreadable", "set-aside", "--json"))
    assert found["unreadable"]["new"] == {"count": 2, "first": ["2,bob", "3,,many"]}
    assert found["counts"] == {"inserted": 0, "deleted": 2, "updated": 0}


def test_added_and_dropped_columns_are_reported_as_such(
    dumps: tuple[Path, Path], tmp_path: Path, invoke: Invoke
) -> None:
    table = pa.table({**MONDAY, "note": ["n"] * 4}).drop_columns(["name"])
    pq.write_table(table.set_column(0, "id", table.column("id").cast(pa.int32())), tmp_path / "new.parquet")
    found = parsed(invoke("diff", dumps[0], tmp_path / "new.parquet", "--key", "id", "--json"))
    assert found["schema"] == {
        "added": ["note"],
        "dropped": ["name"],
        "retyped": [{"column": "id", "old": "int64", "new": "int32"}],
    }
    assert found["counts"] == {"inserted": 0, "deleted": 0, "updated": 0}
    shown = invoke("diff", dumps[0], tmp_path / "new.parquet", "--key", "id").stdout
    assert "Columns added, and not compared: note." in shown
    assert "Columns dropped, and not compared: name." in shown


def test_a_key_that_several_rows_have_is_an_error_that_names_it(tmp_path: Path, invoke: Invoke) -> None:
    old = csv(tmp_path / "old.csv", "id,v", "1,a")
    new = csv(tmp_path / "new.csv", "id,v", "2,a", "1,a", "2,b")
    failed = invoke("diff", old, new, "--key", "id")
    assert failed.exit_code == 1
    assert "[KEY_NOT_UNIQUE]" in failed.stderr
    assert "id='2'" in failed.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("old.csv", "new.csv"), "KEY_MISSING", "--bag"),
        (("old.csv", "new.csv", "--key", "idd"), "KEY_MISSING", "its columns are id, v"),
        (("old.csv", "gone.csv", "--key", "id"), "SNAPSHOT_MISSING", "gone.csv"),
        (("old.csv", "other.csv", "--key", "id"), "KEY_MISSING", "other.csv has no column id"),
        (("old.csv", "other.csv", "--bag"), "NO_COMMON_COLUMN", "x"),
        (("old.csv", "mixed", "--key", "id"), "SNAPSHOT_FORMAT", "several formats"),
        (("typed.parquet", "retyped.parquet", "--key", "id"), "TYPES_DIFFER", "column v is"),
        (("broken.parquet", "typed.parquet", "--key", "id"), "SNAPSHOT_UNREADABLE", "not a Parquet file"),
        (("old.csv", "new.csv", "--key", "id", "--output", "full"), "OUTPUT_EXISTS", "full"),
        (("old.csv", "new.csv", "--bag", "--algorithm", "phc1"), "ALGORITHM_IMPOSSIBLE", "sets only"),
        (("old.csv", "new.csv", "--key", "id", "--algorithm", "window", "--memory", "1m"), "MEMORY_TOO_SMALL", "MB"),
        (("empty.csv", "empty.csv", "--key", "id"), "SNAPSHOT_EMPTY", "columns"),
        (("old.csv", "latin.csv", "--key", "id"), "SNAPSHOT_UNREADABLE", "UTF8"),
        (("old.csv", "parts", "--key", "id"), "SNAPSHOT_FORMAT", "x=1"),
    ],
)  # fmt: skip
def test_bad_input_is_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke, arguments: tuple[str, ...], code: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    csv(tmp_path / "old.csv", "id,v", "1,a")
    csv(tmp_path / "new.csv", "id,v", "1,b")
    csv(tmp_path / "other.csv", "x,y", "1,b")
    (tmp_path / "empty.csv").touch()
    (tmp_path / "latin.csv").write_bytes(b"id,v\n1,\xe9\n")
    for folder in ("mixed", "full", "parts/x=1"):
        (tmp_path / folder).mkdir(parents=True)
        csv(tmp_path / folder / "a.csv", "id,v")
    (tmp_path / "mixed" / "b.json").write_text("{}")
    pq.write_table(pa.table({"id": [1], "v": ["a"]}), tmp_path / "typed.parquet")
    pq.write_table(pa.table({"id": [1], "v": [[1]]}), tmp_path / "retyped.parquet")
    (tmp_path / "broken.parquet").write_text("no")
    failed = invoke("diff", *arguments)
    assert failed.exit_code == 1
    assert f"[{code}]" in failed.stderr
    assert words in failed.stderr


def test_empty_files_are_snapshots_without_rows(tmp_path: Path, invoke: Invoke) -> None:
    full = csv(tmp_path / "full.csv", "id,v", "1,a", "2,b")
    (tmp_path / "empty.csv").touch()
    found = parsed(invoke("diff", tmp_path / "empty.csv", full, "--key", "id", "--json"))
    assert found["counts"] == {"inserted": 2, "deleted": 0, "updated": 0}
    found = parsed(invoke("diff", full, csv(tmp_path / "header.csv", "id,v"), "--key", "id", "--json"))
    assert found["counts"] == {"inserted": 0, "deleted": 2, "updated": 0}


@pytest.mark.parametrize(
    "arguments",
    [("a",), ("a", "b", "--algorithm", "fast"), ("a", "b", "--memory", "much"), ("a", "b", "--hash-bits", "7"),
     ("a", "b", "--key", "id", "--bag"), ("a", "b", "--unreadable", "ignore")],
)  # fmt: skip
def test_bad_usage_ends_with_status_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, invoke: Invoke, arguments: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert invoke("diff", *arguments).exit_code == 2


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_files_of_one_snapshot_have_the_same_columns(tmp_path: Path, invoke: Invoke, suffix: str) -> None:
    folder = tmp_path / "dump"
    folder.mkdir()
    for number, names in enumerate((("id", "name"), ("id", "label"))):
        if suffix == "csv":
            csv(folder / f"{number}.csv", ",".join(names), "1,ann")
        else:
            pq.write_table(pa.table([[number], ["ann"]], names=names), folder / f"{number}.parquet")
    failed = invoke("diff", folder, folder, "--key", "id")
    assert (failed.exit_code, failed.stderr[:18]) == (1, "[SNAPSHOT_FORMAT] ")
    assert f"1.{suffix} has the columns id" in failed.stderr and "label" in failed.stderr


def test_what_is_kept_is_said(dumps: tuple[Path, Path], tmp_path: Path, invoke: Invoke) -> None:
    shown = invoke("diff", *dumps, "--key", "id", "--algorithm", "window", "--keep", tmp_path / "kept")
    assert f"Nothing is kept in {tmp_path / 'kept'}: window keeps nothing" in shown.stdout


@pytest.mark.spark
def test_text_and_json_are_compared_on_spark(engine: Engine, tmp_path: Path, invoke: Invoke) -> None:
    old = csv(tmp_path / "old.csv", "id,name,amount", "1,ann,1.5", "2,bob,2.5", "3,,3.5", "4,dee,4.5")
    lines = [json.dumps(dict(zip(TUESDAY, row, strict=True))) for row in zip(*TUESDAY.values(), strict=True)]
    new = csv(tmp_path / "new.json", *lines, "{broken")
    context = Context(spark=engine.spark)
    failed = invoke("diff", old, new, "--key", "id", context=context)
    assert failed.exit_code == 1
    assert "[UNREADABLE_ROWS] 1 rows" in failed.stderr
    assert "{broken" in failed.stderr
    shown = invoke("diff", old, new, "--key", "id", "--unreadable", "set-aside", "--algorithm", "ph", context=context)
    marked = [line.split()[:2] for line in shown.stdout.splitlines() if line[:1] in "+-<>"]
    assert [key for _, key in marked] == sorted(key for _, key in marked)
    assert [mark for mark, _ in marked].index(">") == [mark for mark, _ in marked].index("<") + 1
    result = invoke("diff", old, new, "--key", "id", "--unreadable", "set-aside", "--json", context=context)
    found = parsed(result)
    assert found["counts"] == COUNTS
    assert found["unreadable"]["new"] == {"count": 1, "first": ["{broken"]}


@pytest.mark.spark
@pytest.mark.postgres
def test_a_table_is_compared_with_a_dump_by_its_own_key(
    engine: Engine, tmp_path: Path, invoke: Invoke, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE people (id bigint PRIMARY KEY, name text, amount float8)")
        connection.execute(
            "INSERT INTO people VALUES (4, 'dee', 4.5), (1, 'ann', 1.5), (3, 'cyd', 3.5), (5, 'eve', 5.5)"
        )
    monkeypatch.setenv("DIFF_DSN", database)
    dump = csv(tmp_path / "dump.csv", "id,name,amount", "1,ann,1.5", "2,bob,2.5", "3,,3.5", "4,dee,4.5")
    result = invoke("diff", dump, "postgres:DIFF_DSN/public.people", "--json", context=Context(spark=engine.spark))
    assert parsed(result)["counts"] == COUNTS
