"""A Delta table's log, read without Spark."""

from __future__ import annotations

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import CommitProperties, DeltaTable, write_deltalake

from strandline.algebra.schema import Column
from strandline.engine.delta_log import DeltaLog, NoSuchTable
from tests.conftest import bag

STEP = CommitProperties(custom_metadata={"userMetadata": "step-7"})

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": "k", "type": "long", "nullable": False, "metadata": {}},
        {"name": "odd.name", "type": "string", "nullable": True, "metadata": {}},
    ],
}


def numbers(*values: int) -> pa.Table:
    return pa.table({"k": pa.array(values, pa.int64())})


@pytest.fixture
def log(tmp_path: Path) -> DeltaLog:
    """A table of three versions: two rows, one more, one less."""
    path = str(tmp_path / "t")
    write_deltalake(path, numbers(1, 2))
    write_deltalake(path, numbers(3), mode="append", commit_properties=STEP)
    DeltaTable(path).delete("k = 1")
    return DeltaLog(path)


def test_the_newest_version_is_found(log: DeltaLog) -> None:
    assert log.exists()
    assert log.version() == 2
    write_deltalake(log.path, numbers(4), mode="append")
    assert log.version() == 3


def test_commits_are_read_whatever_the_rows_hold(tmp_path: Path) -> None:
    """Statistics are in the log, and in them are values; some hold what Python takes for the end of a line."""
    path = str(tmp_path / "t")
    for version in range(2):
        write_deltalake(path, pa.table({"s": ["\u2028", "\x85", "\x1c\x0b", str(version)]}), mode="append")
    assert [commit.version for commit in DeltaLog(path).commits(-1, 1) or ()] == [0, 1]


def test_columns_have_the_types_that_spark_reads_back(tmp_path: Path) -> None:
    fields = [
        ("a long", "long", "bigint"),
        ("integer", "integer", "int"),
        ("short", "short", "smallint"),
        ("byte", "byte", "tinyint"),
        ("float", "float", "float"),
        ("double", "double", "double"),
        ("boolean", "boolean", "boolean"),
        ("string", "string", "string"),
        ("binary", "binary", "binary"),
        ("date", "date", "date"),
        ("timestamp", "timestamp", "timestamp"),
        ("timestamp_ntz", "timestamp_ntz", "timestamp_ntz"),
        ("decimal", "decimal(38,18)", "decimal(38,18)"),
        ("array", _array("integer"), "array<int>"),
        ("map", _map("string", "decimal(10,0)"), "map<string,decimal(10,0)>"),
        ("struct", _struct(("a", "long"), ("odd name", "byte")), "struct<a:bigint,`odd name`:tinyint>"),
        ("ticks", _struct(("a`b", "string"), ("1st", "date")), "struct<`a``b`:string,`1st`:date>"),
        (
            "nested",
            _array(_map("short", _struct(("x:y", _array("timestamp_ntz")), ("z", _struct(("q", "float")))))),
            "array<map<smallint,struct<`x:y`:array<timestamp_ntz>,z:struct<q:float>>>>",
        ),
    ]
    schema = {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind, _ in fields],
    }
    log = DeltaLog(str(tmp_path / "t"))
    log.create(json.dumps(schema), {}, "step-1")
    assert log.schema() == tuple(Column(name, ddl) for name, _, ddl in fields)
    created = log.commits(-1, 0)
    assert created is not None and created[0].new_schema == log.schema()


def test_a_column_may_exclude_null(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path / "t"))
    log.create(json.dumps(SCHEMA), {}, "step-1")
    assert log.schema() == (Column("k", "bigint", nullable=False), Column("odd.name", "string"))


def test_schemas_are_those_of_the_version(log: DeltaLog) -> None:
    more = pa.table({"k": pa.array([5], pa.int64()), "v": ["x"]})
    write_deltalake(log.path, more, mode="append", schema_mode="merge")
    assert log.schema(2) == (Column("k", "bigint"),)
    assert log.schema(3) == log.schema() == (Column("k", "bigint"), Column("v", "string"))
    commits = log.commits(1, 3)
    assert commits is not None
    assert [commit.new_schema for commit in commits] == [None, log.schema()]


