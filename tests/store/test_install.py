"""Every way of installing a delta gives the same table, and each fails loudly on a delete without a row.

The tables of chapter 7 of WHIPS: rows with duplicates (section 7.3.1), counted or not, and groups (7.3.2).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal
from unittest import mock

import pytest

from strandline import Warehouse
from strandline.algebra.block import Form
from strandline.algebra.schema import Column, Schema
from strandline.catalog import VersionRecord
from strandline.engine import vectors
from strandline.engine.delta_log import DeltaLog
from strandline.engine.little import write_table
from strandline.engine.places import File, files
from strandline.engine.session import Engine
from strandline.engine.statistics import TableSize
from strandline.errors import StoreError
from strandline.sources.memory import MemorySource
from strandline.store import install as installing
from strandline.store import marking, replacing, small_tables
from strandline.store.deltas import Delta, write_delta, write_summary
from strandline.store.install import TINY_BYTES, TINY_ROWS, Installed, Method, install, is_tiny, method_for
from strandline.store.node import Node
from strandline.store.replacing import FEW_BYTES, part_of
from strandline.store.tables import committed_version, make_ready
from tests.conftest import bag, rows_of, rows_stored

pytestmark = pytest.mark.spark

Rows = Sequence[tuple[object, ...]]
BySpark = Literal["overwrite by Spark"]

ROWS = [(1, "a"), (1, "a"), (1, "a"), (2, "b"), (None, "n"), (3, None)]


@dataclass
class Table:
    engine: Engine
    node: Node
    baseline: int
    folder: Path

    def delta(self, inserted: Rows, deleted: Rows, form: Form = "explicit") -> Delta:
        """Unit rows: of stored columns, or of a table that counts, of the columns that it counts."""
        assert self.node.block is not None
        columns = self.node.block.body.columns if form == "copies" else self.node.stored
        signed = [(*row, 1) for row in inserted] + [(*row, -1) for row in deleted]
        sql = _values(signed, (*columns, Column("__sign", "int")))
        return write_delta(self.engine, sql, columns, str(self.folder / "delta"), form)

    def summary(self, rows: Rows) -> Delta:
        return write_summary(
            self.engine, _values(rows, self.node.stored), self.node.stored, str(self.folder / "summary")
        )

    def install(self, delta: Delta) -> Installed:
        return install(self.engine, self.node, delta, self.baseline, "step")

    def contents(self, version: int | None = None) -> object:
        return bag(rows_stored(self.engine, self.node.path, version))

    def files(self) -> list[File]:
        listed = files(self.node.path)
        here = set(DeltaLog(self.node.path).files().paths)
        return [file for file in listed if file.path in here]

    def seen(self, version: int) -> object:
        return bag(rows_of(self.engine, self.node.select(version)))


def _values(rows: Rows, columns: Schema) -> str:
    typed = ", ".join(f"CAST(col{i + 1} AS {c.type}) AS `{c.name}`" for i, c in enumerate(columns))
    values = ", ".join(f"({', '.join(_sql(v) for v in row)})" for row in rows)
    return f"SELECT {typed} FROM VALUES {values}"


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


FIGURE_7_4 = [(1, "a"), (1, "b"), (1, "a")]
KEYED = [(1, "a"), (2, "b"), (3, None)]

COUNTS = "TBLPROPERTIES ('strandline.representation' = 'count')"

VIEWS = {
    "rows": "AS SELECT k, s FROM m.t",
    "groups": "AS SELECT k, count(*) AS n FROM m.t GROUP BY k",
    "counted": f"{COUNTS} AS SELECT k, s FROM m.t",
    "keyed": "AS SELECT k, s FROM m.keyed",
    "by_name": "AS SELECT s, count(*) AS n FROM m.t GROUP BY s",
    "overall": "AS SELECT count(*) AS n, sum(k) AS k FROM m.t",
    "figure_7_4": "AS SELECT k, s FROM m.figure_7_4",
    "typed": "AS SELECT * FROM m.typed",
}

TYPES = {
    "boolean": ("true", "false"),
    "tinyint": ("-128", "1"),
    "smallint": ("300", "1"),
    "int": ("70000", "1"),
    "float": ("NaN", "-0.0"),
    "double": ("-0.0", "NaN"),
    "decimal(38,10)": ("1.5", "-2"),
    "string": ("", "é"),
    "binary": ("", "b"),
    "date": ("0001-01-01", "9999-12-31"),
    "timestamp": ("1900-01-01 00:00:00.000001", "2026-06-01 12:00:00"),
    "timestamp_ntz": ("1900-01-01 00:00:00.000001", "2026-06-01 12:00:00"),
}
"""With two values each."""


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory, engine: Engine) -> Iterator[dict[str, Table]]:
    """The tables of all views; a test has a copy of one."""
    folder = tmp_path_factory.mktemp("install")
    source = MemorySource("m")
    for name, rows, key in (("t", ROWS, []), ("keyed", KEYED, ["k"]), ("figure_7_4", FIGURE_7_4, [])):
        source.create(name, (Column("k", "bigint"), Column("s", "string")), key)
        source.commit(name, rows)
    source.create("typed", tuple(Column(f"c{place}", kind) for place, kind in enumerate(TYPES)))
    with Warehouse.open(folder / "project", spark=engine.spark) as warehouse:
        warehouse.attach(source)
        for name, query in VIEWS.items():
            warehouse.sql(f"CREATE MATERIALIZED VIEW v_{name} {query}")
        yield {name: _table(warehouse, f"v_{name}") for name in VIEWS}


def _table(warehouse: Warehouse, view: str) -> Table:
    node = warehouse._refreshing.node(view)
    base = warehouse._catalog.versions.baseline(node.record.id)
    assert isinstance(base, VersionRecord)
    return Table(warehouse._engine, node, base.version, Path(node.path))


def _copy(table: Table, folder: Path) -> Iterator[Table]:
    path = shutil.copytree(table.node.path, folder / table.node.name)
    with table.engine.step("v", "test", small=True):
        yield Table(table.engine, replace(table.node, path=str(path)), table.baseline, folder)


@pytest.fixture
def rows(tables: dict[str, Table], tmp_path: Path) -> Iterator[Table]:
    """A table of rows with duplicates and NULLs."""
    yield from _copy(tables["rows"], tmp_path)


@pytest.fixture
def groups(tables: dict[str, Table], tmp_path: Path) -> Iterator[Table]:
    """A table of groups: k, number of rows."""
    yield from _copy(tables["groups"], tmp_path)


@pytest.fixture
def counted(tables: dict[str, Table], tmp_path: Path) -> Iterator[Table]:
    """The rows of the first table, each once with the number of its copies."""
    yield from _copy(tables["counted"], tmp_path)


@pytest.fixture
def keyed(tables: dict[str, Table], tmp_path: Path) -> Iterator[Table]:
    """A table of rows that have a key."""
    yield from _copy(tables["keyed"], tmp_path)


@pytest.fixture
def overall(tables: dict[str, Table], tmp_path: Path) -> Iterator[Table]:
    """A global aggregate: number of rows, sum, number of summands."""
    yield from _copy(tables["overall"], tmp_path)


@pytest.fixture
def figure_7_4(tables: dict[str, Table], tmp_path: Path) -> Iterator[Table]:
    """The rows of Figure 7.4, but for columns that are the same in all copies."""
    yield from _copy(tables["figure_7_4"], tmp_path)


@pytest.mark.parametrize("method", ["overwrite", "merge"])
def test_one_copy_of_two_goes_or_both_and_three_are_an_error(
    figure_7_4: Table, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    force(monkeypatch, method)
    one = figure_7_4.install(figure_7_4.delta([], [(1, "a")]))
    assert figure_7_4.contents(one.version) == bag([(1, "a"), (1, "b")])
    make_ready(figure_7_4.engine, figure_7_4.node, figure_7_4.baseline, "next")
    both = figure_7_4.install(figure_7_4.delta([], [(1, "a")] * 2))
    assert figure_7_4.contents(both.version) == bag([(1, "b")])
    make_ready(figure_7_4.engine, figure_7_4.node, figure_7_4.baseline, "next")
    with pytest.raises(Exception, match="DELETE_WITHOUT_ROW"):
        figure_7_4.install(figure_7_4.delta([], [(1, "a")] * 3))
    assert figure_7_4.contents() == bag(FIGURE_7_4)


def test_values_of_every_type_are_told_apart_as_by_spark(
    tables: dict[str, Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = (tuple(values[place] for values in TYPES.values()) for place in (0, 1))
    found = {}
    ways: tuple[Method | BySpark, ...] = ("overwrite", "overwrite by Spark")
    for way in ways:
        with monkeypatch.context() as patched, contextmanager(_copy)(tables["typed"], tmp_path / way) as table:
            force(patched, way)
            table.baseline = table.install(table.delta([one, one, other, other], [])).version
            done = table.install(table.delta([other], [one]))
            found[way] = table.contents(done.version)
            assert len(rows_of(table.engine, table.node.select(done.version))) == 4
    assert found["overwrite"] == found["overwrite by Spark"]


def force(monkeypatch: pytest.MonkeyPatch, method: Method | BySpark) -> None:
    """Let tables be changed by *method*; a small one is overwritten without Spark unless it says otherwise."""
    if method == "overwrite by Spark":
        monkeypatch.setattr(small_tables, "overwrite", lambda *_: False)
    if method in ("replace", "mark"):
        monkeypatch.setattr(installing, "is_tiny", lambda *_: False)
    monkeypatch.setattr(installing, "method_for", lambda *_: "overwrite" if method == "overwrite by Spark" else method)


@pytest.mark.parametrize("method", ["overwrite", "overwrite by Spark", "merge"])
def test_just_as_many_copies_are_deleted_as_the_delta_says(
    rows: Table, monkeypatch: pytest.MonkeyPatch, method: Method | BySpark
) -> None:
    force(monkeypatch, method)
    delta = rows.delta([(2, "b"), (9, None)], [(1, "a"), (1, "a"), (None, "n"), (3, None)])
    done = install(rows.engine, rows.node, delta, rows.baseline, "step")
    assert rows.contents(done.version) == bag([(1, "a"), (2, "b"), (2, "b"), (9, None)])
    assert rows.contents(rows.baseline) == bag(ROWS)


@pytest.mark.parametrize("method", ["overwrite", "overwrite by Spark", "merge"])
@pytest.mark.parametrize("deleted", [[(7, "x")], [(1, "a")] * 4, [(None, None)]])
def test_a_delete_without_a_row_fails_and_changes_nothing(
    rows: Table, monkeypatch: pytest.MonkeyPatch, method: Method | BySpark, deleted: list[tuple[object, ...]]
) -> None:
    force(monkeypatch, method)
    delta = rows.delta([(5, "new")], deleted)
    with pytest.raises(Exception, match="DELETE_WITHOUT_ROW"):
        install(rows.engine, rows.node, delta, rows.baseline, "step")
    make_ready(rows.engine, rows.node, rows.baseline, "next")
    assert rows.contents() == bag(ROWS)


@pytest.mark.parametrize("method", ["overwrite", "merge", "delete+append"])
def test_groups_are_replaced_removed_and_added(groups: Table, monkeypatch: pytest.MonkeyPatch, method: Method) -> None:
    force(monkeypatch, method)
    delta = groups.delta([(1, 2), (None, 5), (8, 1)], [(1, 3), (None, 1), (2, 1)])
    done = install(groups.engine, groups.node, delta, groups.baseline, "step")
    assert groups.contents(done.version) == bag([(1, 2), (None, 5), (3, 1), (8, 1)])


def test_only_deleting_groups(groups: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "delete+append")
    done = install(groups.engine, groups.node, groups.delta([], [(2, 1), (3, 1)]), groups.baseline, "step")
    assert groups.contents(done.version) == bag([(1, 3), (None, 1)])


def test_insertions_are_appended(rows: Table) -> None:
    done = install(rows.engine, rows.node, rows.delta([(1, "a"), (6, "f")], []), rows.baseline, "step")
    assert done.method == "append"
    assert rows.contents(done.version) == bag([*ROWS, (1, "a"), (6, "f")])


# Counted duplicates: WHIPS, Figure 7.5 and what follows it


COUNTED = [(1, "a", 3), (2, "b", 1), (None, "n", 1), (3, None, 1)]


@pytest.mark.parametrize("method", ["overwrite", "merge"])
def test_insertions_meet_rows_that_are_there_and_rows_go_at_count_zero(
    counted: Table, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    assert counted.contents(counted.baseline) == bag(COUNTED)
    assert counted.seen(counted.baseline) == bag(ROWS)
    force(monkeypatch, method)
    came = [(2, "b"), (9, None), (9, None)]
    done = counted.install(counted.delta(came, [(1, "a"), (1, "a"), (None, "n")], "copies"))
    assert (done.method, done.inserted, done.deleted) == (method, 3, 3)
    assert counted.contents(done.version) == bag([(1, "a", 1), (2, "b", 2), (3, None, 1), (9, None, 2)])
    assert counted.seen(done.version) == bag([(1, "a"), (2, "b"), (2, "b"), (3, None), (9, None), (9, None)])


@pytest.mark.parametrize("method", ["overwrite", "merge"])
def test_a_count_below_zero_fails_and_changes_nothing(
    counted: Table, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    force(monkeypatch, method)
    for deleted in ([(7, "x")], [(1, "a")] * 4, [(None, None)]):
        with pytest.raises(Exception, match="DELETE_WITHOUT_ROW"):
            counted.install(counted.delta([(5, "new")], deleted, "copies"))
    assert counted.contents() == bag(COUNTED)


def test_insertions_into_a_counted_table_are_not_appended(counted: Table) -> None:
    done = counted.install(counted.delta([(1, "a"), (6, "f")], [], "copies"))
    assert done.method == "overwrite"
    assert counted.contents(done.version) == bag([(1, "a", 4), *COUNTED[1:], (6, "f", 1)])


# Rows with a key


@pytest.mark.parametrize("method", ["overwrite", "replace", "mark", "merge", "delete+append"])
def test_rows_with_a_key_are_updated_in_place(keyed: Table, monkeypatch: pytest.MonkeyPatch, method: Method) -> None:
    force(monkeypatch, method)
    done = keyed.install(keyed.delta([(1, "new"), (3, "c"), (4, "d")], [(1, "a"), (3, None), (2, "b")]))
    assert (done.inserted, done.deleted) == (3, 3)
    assert keyed.contents(done.version) == bag([(1, "new"), (3, "c"), (4, "d")])


@pytest.mark.parametrize("method", ["overwrite", "replace", "mark", "merge", "delete+append"])
def test_a_key_that_is_not_there_cannot_go_or_be_updated(
    keyed: Table, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    force(monkeypatch, method)
    updates: list[tuple[Rows, Rows]] = [([], [(7, "x")]), ([(7, "y")], [(7, "x")])]
    for inserted, deleted in updates:
        with pytest.raises(Exception, match="DELETE_WITHOUT_ROW"):
            keyed.install(keyed.delta(inserted, deleted))


def test_a_key_that_is_not_one_is_told(keyed: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    keyed.engine.run(f"INSERT INTO delta.`{keyed.node.path}` VALUES (1, 'again')")
    force(monkeypatch, "merge")
    with pytest.raises(StoreError, match="the key is not one") as error:
        keyed.install(keyed.delta([(1, "new")], [(1, "a")]))
    assert error.value.code == "DELETE_WITHOUT_ROW"


def test_only_files_that_hold_changed_keys_are_written_anew(keyed: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for first in (10, 20, 30):
        keyed.engine.run(f"INSERT INTO delta.`{keyed.node.path}` VALUES ({first}, 'a'), ({first + 9}, 'z')")
    before = {file.path: file for file in keyed.files()}
    keyed.baseline = DeltaLog(keyed.node.path).version()
    force(monkeypatch, "replace")
    done = keyed.install(keyed.delta([(20, "new"), (22, "more")], [(20, "a"), (29, "z")]))
    assert (done.method, done.inserted, done.deleted) == ("replace", 2, 2)
    others = [*KEYED, (10, "a"), (19, "z"), (30, "a"), (39, "z")]
    assert keyed.contents(done.version) == bag([*others, (20, "new"), (22, "more")])
    assert len(set(before) - {file.path for file in keyed.files()}) == 1


def test_stretches_that_lie_apart_are_written_in_a_commit_each_and_stay_apart(
    keyed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in (10, 20, 30, 40):
        keyed.engine.run(f"INSERT INTO delta.`{keyed.node.path}` VALUES ({first}, 'a'), ({first + 9}, 'z')")
    keyed.baseline = DeltaLog(keyed.node.path).version()
    delta = keyed.delta([(2, "new"), (21, "m"), (31, "n"), (50, "last")], [(2, "b"), (40, "a")])
    part = part_of(keyed.engine, keyed.node, delta, keyed.baseline)
    assert part is not None
    assert [(stretch.first, stretch.end) for stretch in part.stretches] == [(None, 10), (20, None)]
    assert part.size.files == 4
    force(monkeypatch, "replace")
    done = keyed.install(delta)
    assert done.version == keyed.baseline + 2
    others = [(1, "a"), (3, None), (10, "a"), (19, "z"), (20, "a"), (29, "z"), (30, "a"), (39, "z"), (49, "z")]
    assert keyed.contents(done.version) == bag([*others, (2, "new"), (21, "m"), (31, "n"), (50, "last")])
    groups = DeltaLog(keyed.node.path).files().apart("k")
    assert groups is not None
    assert [first for first, _ in groups] == [1, 10, 20]
    steps = [commit.step_id for commit in DeltaLog(keyed.node.path).commits(keyed.baseline, done.version) or ()]
    assert steps == ["step", "strandline:step"]


def test_a_step_that_wrote_some_stretches_and_was_killed_is_undone(
    keyed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    keyed.engine.run(f"INSERT INTO delta.`{keyed.node.path}` VALUES (10, 'a')")
    keyed.engine.run(f"INSERT INTO delta.`{keyed.node.path}` VALUES (20, 'a')")
    keyed.baseline = DeltaLog(keyed.node.path).version()
    delta = keyed.delta([(2, "new"), (20, "new")], [(2, "b"), (20, "a")])
    force(monkeypatch, "replace")
    with monkeypatch.context() as patched:

        def once(*given: Any, **more: Any) -> None:
            write_table(*given, **more)
            raise KeyboardInterrupt

        patched.setattr(replacing, "write_table", once)
        with pytest.raises(KeyboardInterrupt):
            keyed.install(delta)
    assert committed_version(keyed.engine, keyed.node, keyed.baseline, "step") is None
    make_ready(keyed.engine, keyed.node, keyed.baseline, "step")
    assert keyed.contents() == bag([*KEYED, (10, "a"), (20, "a")])
    done = keyed.install(delta)
    assert committed_version(keyed.engine, keyed.node, keyed.baseline, "step") == done.version
    assert keyed.contents(done.version) == bag([(1, "a"), (2, "new"), (3, None), (10, "a"), (20, "new")])


def test_rows_are_replaced_by_keys_of_any_type_that_has_literals(
    tables: dict[str, Table], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    force(monkeypatch, "replace")
    with contextmanager(_copy)(tables["by_name"], tmp_path) as named:
        done = named.install(named.delta([("a", 2), ("x", 1)], [("a", 3), ("b", 1)]))
        assert done.method == "replace"
        assert named.contents(done.version) == bag([("a", 2), ("n", 1), (None, 1), ("x", 1)])


def test_rows_are_not_replaced_by_a_key_that_is_null_nor_in_tables_that_only_spark_writes(
    groups: Table, keyed: Table, rows: Table
) -> None:
    assert part_of(groups.engine, groups.node, groups.delta([(1, 2)], [(1, 3)]), groups.baseline) is not None
    assert part_of(groups.engine, groups.node, groups.delta([(None, 2)], [(None, 1)]), groups.baseline) is None
    assert part_of(groups.engine, groups.node, groups.summary([(1, -1)]), groups.baseline) is None
    assert part_of(rows.engine, rows.node, rows.delta([], [(1, "a")]), rows.baseline) is None
    switch = "'delta.enableDeletionVectors' = 'true'"
    keyed.engine.run(f"ALTER TABLE delta.`{keyed.node.path}` SET TBLPROPERTIES ({switch})")
    assert part_of(keyed.engine, keyed.node, keyed.delta([], [(1, "a")]), keyed.baseline) is None


def test_few_rows_of_a_large_table_are_marked_where_they_are(keyed: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    for first in (10, 20):
        keyed.engine.run(f"INSERT INTO delta.`{keyed.node.path}` VALUES ({first}, 'a'), ({first + 9}, 'z')")
    keyed.baseline = DeltaLog(keyed.node.path).version()
    monkeypatch.setattr(installing, "is_tiny", lambda *_: False)
    monkeypatch.setattr(replacing, "FEW_BYTES", 0)
    monkeypatch.setattr(replacing, "REWRITTEN_BESIDE_MARKS", 0)
    before = set(DeltaLog(keyed.node.path).files().paths)
    rounds: list[tuple[Rows, Rows]] = [
        ([(2, "new"), (20, "b"), (30, "more")], [(2, "b"), (20, "a"), (19, "z")]),
        ([], [(2, "new"), (30, "more")]),
        ([(2, "again"), (5, "five")], []),
        ([(2, "b"), (19, "z")], [(2, "again"), (5, "five")]),
    ]
    ways, contents = [], [*KEYED, (10, "a"), (19, "z"), (20, "a"), (29, "z")]
    for came, gone in rounds:
        done = keyed.install(keyed.delta(came, gone))
        assert (done.inserted, done.deleted) == (len(came), len(gone))
        contents = [row for row in contents if row not in gone] + [*came]  # type: ignore[list-item]
        assert keyed.contents(done.version) == bag(contents)
        ways.append(done.method)
        keyed.baseline = done.version
    assert ways == ["mark", "mark", "append", "mark"]
    assert before < set(DeltaLog(keyed.node.path).files().paths), "no file is written anew"
    keyed.engine.run(f"OPTIMIZE delta.`{keyed.node.path}`")
    assert keyed.contents() == bag(contents)


def test_a_step_that_appended_what_comes_and_was_killed_is_undone(
    keyed: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = keyed.delta([(2, "new"), (4, "d")], [(2, "b")])
    force(monkeypatch, "mark")
    with monkeypatch.context() as patched:
        patched.setattr(vectors.Marks, "commit", mock.Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            keyed.install(delta)
    assert keyed.contents() == bag([*KEYED, (2, "new"), (4, "d")])
    assert committed_version(keyed.engine, keyed.node, keyed.baseline, "step") is None
    make_ready(keyed.engine, keyed.node, keyed.baseline, "step")
    assert keyed.contents() == bag(KEYED)
    done = keyed.install(delta)
    assert committed_version(keyed.engine, keyed.node, keyed.baseline, "step") == done.version
    assert keyed.contents(done.version) == bag([(1, "a"), (2, "new"), (3, None), (4, "d")])


def test_a_version_that_somebody_else_made_is_not_written_over(keyed: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "mark")
    with monkeypatch.context() as patched:
        patched.setattr(vectors, "_commit", mock.Mock(side_effect=FileExistsError))
        with pytest.raises(StoreError, match="FOREIGN_COMMIT"):
            keyed.install(keyed.delta([], [(1, "a")]))
    make_ready(keyed.engine, keyed.node, keyed.baseline, "next")
    assert keyed.contents() == bag(KEYED)


def test_a_commit_between_ours_is_told_before_the_last_one(keyed: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    force(monkeypatch, "mark")

    def twice(*given: Any, **more: Any) -> None:
        write_table(*given, **more)
        keyed.engine.run(f"OPTIMIZE delta.`{keyed.node.path}`")

    with monkeypatch.context() as patched:
        patched.setattr(marking, "write_table", twice)
        with pytest.raises(StoreError, match="FOREIGN_COMMIT"):
            keyed.install(keyed.delta([(4, "d")], [(1, "a")]))
    assert committed_version(keyed.engine, keyed.node, keyed.baseline, "step") is None
    make_ready(keyed.engine, keyed.node, keyed.baseline, "next")
    assert keyed.contents() == bag(KEYED)


def test_a_table_that_does_not_take_marks_gets_none(keyed: Table, monkeypatch: pytest.MonkeyPatch) -> None:
    switch = f"'{vectors.SWITCH}' = 'false'"
    keyed.engine.run(f"ALTER TABLE delta.`{keyed.node.path}` SET TBLPROPERTIES ({switch})")
    assert not marking.pays(keyed.engine, keyed.node, keyed.delta([], [(1, "a")]))
    force(monkeypatch, "mark")
    with pytest.raises(StoreError, match="MARKS_OFF"):
        keyed.install(keyed.delta([], [(1, "a")]))
    assert keyed.contents() == bag(KEYED)


def test_rows_are_not_marked_by_a_key_that_is_null_nor_if_they_have_none_or_are_many(
    groups: Table, rows: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    delta = groups.delta([(1, 2)], [(1, 3)])
    assert marking.pays(groups.engine, groups.node, delta)
    assert not marking.pays(rows.engine, rows.node, rows.delta([], [(1, "a")]))
    assert not marking.pays(groups.engine, groups.node, groups.summary([(1, -1)]))
    for limit in ("MOST_ROWS", "MOST_LOOKED_AT", "MOST_FILES"):
        with monkeypatch.context() as patched:
            patched.setattr(marking, limit, 0)
            assert not marking.pays(groups.engine, groups.node, groups.delta([(1, 2)], [(1, 3)]))
    assert not marking.pays(groups.engine, groups.node, groups.delta([(None, 2)], [(None, 1)]))
    engine = mock.Mock(wraps=groups.engine, marks=False, storage_options={})
    assert not marking.pays(engine, groups.node, groups.delta([(1, 2)], [(1, 3)])), "where the engine marks none"


# Summary deltas


GROUPS = [(1, 3), (2, 1), (None, 1), (3, 1)]


@pytest.mark.parametrize("method", ["overwrite", "merge"])
def test_a_summary_delta_adds_to_groups_removes_them_at_zero_and_makes_new_ones(
    groups: Table, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    force(monkeypatch, method)
    done = groups.install(groups.summary([(1, -1), (None, 4), (2, -1), (8, 1)]))
    assert groups.contents(done.version) == bag([(1, 2), (None, 5), (3, 1), (8, 1)])
    if method == "merge":
        assert (done.inserted, done.deleted) == (3, 3)


@pytest.mark.parametrize("method", ["overwrite", "merge"])
def test_a_group_cannot_have_fewer_than_no_rows(groups: Table, monkeypatch: pytest.MonkeyPatch, method: Method) -> None:
    force(monkeypatch, method)
    for change in ((2, -2), (7, -1)):
        with pytest.raises(Exception, match="NEGATIVE_COUNT"):
            groups.install(groups.summary([change, (1, 1)]))
    assert groups.contents() == bag(GROUPS)


@pytest.mark.parametrize("method", ["overwrite", "merge"])
def test_a_global_aggregate_keeps_its_row(overall: Table, monkeypatch: pytest.MonkeyPatch, method: Method) -> None:
    force(monkeypatch, method)
    places = [c.name for c in overall.node.stored]
    before = overall.engine.rows(f"SELECT * FROM delta.`{overall.node.path}`")[0]
    done = overall.install(overall.summary([tuple(-value for value in before)]))
    assert overall.contents(done.version) == bag([(0,) * len(places)])
    assert overall.seen(done.version) == bag([(0, None)])


def test_nothing_is_written_for_a_summary_delta_without_rows(groups: Table) -> None:
    empty = f"SELECT * FROM ({_values([(1, 1)], groups.node.stored)}) WHERE false"
    delta = write_summary(groups.engine, empty, groups.node.stored, str(groups.folder / "none"))
    assert groups.install(delta) == Installed("none", groups.baseline, 0, 0)


def test_the_way_follows_from_delta_and_table(rows: Table, groups: Table) -> None:
    few, many = Delta("", 3, 3), Delta("", 5000, 5000)
    assert method_for(rows.node, Delta("", 0, 0), 10) == "none"
    assert method_for(rows.node, Delta("", 3, 0), 10**9) == "append"
    assert method_for(rows.node, few, 100) == "overwrite"
    assert method_for(rows.node, few, 10**6) == "merge"
    assert method_for(groups.node, few, 10**6) == "delete+append"
    assert method_for(groups.node, many, 10**6) == "merge"
    assert method_for(groups.node, few, None) == "delete+append"
    assert method_for(groups.node, Delta("", 3, 0, "summary"), 10) == "merge"
    assert method_for(groups.node, few, 10**6, 10**8, TableSize(10**6, FEW_BYTES, 1)) == "replace"
    assert method_for(groups.node, few, 10**6, 10**8, TableSize(10**6, FEW_BYTES + 1, 1)) == "delete+append"
    assert method_for(groups.node, many, 10**6, 10**8, TableSize(10**6, FEW_BYTES + 1, 1)) == "replace"
    assert method_for(groups.node, few, 100, 1, TableSize(100, 1, 1)) == "overwrite"
    assert method_for(groups.node, few, 100, 1, TableSize(100, 1, 1), lambda: True) == "overwrite"
    assert method_for(groups.node, few, 10**6, 10**8, TableSize(10**6, FEW_BYTES, 1), lambda: True) == "replace"
    assert method_for(groups.node, few, 10**6, 10**8, TableSize(10**6, FEW_BYTES + 1, 1), lambda: True) == "mark"
    assert method_for(groups.node, few, 10**6, 10**8, None, lambda: True) == "mark"
    assert method_for(groups.node, many, 10**7, 10**8, TableSize(10**7, FEW_BYTES + 1, 1), lambda: True) == "mark"
    assert method_for(groups.node, many, 10**6, 10**8, TableSize(10**5, FEW_BYTES + 1, 1), lambda: True) == "replace"
    assert method_for(rows.node, Delta("", 3, 0, "copies"), 10) == "overwrite"
    assert method_for(rows.node, Delta("", 3, 0, "copies"), 10**6) == "merge"


@pytest.mark.parametrize(
    ("rows", "bytes", "tiny"),
    [
        (0, None, True),
        (TINY_ROWS, None, True),
        (TINY_ROWS, 10**12, True),
        (TINY_ROWS + 1, None, False),
        (TINY_ROWS + 1, TINY_BYTES, True),
        (TINY_ROWS + 1, TINY_BYTES + 1, False),
        (10 * TINY_ROWS, TINY_BYTES, True),
        (10 * TINY_ROWS + 1, 0, False),
        (None, None, False),
        (None, 0, False),
    ],
)
def test_a_table_is_tiny_by_its_rows_or_if_there_are_not_many_by_its_bytes(
    rows: int | None, bytes: int | None, tiny: bool
) -> None:
    assert is_tiny(rows, bytes) == tiny


def test_a_table_of_many_narrow_rows_is_overwritten(rows: Table, groups: Table) -> None:
    few = Delta("", 3, 3)
    for table, otherwise in ((rows, "merge"), (groups, "delete+append")):
        assert method_for(table.node, few, 10**6, TINY_BYTES) == "overwrite"
        assert method_for(table.node, few, 10**6, TINY_BYTES + 1) == otherwise
        assert method_for(table.node, few, 10**7, TINY_BYTES) == otherwise
    assert method_for(rows.node, Delta("", 3, 0), 10**6, TINY_BYTES) == "append"
    assert method_for(groups.node, Delta("", 3, 0, "summary"), 10**6, TINY_BYTES) == "merge"


def test_what_somebody_else_wrote_is_undone_before_a_step(rows: Table) -> None:
    rows.engine.run(f"DELETE FROM delta.`{rows.node.path}` WHERE k = 1")
    make_ready(rows.engine, rows.node, rows.baseline, "step")
    assert rows.contents() == bag(ROWS)
    done = install(rows.engine, rows.node, rows.delta([], [(1, "a")]), rows.baseline, "step")
    assert rows.contents(done.version) == bag([(1, "a"), (1, "a"), (2, "b"), (None, "n"), (3, None)])
