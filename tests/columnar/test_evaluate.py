"""Plans over columns give what the reference gives, or are left to Spark."""

from __future__ import annotations

from unittest import mock

import pyarrow as pa
import pyarrow.compute as pc
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.algebra.early import early
from strandline.algebra.evaluate import Environment
from strandline.algebra.evaluate import evaluate as reference
from strandline.algebra.plan import (
    Change,
    Plan,
    Scan,
)
from strandline.algebra.schema import Schema, names
from strandline.columnar import evaluate as evaluating
from strandline.columnar.evaluate import evaluate
from strandline.columnar.joining import Met
from strandline.columnar.types import NotHere, arrow_type
from strandline.sql.render import SIGN
from tests.algebra.replay import computed, refreshed
from tests.algebra.test_incremental import EXAMPLES, campaign
from tests.algebra.views import History, histories


def table(bag: SignedBag, fields: Schema, *, signed: bool) -> pa.Table:
    """Unit rows of *bag*."""
    rows = [(*row, 1 if count > 0 else -1) for row, count in bag.items() for _ in range(abs(count))]
    columns = [pa.array([row[n] for row in rows], arrow_type(f.type)) for n, f in enumerate(fields)]
    found = pa.table(columns, names=list(names(fields)))
    signs = pa.array([row[-1] for row in rows], pa.int32())
    if not signed:
        assert not any(row[-1] < 0 for row in rows)
    return found.append_column(SIGN, signs) if signed else found


def bag(rows: pa.Table) -> SignedBag:
    columns = [rows.column(name).to_pylist() for name in rows.schema.names if name != SIGN]
    signs = rows.column(SIGN).to_pylist() if SIGN in rows.schema.names else [1] * rows.num_rows
    return SignedBag(zip(zip(*columns, strict=True), signs, strict=True) if columns else [])


class OnlyMet:
    """Hands out no rows that are not met."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment

    def rows(self, scan: Scan, met: Met) -> pa.Table:
        rows = self._environment(scan.operand)
        signed = isinstance(scan.operand, Change) or any(count < 0 for _, count in rows.items())
        found = table(rows, scan.fields, signed=signed)
        for name, values in met.items():
            found = found.filter(pc.is_in(found.column(name), values.drop_null()))
        return found

    def size(self, scan: Scan) -> int:
        return sum(1 for _ in self._environment(scan.operand))


class Both:
    """Evaluates plans by the reference and over columns, and holds them to each other."""

    def __init__(self) -> None:
        self.here = 0
        self.left: list[str] = []

    def __call__(self, plan: Plan, environment: Environment) -> SignedBag:
        expected = reference(plan, environment)

        try:
            found = evaluate(early(plan), OnlyMet(environment))
        except (NotHere, pa.ArrowException) as error:
            self.left.append(str(error))
            return expected
        self.here += 1
        assert [str(field.type) for field in found.schema][: len(plan.columns)] == [
            str(arrow_type(column.type)) for column in plan.columns
        ]
        assert bag(found) == expected
        return expected


@campaign(EXAMPLES)
@given(histories(), st.sampled_from([0, 2, 1_000]))
def test_deltas_and_contents_of_random_views_are_those_of_the_reference(history: History, large: int) -> None:
    both = Both()
    with mock.patch("tests.algebra.replay.evaluate", both), mock.patch.object(evaluating, "LARGE_ROWS", large):
        contents = computed(history.blocks, history.start)
        for step in history.steps:
            contents = refreshed(history.blocks, contents, step).after


def test_most_random_plans_are_evaluated_here() -> None:
    both = Both()

    @campaign(60)
    @given(histories())
    def replayed(history: History) -> None:
        with mock.patch("tests.algebra.replay.evaluate", both):
            contents = computed(history.blocks, history.start)
            for step in history.steps:
                contents = refreshed(history.blocks, contents, step).after

    replayed()
    assert both.here > 2 * len(both.left), both.left