def test_commits_say_what_they_did(log: DeltaLog) -> None:
    commits = log.commits(-1, 2)
    assert commits is not None
    assert [commit.version for commit in commits] == [0, 1, 2]
    assert [commit.operation for commit in commits] == ["WRITE", "WRITE", "DELETE"]
    assert [commit.changes_data for commit in commits] == [True, True, True]
    assert [commit.only_inserts for commit in commits] == [True, True, False]
    assert [commit.rows_changed for commit in commits] == [2, 1, 1]
    assert all(commit.bytes_added > 0 for commit in commits)
    times = [commit.committed_at for commit in commits if commit.committed_at is not None]
    assert times == sorted(times) and len(times) == 3
    assert timedelta(0) <= datetime.now(UTC) - times[-1] < timedelta(minutes=5)


def test_commits_carry_the_step_that_made_them(log: DeltaLog) -> None:
    commits = log.commits(-1, 2)
    assert commits is not None
    assert [commit.step_id for commit in commits] == [None, "step-7", None]


def test_commits_name_the_files_that_only_earlier_versions_need(log: DeltaLog) -> None:
    commits = log.commits(-1, 2)
    assert commits is not None
    assert [len(commit.old_files) for commit in commits] == [0, 0, 1]
    (replaced,) = commits[2].old_files
    assert log.holds([replaced])
    Path(log.path, replaced).unlink()
    assert not log.holds([replaced])


def test_an_interval_is_open_at_its_beginning(log: DeltaLog) -> None:
    assert log.commits(2, 2) == []
    assert [commit.version for commit in log.commits(0, 2) or ()] == [1, 2]


def test_commits_that_are_not_there_are_no_commits(log: DeltaLog) -> None:
    assert log.commits(1, 3) is None
    Path(log.path, "_delta_log", f"{1:020d}.json").unlink()
    assert log.commits(0, 2) is None
    assert [commit.version for commit in log.commits(1, 2) or ()] == [2]


def test_compaction_changes_no_data(log: DeltaLog) -> None:
    DeltaTable(log.path).optimize.compact()
    commits = log.commits(2, 3)
    assert commits is not None
    (compaction,) = commits
    assert (compaction.changes_data, compaction.only_inserts) == (False, True)
    assert (compaction.rows_changed, compaction.bytes_added) == (0, 0)
    assert len(compaction.old_files) == 2


def test_commits_say_when_the_change_feed_is_switched(log: DeltaLog) -> None:
    for on in ("true", "false"):
        DeltaTable(log.path).alter.set_table_properties({"delta.enableChangeDataFeed": on})
    assert [commit.change_feed for commit in log.commits(0, 4) or ()] == [None, None, True, False]
    assert log.configuration()["delta.enableChangeDataFeed"] == "false"
    assert log.configuration(3)["delta.enableChangeDataFeed"] == "true"
    assert log.configuration(2) == {}


def test_files_of_the_change_feed_are_needed_by_its_readers(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path / "t"))
    write_deltalake(log.path, numbers(1, 2), configuration={"delta.enableChangeDataFeed": "true"})
    DeltaTable(log.path).delete("k = 1")
    commits = log.commits(0, 1)
    assert commits is not None
    fed = [file for file in commits[0].old_files if file.startswith("_change_data/")]
    assert len(fed) == 1 and log.holds(commits[0].old_files)
    shutil.rmtree(Path(log.path, "_change_data"))
    assert not log.holds(commits[0].old_files)


def test_files_of_deletion_vectors_are_needed_by_readers_of_earlier_versions(log: DeltaLog) -> None:
    # The names are those of the Delta protocol's own example; the second vector is kept in a subfolder.
    for version, prefix in ((3, ""), (4, "ab")):
        vector = {"storageType": "u", "pathOrInlineDv": f"{prefix}^-aqEH.-t@S}}K{{vb[*k^", "offset": 4}
        _commit(log, version, {"remove": {"path": "f.parquet", "dataChange": True, "deletionVector": vector}})
    inline = {"storageType": "i", "pathOrInlineDv": "wi5b=000010000siXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L"}
    _commit(log, 5, {"remove": {"path": "f.parquet", "dataChange": True, "deletionVector": inline}})
    name = "deletion_vector_d2c639aa-8816-431a-aaf6-d3fe2512ff61.bin"
    assert [commit.old_files for commit in log.commits(2, 5) or ()] == [
        ("f.parquet", name),
        ("f.parquet", f"ab/{name}"),
        ("f.parquet",),
    ]


