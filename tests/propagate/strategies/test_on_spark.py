"""Strategies carried out on Delta tables by Spark: correct ones end in the right state, and others are found out.

A few rows and the session that all tests share: 25 terms and 27 installs of little data.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from bench.vdag.case import Case, prepared, views_over
from bench.vdag.execution import carried_out, one_by_one
from bench.vdag.workers import Workers
from strandline.engine.files import write_rows
from strandline.engine.session import Engine
from strandline.propagate.strategies.dual_stage import dual_stage
from strandline.propagate.strategies.multi_version import multi_version, pinned_stages
from strandline.propagate.strategies.partitions import one_way_blocks, view_strategy
from strandline.propagate.strategies.stages import stages
from strandline.sql.render import SIGN
from strandline.store.deltas import Delta
from tests.propagate.strategies.figures import parsed

pytestmark = pytest.mark.spark

TABLES: dict[str, tuple[list[str], list[tuple[object, ...]], list[tuple[object, ...]]]] = {
    "A": (
        ["a", "b"],
        [(1, 10), (1, 10), (2, 20), (3, 10), (None, 10), (4, None)],
        [(1, 10, -1), (4, 20, 1), (None, 10, -1), (5, None, 1)],
    ),
    "B": (
        ["b", "c"],
        [(10, "x"), (20, "y"), (20, "y"), (20, None), (None, "z")],
        [(10, "x", -1), (10, "z", 1), (20, "y", -1), (20, None, 1)],
    ),
    "D": (["c", "n"], [("x", 1), ("y", 2), ("y", 2), ("z", None)], [("y", 2, -1), ("z", 5, 1), ("x", 1, 1)]),
}
"""Base tables without keys: columns, rows before, and signed rows."""

QUERIES = {
    "W": "SELECT A.a, A.b, B.c FROM A, B WHERE A.b = B.b",
    "X": "SELECT W.a, W.b, D.n FROM W, D WHERE W.c = D.c",
    "G": "SELECT B.c, sum(A.b) AS total, count(A.a) AS counted FROM A, B WHERE A.b = B.b GROUP BY B.c",
}
"""A join, a join over that join, and an aggregate."""


@pytest.fixture(scope="module")
def case(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Case:
    folder = tmp_path_factory.mktemp("vdag")
    deltas = {}
    for name, (columns, before, changes) in TABLES.items():
        rows = _rows(columns, before)
        write_deltalake(str(folder / "before" / name), rows)
        signs = pa.array([change[-1] for change in changes], pa.int32())
        write_rows(_rows(columns, changes, rows.schema).append_column(SIGN, signs), str(folder / "deltas" / name))
        came = sum(change[-1] == 1 for change in changes)
        deltas[name] = Delta(str(folder / "deltas" / name), came, len(changes) - came)
    nodes = views_over(engine, folder / "before", dict.fromkeys(TABLES, ()), QUERIES, small=True)
    return prepared(engine, folder / "after", nodes, deltas, small=True)


def _rows(columns: list[str], rows: list[tuple[object, ...]], schema: pa.Schema | None = None) -> pa.Table:
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(columns)}, schema)


@pytest.fixture(scope="module")
def workers(engine: Engine) -> Iterator[Workers]:
    with Workers(engine, 2) as found:
        yield found


def test_all_views_at_once(case: Case, workers: Workers, tmp_path: Path) -> None:
    run = carried_out(workers, case, tmp_path / "run", stages(case.graph, dual_stage(case.graph)), small=True)
    assert (run.terms, run.wrong) == (3 + 3 + 3, ())


def test_the_terms_of_a_comp_as_one_query(case: Case, workers: Workers, tmp_path: Path) -> None:
    steps = one_by_one(dual_stage(case.alone("W").graph))
    run = carried_out(workers, case.alone("W"), tmp_path / "run", steps, one_query=True, small=True)
    assert (run.terms, run.wrong) == (3, ())


def test_pinned_versions(case: Case, workers: Workers, tmp_path: Path) -> None:
    run = carried_out(workers, case, tmp_path / "run", pinned_stages(multi_version(case.graph, case.sizes)), small=True)
    assert (run.terms, run.wrong) == (2 + 2 + 2, ())


@pytest.mark.parametrize("order", ["AB", "BA"])
def test_one_source_at_a_time(case: Case, workers: Workers, tmp_path: Path, order: str) -> None:
    strategy = view_strategy("W", one_way_blocks(order))
    run = carried_out(workers, case.alone("W"), tmp_path / "run", one_by_one(strategy), small=True)
    assert (run.terms, run.wrong) == (2, ())


def test_a_source_that_is_never_propagated_is_found_out(case: Case, workers: Workers, tmp_path: Path) -> None:
    without = parsed("Comp(W,{A}), Inst(A), Inst(B), Inst(W)")
    assert carried_out(workers, case.alone("W"), tmp_path / "run", one_by_one(without), small=True).wrong == ("W",)


def test_a_row_that_is_deleted_twice_is_found_out(case: Case, workers: Workers, tmp_path: Path) -> None:
    """C4: a joined row loses one half to each delta, and both Comps read what is before both."""
    both = parsed("Comp(W,{A}), Comp(W,{B}), Inst(A), Inst(B), Inst(W)")
    with pytest.raises(Exception, match="DELETE_WITHOUT_ROW"):
        carried_out(workers, case.alone("W"), tmp_path / "run", one_by_one(both), small=True)
