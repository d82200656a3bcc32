"""Every way of installing a delta gives the same table, and each fails loudly on a delete without a row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline import Warehouse
from strandline.algebra.schema import Column, names
from strandline.catalog import VersionRecord
from strandline.engine.session import Engine
from strandline.sources.memory import MemorySource
from strandline.store import install as installing
from strandline.store.deltas import Delta, write_delta
from strandline.store.install import Method, install, method_for
from strandline.store.node import Node
from strandline.store.tables import make_ready
from tests.conftest import bag

pytestmark = pytest.mark.spark

ROWS = [(1, "a"), (1, "a"), (1, "a"), (2, "b"), (None, "n"), (3, None)]


@dataclass
class Table:
    engine: Engine
    node: Node
    baseline: int
    folder: Path

    def delta(self, inserted: list[tuple[object, ...]], deleted: list[tuple[object, ...]]) -> Delta:
        signed = [(row, 1) for row in inserted] + [(row, -1) for row in deleted]
        shown = ", ".join(f"`{name}`" for name in (*names(self.node.stored), "__sign"))
        typed = ", ".join(f"CAST(col{i + 1} AS {c.type}) AS `{c.name}`" for i, c in enumerate(self.node.stored))
        values = ", ".join(f"({', '.join(_sql(v) for v in (*row, sign))})" for row, sign in signed)
        sql = f"SELECT {shown} FROM (SELECT {typed}, col{len(self.node.stored) + 1} AS __sign FROM VALUES {values})"
        return write_delta(self.engine, sql, self.node.stored, str(self.folder / "delta"))

    def contents(self, version: int) -> object:
        return bag(self.engine.rows(f"SELECT * FROM delta.`{self.node.path}` VERSION AS OF {version}"))


def _sql(value: object) -> str:
    return "NULL" if value is None else f"'{value}'" if isinstance(value, str) else str(value)


def _table(tmp_path: Path, engine: Engine, query: str) -> Iterator[Table]:
    source = MemorySource("m")
    source.create("t", (Column("k", "bigint"), Column("s", "string")))
    source.commit("t", ROWS)
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        warehouse.attach(source)
        warehouse.sql(f"CREATE MATERIALIZED VIEW v AS {query}")
        node = warehouse._node("v")
        base = warehouse._catalog.versions.baseline(node.record.id)
        assert isinstance(base, VersionRecord)
        with engine.step("v", "test", small=True):
            yield Table(engine, node, base.version, tmp_path)


@pytest.fixture
def rows(tmp_path: Path, engine: Engine) -> Iterator[Table]:
    """A table of rows with duplicates and NULLs."""
    yield from _table(tmp_path / "rows", engine, "SELECT k, s FROM m.t")


@pytest.fixture
def groups(tmp_path: Path, engine: Engine) -> Iterator[Table]:
    """A table of groups: k, number of rows."""
    yield from _table(tmp_path / "groups", engine, "SELECT k, count(*) AS n FROM m.t GROUP BY k")


def force(monkeypatch: pytest.MonkeyPatch, method: Method) -> None:
    monkeypatch.setattr(installing, "method_for", lambda node, delta, rows: method)


@pytest.mark.parametrize("method", ["overwrite", "merge"])
def test_just_as_many_copies_are_deleted_as_the_delta_says(
    rows: Table, monkeypatch: pytest.MonkeyPatch, method: Method
) -> None:
    force(monkeypatch, method)
    delta = rows.delta([(2, "b"), (9, None)], [(1, "a"), (1, "a"), (None, "n"), (3, None)])
    done = install(rows.engine, rows.node, delta, rows.baseline, "step")
    assert rows.contents(done.version) == bag([(1, "a"), (2, "b"), (2, "b"), (9, None)])
    assert rows.contents(rows.baseline) == bag(ROWS)


@pytest.mark.parametrize("method", ["overwrite", "merge"])
@pytest.mark.parametrize("deleted", [[(7, "x")], [(1, "a")] * 4, [(None, None)]])
def test_a_delete_without_a_row_fails_and_changes_nothing(
    rows: Table, monkeypatch: pytest.MonkeyPatch, method: Method, deleted: list[tuple[object, ...]]
) -> None:
    force(monkeypatch, method)
    delta = rows.delta([(5, "new")], deleted)
    with pytest.raises(Exception, match="DELETE_WITHOUT_ROW"):
        install(rows.engine, rows.node, delta, rows.baseline, "step")
    make_ready(rows.engine, rows.node, rows.baseline, "next")
    assert bag(rows.engine.rows(f"SELECT * FROM delta.`{rows.node.path}`")) == bag(ROWS)


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


def test_the_way_follows_from_delta_and_table(rows: Table, groups: Table) -> None:
    few, many = Delta("", 3, 3), Delta("", 5000, 5000)
    assert method_for(rows.node, Delta("", 0, 0), 10) == "none"
    assert method_for(rows.node, Delta("", 3, 0), 10**9) == "append"
    assert method_for(rows.node, few, 100) == "overwrite"
    assert method_for(rows.node, few, 10**6) == "merge"
    assert method_for(groups.node, few, 10**6) == "delete+append"
    assert method_for(groups.node, many, 10**6) == "merge"
    assert method_for(groups.node, few, None) == "delete+append"


def test_what_somebody_else_wrote_is_undone_before_a_step(rows: Table) -> None:
    rows.engine.run(f"DELETE FROM delta.`{rows.node.path}` WHERE k = 1")
    make_ready(rows.engine, rows.node, rows.baseline, "step")
    assert bag(rows.engine.rows(f"SELECT * FROM delta.`{rows.node.path}`")) == bag(ROWS)
    done = install(rows.engine, rows.node, rows.delta([], [(1, "a")]), rows.baseline, "step")
    assert rows.contents(done.version) == bag([(1, "a"), (1, "a"), (2, "b"), (None, "n"), (3, None)])