def test_files_are_found_by_the_names_that_the_log_gives_them(log: DeltaLog) -> None:
    folder = Path(log.path, "p=a%3Ab%25 c")
    folder.mkdir()
    (folder / "f.parquet").touch()
    assert log.holds(["p=a%253Ab%2525%20c/f.parquet"])
    assert not log.holds(["p=a%253Ab%2525%20c/g.parquet"])
    assert log.holds([])


def test_a_writer_may_keep_no_statistics(log: DeltaLog) -> None:
    _commit(log, 3, {"add": {"path": "f.parquet", "size": 10, "dataChange": True, "partitionValues": {}}})
    (commit,) = log.commits(2, 3) or []
    assert (commit.rows_changed, commit.bytes_added) == (None, 10)
    assert (commit.committed_at, commit.operation, commit.step_id) == (None, "", None)


def test_sizes_are_those_of_the_version(log: DeltaLog) -> None:
    first, last = log.size(0), log.size()
    assert (first.rows, first.files) == (2, 1)
    assert (last.rows, last.files) == (2, 2)
    assert first.bytes == sum(file.stat().st_size for file in Path(log.path).glob("*.parquet") if _is_of(log, 0, file))
    assert last.bytes > 0


def test_an_empty_table_has_no_size(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path / "t"))
    log.create(json.dumps(SCHEMA), {}, "step-1")
    assert (log.size().rows, log.size().bytes, log.size().files) == (0, 0, 0)


def test_restoring_makes_a_new_version_with_the_rows_of_the_old_one(log: DeltaLog) -> None:
    before = DeltaTable(log.path, version=1).to_pyarrow_table().to_pylist()
    assert log.restore(1, "step-9") == 3
    assert bag(row.values() for row in DeltaTable(log.path).to_pyarrow_table().to_pylist()) == bag(
        row.values() for row in before
    )
    (commit,) = log.commits(2, 3) or []
    assert (commit.step_id, commit.operation, commit.changes_data, commit.only_inserts) == (
        "step-9",
        "RESTORE",
        True,
        False,
    )


def test_a_table_is_made_with_properties_and_the_step_that_made_it(tmp_path: Path) -> None:
    log = DeltaLog(str(tmp_path / "folder" / "below" / "t"))
    assert log.create(json.dumps(SCHEMA), {"delta.logRetentionDuration": "interval 7 days"}, "step-1") == 0
    assert log.configuration() == {"delta.logRetentionDuration": "interval 7 days"}
    (commit,) = log.commits(-1, 0) or []
    assert (commit.step_id, commit.changes_data, commit.only_inserts, commit.rows_changed) == ("step-1", False, True, 0)


def test_a_table_made_anew_has_another_identity(log: DeltaLog) -> None:
    version, before = log.head()
    write_deltalake(log.path, numbers(4), mode="append")
    assert log.head() == (version + 1, before)
    shutil.rmtree(log.path)
    write_deltalake(log.path, numbers(1))
    assert log.head()[1] != before


def test_where_no_table_is_there_is_no_such_table(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    for name in ("missing", "empty"):
        log = DeltaLog(str(tmp_path / name))
        assert not log.exists()
        for ask in (log.version, log.schema, log.head, log.configuration, log.size):
            with pytest.raises(NoSuchTable, match=name):
                ask()
    with pytest.raises(NoSuchTable):
        DeltaLog(str(tmp_path / "missing")).commits(0, 1)
    assert not (tmp_path / "missing").exists(), "looking makes no folder"


def _commit(log: DeltaLog, version: int, action: dict[str, object]) -> None:
    Path(log.path, "_delta_log", f"{version:020d}.json").write_text(json.dumps(action) + "\n")


def _is_of(log: DeltaLog, version: int, file: Path) -> bool:
    return any(uri.endswith(file.name) for uri in DeltaTable(log.path, version=version).file_uris())


def _array(kind: object) -> dict[str, object]:
    return {"type": "array", "elementType": kind, "containsNull": True}


def _map(key: object, value: object) -> dict[str, object]:
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def _struct(*fields: tuple[str, object]) -> dict[str, object]:
    return {
        "type": "struct",
        "fields": [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in fields],
    }
