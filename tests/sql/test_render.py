"""The SQL of a plan gives on Spark what the in-memory evaluator gives: as bags, with signs.

``STRANDLINE_EXAMPLES`` sets the number of histories (then drawn anew in each run) for longer campaigns.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.plan import (
    COUNT,
    At,
    Backing,
    Bag,
    Change,
    Filter,
    GroupBy,
    MergeSummary,
    Operand,
    Output,
    Partial,
    Plan,
    Scan,
    SemiJoin,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Column, Schema, names
from strandline.engine.session import Engine
from strandline.sql.names import quoted, quoted_list
from strandline.sql.relations import empty_select
from strandline.sql.render import NEGATIVE_COUNT, SIGN, render, scalar_sql
from tests.algebra.replay import computed, refreshed
from tests.algebra.views import History, bigints, histories

pytestmark = pytest.mark.spark

EXAMPLES = int(os.environ.get("STRANDLINE_EXAMPLES", "12"))


@dataclass(frozen=True)
class Case:
    """A plan as SQL, and the bag that it stands for."""

    sql: str
    width: int
    expected: SignedBag


def values(columns: Schema, rows: Sequence[Row]) -> str:
    """Rows of bigints as a SELECT."""
    if not rows:
        return empty_select(columns)
    listed = ", ".join("(" + ", ".join("NULL" if v is None else str(v) for v in row) + ")" for row in rows)
    labels = ", ".join(f"c{place}" for place in range(len(columns)))
    items = ", ".join(f"CAST(c{place} AS {c.type}) AS {quoted(c.name)}" for place, c in enumerate(columns))
    return f"SELECT {items} FROM VALUES {listed} AS v({labels})"


def unit_rows(columns: Schema, bag: SignedBag) -> str:
    """A signed bag as rows with ``__sign``, each as often as its multiplicity says."""
    signed = (*columns, Column(SIGN, "int"))
    return values(signed, [(*row, 1 if count > 0 else -1) for row, count in bag.items() for _ in range(abs(count))])


def cases(history: History) -> list[Case]:
    """Contents and deltas of all blocks, at all steps of a history."""
    found: list[Case] = []
    contents = computed(history.blocks, history.start)
    for block in history.blocks:
        visible = contents.visible

        def current(scan: Scan, visible: Mapping[str, SignedBag] = visible) -> str:
            assert isinstance(scan.operand, At)
            return values(scan.fields, visible[scan.operand.relation].rows())

        found.append(_case(render(block.contents, current, signed=True), block.stored, contents.stored[block.node]))
        reading = render(block.reading(block.contents), current, signed=True)
        found.append(_case(reading, block.visible, contents.visible[block.node]))
    for step in history.steps:
        after = refreshed(history.blocks, contents, step)
        rows: dict[Operand, SignedBag] = {}
        for relation, bag in contents.visible.items():
            rows[At(relation, "pre")] = bag
            rows[At(relation, "post")] = after.after.visible[relation]
            rows[Change(relation)] = after.visible_deltas.get(relation, SignedBag())
        rows |= {Backing(node, "pre"): bag for node, bag in contents.stored.items()}

        def bound(scan: Scan, rows: Mapping[Operand, SignedBag] = rows) -> str:
            if isinstance(scan.operand, Change):
                return unit_rows(scan.fields, rows[scan.operand])
            return values(scan.fields, rows[scan.operand].rows())

        for block in history.blocks:
            plan = after.plans.get(block.node)
            if plan is not None:
                delta = render(plan.plan, bound, signed=True)
                found.append(_case(delta, block.stored, after.stored_deltas[block.node]))
        contents = after.after
    return found


def _case(sql: str, columns: Schema, expected: SignedBag) -> Case:
    return Case(f"SELECT {quoted_list((*names(columns), SIGN))} FROM ({sql})", len(columns), expected)


def run(engine: Engine, found: Sequence[Case]) -> list[SignedBag]:
    """The bags of all cases, by one query."""
    widest = max(case.width for case in found)
    parts = []
    for place, case in enumerate(found):
        columns = [f"c{i}" for i in range(case.width)]
        padded = ", ".join([*columns, *["CAST(NULL AS BIGINT)"] * (widest - case.width)])
        labels = ", ".join([*columns, SIGN])
        parts.append(f"SELECT {place}, {SIGN}, {padded} FROM ({case.sql}) AS t({labels})")
    rows: list[list[tuple[Row, int]]] = [[] for _ in found]
    for place, sign, *row in engine.rows(" UNION ALL ".join(parts)):
        assert sign in (1, -1)
        rows[place].append((tuple(row[: found[place].width]), sign))
    return [SignedBag(signed) for signed in rows]


@settings(
    max_examples=max(1, EXAMPLES),
    deadline=None,
    derandomize="STRANDLINE_EXAMPLES" not in os.environ,
    # A smaller example would cost more than it explains.
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.function_scoped_fixture,
    ],
)
@given(history=histories(most_blocks=2))
def test_contents_and_deltas_are_those_of_the_evaluator(small: Engine, history: History) -> None:
    found = cases(history)
    for case, bag in zip(found, run(small, found), strict=True):
        assert bag == case.expected, case.sql


# --- Single constructs


@pytest.mark.parametrize(
    ("scalar", "text"),
    [
        (Lit(None), "NULL"),
        (Lit(True), "true"),
        (Lit(-1), "-1"),
        (Lit("it's \\ ${x}"), "'it\\'s \\\\ \\u0024{x}'"),
        (Lit(0.5), "double('0.5')"),
        (Lit(float("nan")), "double('nan')"),
        (Lit(float("-inf")), "double('-inf')"),
        (Col("a b"), "`a b`"),
    ],
)
def test_constants_and_columns(scalar: Scalar, text: str) -> None:
    assert scalar_sql(scalar, {"a b": "`a b`"}) == text


def test_constants_mean_themselves_on_spark(small: Engine) -> None:
    found: list[str | float | None] = ["it's \\ ${x} \n ünïcode \U0001f600 \"`", "", 0.1, 1e300, float("inf"), None]
    (row,) = small.rows("SELECT " + ", ".join(scalar_sql(Lit(value), {}) for value in found))
    assert list(row) == found
    assert small.rows(f"SELECT {scalar_sql(Lit(float('nan')), {})} = double('NaN')") == [(True,)]


def test_a_count_below_zero_stops_the_step(small: Engine) -> None:
    """The delta deletes a row that was never there."""
    key = Output(Column("k", "bigint"), Col("k"))
    rows = Partial(Column(COUNT, "bigint"), "count")
    stored = (*bigints("k"), rows.column)
    summary = GroupBy(Scan(Change("r"), "", bigints("k")), (key,), (rows,), keep_empty=True)
    plan: Plan = MergeSummary(Scan(Backing("v"), "", stored, ("k",)), summary, ("k",), (rows,))

    def bound(scan: Scan) -> str:
        if isinstance(scan.operand, Change):
            return unit_rows(scan.fields, SignedBag([((7,), -1)]))
        return values(scan.fields, [(1, 1)])

    with pytest.raises(Exception, match=r"\[NEGATIVE_COUNT\] a group would have .* rows: 7"):
        small.rows(render(plan, bound))
    assert NEGATIVE_COUNT == "[NEGATIVE_COUNT]"


def test_a_stored_bag_is_read_like_a_relation() -> None:
    scan = Scan(Bag("keys"), "x", bigints("a"))
    assert render(scan, lambda s: f"SELECT {s.operand}") == "SELECT `x_1`.`a` AS `x.a`\nFROM (SELECT keys) AS `x_1`"
    assert render(scan, lambda s: "SELECT 1", signed=True).startswith(f"SELECT *, 1 AS {SIGN} FROM (SELECT ")


def test_a_condition_that_looks_into_texts_is_asked_of_rows_whose_keys_match(engine: Engine) -> None:
    rows = Scan(At("r"), "r", (Column("k", "bigint"), Column("s", "string")))
    keys = Scan(Bag("keys"), "", (Column("key", "bigint"),))
    found = Filter(
        Filter(SemiJoin(rows, (Col("r.k"),), keys), Text((Col("r.s"), " LIKE '%a%b%' OR ", Col("r.s"), " = ''"))),
        Call("<>", (Col("r.k"), Lit(4))),
    )
    stored = (
        "SELECT * FROM VALUES (1, 'a-b'), (1, 'a-b'), (1, 'b-a'), (2, 'a-b'), (3, NULL), (3, ''), (4, 'ab'), "
        "(NULL, 'ab') AS v(k, s)"
    )
    asked = "SELECT * FROM VALUES (1), (1), (3), (4), (NULL), (NULL) AS v(key)"
    sql = render(found, lambda scan: asked if isinstance(scan.operand, Bag) else stored)
    assert sorted(engine.rows(sql)) == [(1, "a-b"), (1, "a-b"), (3, "")]
    both = render(found.input, lambda scan: asked if isinstance(scan.operand, Bag) else stored)
    assert sorted(engine.rows(both), key=str) == [(1, "a-b"), (1, "a-b"), (3, ""), (4, "ab"), (None, "ab")]
    told = str(engine.query(f"EXPLAIN {both}").collect()[0][0])
    asking = [line for line in told.splitlines() if " LIKE " in line]
    assert len(asking) == 1 and "LeftSemi" in asking[0], told
