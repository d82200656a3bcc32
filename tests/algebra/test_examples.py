"""The worked examples of WHIPS, and their completions, exactly.

Tables 7.6 to 7.8 as printed contradict Tables 7.1 and 7.2 (row ``a``); here they are recomputed. A second
fixture agrees with what is printed.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.block import Block, Method, delta_of
from strandline.algebra.differentiate import differentiate, group_by
from strandline.algebra.evaluate import NegativeCount, evaluate
from strandline.algebra.plan import (
    COUNT,
    At,
    Backing,
    Change,
    Filter,
    GroupBy,
    Join,
    Net,
    Operand,
    Output,
    Partial,
    Plan,
    Project,
    Scan,
)
from strandline.algebra.representation import counted, representation
from strandline.algebra.scalar import Call, Col, Lit, Scalar, equality
from strandline.algebra.schema import Column
from strandline.algebra.term import as_plan
from tests.algebra.replay import computed, read, refreshed

V1 = Scan(
    At("V1"),
    "V1",
    (
        Column("orderID", "bigint"),
        Column("partID", "string"),
        Column("qty", "bigint"),
        Column("cost", "bigint"),
    ),
)
COUNT_OF_ROWS = Partial(Column(COUNT, "bigint", False), "count")


def bigint(name: str, value: Scalar) -> Output:
    return Output(Column(name, "bigint"), value)


def bag(*rows: Row) -> SignedBag:
    return SignedBag.of(rows)


# Duplicates: sections 3 and 4


DUPLICATES = bag((1, "a", 1, 20), (1, "b", 2, 250), (1, "a", 1, 20))


def test_figure_7_5_is_figure_7_4_with_counts() -> None:
    assert dict(DUPLICATES) == {(1, "a", 1, 20): 2, (1, "b", 2, 250): 1}


def test_a_projection_adds_counts_up() -> None:
    orders = Project(V1, (bigint("orderID", Col("V1.orderID")),))
    assert dict(evaluate(orders, lambda _: DUPLICATES)) == {(1,): 3}


def test_insertions_meet_rows_that_are_there() -> None:
    inserted = SignedBag([((1, "a", 1, 20), 1), ((2, "c", 1, 500), 2)])
    assert dict(DUPLICATES + inserted) == {(1, "a", 1, 20): 3, (1, "b", 2, 250): 1, (2, "c", 1, 500): 2}


@pytest.mark.parametrize(
    ("copies", "left"),
    [(1, [(1, "a", 1, 20), (1, "b", 2, 250)]), (2, [(1, "b", 2, 250)])],
)
def test_just_as_many_copies_are_deleted_as_the_delta_says(copies: int, left: list[Row]) -> None:
    assert DUPLICATES - SignedBag([((1, "a", 1, 20), copies)]) == SignedBag.of(left)


def test_deleting_more_copies_than_there_are_is_an_error() -> None:
    with pytest.raises(ValueError, match="negative"):
        (DUPLICATES - SignedBag([((1, "a", 1, 20), 3)])).rows()


PLAIN = Block("V", V1)
COUNTED = counted(PLAIN)
FIGURE_7_5 = bag((1, "a", 1, 20, 2), (1, "b", 2, 250, 1))


def test_a_counted_table_holds_figure_7_5_and_shows_figure_7_4() -> None:
    contents = computed([COUNTED], {"V1": DUPLICATES})
    assert contents.stored["V"] == FIGURE_7_5
    assert contents.visible["V"] == DUPLICATES
    assert (representation(PLAIN), representation(COUNTED)) == ("dup", "count")


def test_a_counted_table_takes_insertions_in() -> None:
    inserted = SignedBag([((1, "a", 1, 20), 1), ((2, "c", 1, 500), 2)])
    done = refreshed([COUNTED], computed([COUNTED], {"V1": DUPLICATES}), {"V1": inserted})
    assert done.after.stored["V"] == bag((1, "a", 1, 20, 3), (1, "b", 2, 250, 1), (2, "c", 1, 500, 2))
    assert done.visible_deltas["V"] == inserted


@pytest.mark.parametrize(
    ("copies", "left"),
    [(1, [(1, "a", 1, 20, 1), (1, "b", 2, 250, 1)]), (2, [(1, "b", 2, 250, 1)])],
)
def test_a_counted_row_goes_with_its_last_copy(copies: int, left: list[Row]) -> None:
    before = computed([COUNTED], {"V1": DUPLICATES})
    done = refreshed([COUNTED], before, {"V1": SignedBag([((1, "a", 1, 20), -copies)])})
    assert done.after.stored["V"] == SignedBag.of(left)


def test_a_counted_row_cannot_lose_more_copies_than_it_has() -> None:
    with pytest.raises(NegativeCount):
        before = computed([COUNTED], {"V1": DUPLICATES})
        refreshed([COUNTED], before, {"V1": SignedBag([((1, "a", 1, 20), -3)])})


def test_a_projection_over_a_counted_view_sees_all_copies() -> None:
    orders = Block("Orders", Project(Scan(At("V"), "v", V1.fields), (bigint("orderID", Col("v.orderID")),)))
    assert computed([COUNTED, orders], {"V1": DUPLICATES}).visible["Orders"] == bag((1,), (1,), (1,))


# ByParts: section 5


REVENUE = Call("*", (Col("V1.qty"), Col("V1.cost")))
BY_PARTS = Block(
    "ByParts",
    V1,
    keys=(Output(Column("partID", "string"), Col("V1.partID")),),
    partials=(Partial(Column("revenue", "bigint"), "sum", REVENUE), COUNT_OF_ROWS),
    outputs=(
        Output(Column("partID", "string"), Col("partID")),
        bigint("revenue", Col("revenue")),
        bigint("cnt", Col(COUNT)),
    ),
)

TABLE_7_1 = bag((1, "a", 1, 20), (1, "b", 2, 250), (2, "a", 1, 20), (3, "c", 1, 500))
TABLE_7_2 = bag(("a", 40, 2), ("b", 500, 1), ("c", 500, 1))
TABLE_7_3 = bag((1, "a", 2, 20), (4, "c", 1, 500), (4, "d", 1, 30))
TABLE_7_4 = bag((1, "a", 1, 20), (1, "b", 2, 250))
TABLE_7_5 = bag(("a", 20, 0), ("b", -500, -1), ("c", 500, 1), ("d", 30, 1))
DELTA_V1 = TABLE_7_3 - TABLE_7_4
WITHOUT_2A = TABLE_7_1 - bag((2, "a", 1, 20))


def summary(delta: SignedBag) -> SignedBag:
    """The summary delta of ByParts."""
    below = as_plan(differentiate(BY_PARTS.body, {"V1"}))
    assert below is not None
    plan = GroupBy(below, BY_PARTS.keys, BY_PARTS.partials, keep_empty=True)
    rows: dict[Operand, SignedBag] = {Change("V1"): delta}
    return evaluate(plan, rows.__getitem__)


def whips(v1: SignedBag, delta: SignedBag) -> SignedBag:
    """The delta of ByParts: explicit deletions and insertions."""
    return refreshed([BY_PARTS], computed([BY_PARTS], {"V1": v1}), {"V1": delta}).stored_deltas["ByParts"]


def test_table_7_2() -> None:
    assert computed([BY_PARTS], {"V1": TABLE_7_1}).visible["ByParts"] == TABLE_7_2


def test_table_7_5_the_summary_delta() -> None:
    assert summary(DELTA_V1) == TABLE_7_5


def test_tables_7_6_to_7_8_recomputed() -> None:
    delta = whips(TABLE_7_1, DELTA_V1)
    table_7_6 = bag(("a", 40, 2), ("b", 500, 1), ("c", 500, 1))
    table_7_8 = bag(("a", 60, 2), ("c", 1000, 2), ("d", 30, 1))
    assert delta.deleted == table_7_6
    assert delta.inserted == table_7_8
    table_7_7 = [*TABLE_7_5.rows(), *table_7_6.rows()]
    merged = {
        part: tuple(sum(row[place] for row in table_7_7 if row[0] == part) for place in (1, 2)) for part in "abcd"
    }
    assert bag(*((part, *sums) for part, sums in merged.items() if sums[1] > 0)) == table_7_8


def test_by_parts_after_install() -> None:
    after = refreshed([BY_PARTS], computed([BY_PARTS], {"V1": TABLE_7_1}), {"V1": DELTA_V1}).after
    assert after.visible["V1"] == bag(
        (1, "a", 2, 20), (2, "a", 1, 20), (3, "c", 1, 500), (4, "c", 1, 500), (4, "d", 1, 30)
    )
    assert after.visible["ByParts"] == bag(("a", 60, 2), ("c", 1000, 2), ("d", 30, 1))
    assert after.stored == computed([BY_PARTS], {"V1": TABLE_7_1 + DELTA_V1}).stored


def test_tables_7_5_to_7_8_as_printed_without_the_row_2a() -> None:
    assert computed([BY_PARTS], {"V1": WITHOUT_2A}).visible["ByParts"] == bag(
        ("a", 20, 1), ("b", 500, 1), ("c", 500, 1)
    )
    assert summary(DELTA_V1) == TABLE_7_5
    delta = whips(WITHOUT_2A, DELTA_V1)
    assert delta.deleted == bag(("a", 20, 1), ("b", 500, 1), ("c", 500, 1))
    assert delta.inserted == bag(("a", 40, 1), ("c", 1000, 2), ("d", 30, 1))


def test_partial_recompute_gives_the_delta_of_the_whips_method() -> None:
    group = GroupBy(BY_PARTS.body, BY_PARTS.keys, BY_PARTS.partials)
    below = as_plan(differentiate(BY_PARTS.body, {"V1"}))
    assert below is not None
    keys = group_by.touched_keys(group, below)
    plan = group_by.affected(group, keys, group_by.backing("ByParts", group), {"V1"})
    rows: dict[Operand, SignedBag] = {
        Change("V1"): DELTA_V1,
        At("V1", "post"): TABLE_7_1 + DELTA_V1,
        Backing("ByParts", "pre"): TABLE_7_2,
    }
    assert evaluate(plan, rows.__getitem__) == whips(TABLE_7_1, DELTA_V1)


@pytest.mark.parametrize("method", ["explicit", "summary", "affected"])
@pytest.mark.parametrize("v1", [TABLE_7_1, WITHOUT_2A])
def test_every_method_leaves_the_same_table(method: Method, v1: SignedBag) -> None:
    done = refreshed([BY_PARTS], computed([BY_PARTS], {"V1": v1}), {"V1": DELTA_V1}, method)
    assert done.plans["ByParts"].form == ("summary" if method == "summary" else "explicit")
    assert done.after == computed([BY_PARTS], {"V1": v1 + DELTA_V1})


@pytest.mark.parametrize("method", ["explicit", "summary"])
def test_no_method_lets_a_count_fall_below_zero(method: Method) -> None:
    before = computed([BY_PARTS], {"V1": TABLE_7_1})
    with pytest.raises(NegativeCount):
        refreshed([BY_PARTS], before, {"V1": SignedBag([((9, "b", 1, 1), -2)])}, method)


def test_a_view_above_an_aggregate() -> None:
    scan = Scan(At("ByParts"), "p", BY_PARTS.visible, BY_PARTS.visible_key)
    total = Block(
        "Tot",
        scan,
        partials=(COUNT_OF_ROWS, Partial(Column("revenue", "bigint"), "sum", Col("p.revenue"))),
        outputs=(bigint("n", Col(COUNT)), bigint("r", Col("revenue"))),
    )
    before = computed([BY_PARTS, total], {"V1": TABLE_7_1})
    assert before.visible["Tot"] == bag((3, 1040))
    done = refreshed([BY_PARTS, total], before, {"V1": DELTA_V1})
    assert done.visible_deltas["ByParts"] == read(BY_PARTS, whips(TABLE_7_1, DELTA_V1))
    assert done.visible_deltas["Tot"] == bag((3, 1090)) - bag((3, 1040))
    assert done.after.visible["Tot"] == bag((3, 1090))
    assert scan.key == ("partID",)


def test_a_change_without_effect_leaves_nothing_to_install() -> None:
    delta = bag((5, "c", 1, 500)) - bag((3, "c", 1, 500))
    assert summary(delta) == bag(("c", 0, 0))
    assert whips(TABLE_7_1, delta) == SignedBag()


def test_a_group_without_effect_is_dropped_from_the_summary_delta() -> None:
    plan = delta_of(BY_PARTS, {"V1"}, insert_only=False, method="summary")
    assert plan is not None
    delta = bag((5, "c", 1, 500), (6, "b", 1, 1)) - bag((3, "c", 1, 500))
    assert evaluate(plan.plan, lambda _: delta) == bag(("b", 1, 1))
    assert evaluate(plan.plan, lambda _: delta - bag((6, "b", 1, 1))) == SignedBag()


def test_values_that_cancel_while_the_count_changes_have_an_effect() -> None:
    delta = bag((5, "c", 0, 500))
    assert summary(delta) == bag(("c", 0, 1))
    assert whips(TABLE_7_1, delta) == bag(("c", 500, 2)) - bag(("c", 500, 1))


def test_a_count_below_zero_is_an_error() -> None:
    delta = SignedBag([((9, "b", 1, 1), -2)])
    with pytest.raises(NegativeCount, match=r"group \('b',\) would have -1 rows"):
        whips(TABLE_7_1, delta)


def test_a_count_of_a_group_that_is_not_there_cannot_fall() -> None:
    with pytest.raises(NegativeCount):
        whips(TABLE_7_1, SignedBag([((9, "z", 1, 1), -1)]))


# Global aggregates, and sums of nothing: section "Beyond the spec", 7


SUM_OF_QTY = Block(
    "Qty",
    V1,
    partials=(
        COUNT_OF_ROWS,
        Partial(Column("s", "bigint"), "sum", Col("V1.qty")),
        Partial(Column("s_n", "bigint", False), "count", Col("V1.qty")),
    ),
    outputs=(
        bigint("n", Col(COUNT)),
        bigint("s", Call("case", (Call(">", (Col("s_n"), Lit(0))), Col("s")))),
    ),
)


def test_a_global_aggregate_keeps_its_row_at_count_zero() -> None:
    before = computed([SUM_OF_QTY], {"V1": TABLE_7_1})
    assert before.visible["Qty"] == bag((4, 5))
    emptied = refreshed([SUM_OF_QTY], before, {"V1": -TABLE_7_1}).after
    assert emptied.stored["Qty"] == bag((0, 0, 0))
    assert emptied.visible["Qty"] == bag((0, None))
    refilled = refreshed([SUM_OF_QTY], emptied, {"V1": bag((1, "a", 0, 1))}).after
    assert refilled.visible["Qty"] == bag((1, 0))


def test_a_sum_over_nothing_but_null_is_null() -> None:
    by_part = replace(
        SUM_OF_QTY,
        keys=BY_PARTS.keys,
        outputs=(Output(Column("partID", "string"), Col("partID")), *SUM_OF_QTY.outputs),
    )
    before = computed([by_part], {"V1": bag((1, "a", 7, 1), (2, "a", None, 1))})
    assert before.visible["Qty"] == bag(("a", 2, 7))
    after = refreshed([by_part], before, {"V1": -bag((1, "a", 7, 1))}).after
    assert after.stored["Qty"] == bag(("a", 1, 0, 0))
    assert after.visible["Qty"] == bag(("a", 1, None))


# Example 7.2.1: V4, the number of 1998 orders per customer


V2 = Scan(
    At("V2"),
    "V2",
    (Column("orderID", "bigint"), Column("custID", "bigint"), Column("date", "string")),
    ("orderID",),
)
V3 = Scan(
    At("V3"),
    "V3",
    (Column("custID", "bigint"), Column("name", "string"), Column("address", "string")),
    ("custID",),
)
V4 = Block(
    "V4",
    Filter(
        Join((V2, V3), (equality("V2.custID", "V3.custID"),)),
        Call(
            "and",
            (
                Call(">=", (Col("V2.date"), Lit("1998-01-01"))),
                Call("<", (Col("V2.date"), Lit("1999-01-01"))),
            ),
        ),
    ),
    keys=(bigint("custID", Col("V2.custID")),),
    partials=(COUNT_OF_ROWS,),
    outputs=(bigint("custID", Col("custID")), bigint("count", Col(COUNT))),
)
ORDERS = bag(
    (1, 10, "1998-01-01"), (2, 10, "1998-12-31"), (3, 10, "1999-01-01"), (4, 20, "1998-06-01"),
    (5, 30, "1998-06-01"), (6, None, "1998-06-01"),
)  # fmt: skip
CUSTOMERS = bag((10, "Ann", "x"), (20, "Bob", "y"))


def test_v4_counts_orders_of_1998_per_customer() -> None:
    before = computed([V4], {"V2": ORDERS, "V3": CUSTOMERS})
    assert before.visible["V4"] == bag((10, 2), (20, 1))


def test_v4_follows_changes_of_both_inputs() -> None:
    before = computed([V4], {"V2": ORDERS, "V3": CUSTOMERS})
    done = refreshed(
        [V4],
        before,
        {
            "V2": bag((7, 30, "1998-02-02"), (8, 10, "1997-12-31")) - bag((4, 20, "1998-06-01")),
            "V3": bag((30, "Cyd", "z"), (10, "Ann", "w")) - bag((10, "Ann", "x")),
        },
    )
    assert done.plans["V4"].operators == ("bilinear", "linear")
    assert done.stored_deltas["V4"] == bag((30, 2)) - bag((20, 1))
    assert done.after.visible["V4"] == bag((10, 2), (30, 2))


# Example 8.4.1: chained selections


def test_deltas_of_chained_selections() -> None:
    fields = (Column("a", "bigint"),)
    p2, p3 = Call(">", (Col("x.a"), Lit(1))), Call("<", (Col("x.a"), Lit(5)))
    chain = [
        Block("V2", _plain(Filter(Scan(At("V1"), "x", fields), p2))),
        Block("V3", _plain(Filter(Scan(At("V2"), "x", fields), p3))),
    ]
    before = computed(chain, {"V1": bag((1,), (2,))})
    done = refreshed(chain, before, {"V1": bag((0,), (3,), (3,), (7,))})
    assert done.visible_deltas["V2"] == bag((3,), (3,), (7,))
    assert done.visible_deltas["V3"] == bag((3,), (3,))
    assert done.after.visible["V3"] == bag((2,), (3,), (3,))
    comp = delta_of(chain[1], {"V2"}, insert_only=True)
    assert comp is not None
    assert comp.plan == Net(_plain(Filter(Scan(Change("V2"), "x", fields), p3)))
    assert comp.terms[0].only_deltas


def _plain(plan: Plan) -> Plan:
    return Project(plan, (bigint("a", Col("x.a")),))


# A diamond: two views over one relation, joined by a third


def test_a_diamond_sees_both_of_its_sides_change_at_once() -> None:
    most = Block(
        "Most",
        V1,
        keys=BY_PARTS.keys,
        partials=(COUNT_OF_ROWS, Partial(Column("qty", "bigint"), "max", Col("V1.qty"))),
    )
    both = Block(
        "Both",
        Project(
            Join(
                (Scan(At("ByParts"), "p", BY_PARTS.visible), Scan(At("Most"), "m", most.visible)),
                (equality("p.partID", "m.partID"),),
            ),
            (
                Output(Column("partID", "string"), Col("p.partID")),
                bigint("revenue", Col("p.revenue")),
                bigint("qty", Col("m.qty")),
            ),
        ),
    )
    blocks = [BY_PARTS, most, both]
    before = computed(blocks, {"V1": TABLE_7_1})
    assert before.visible["Both"] == bag(("a", 40, 1), ("b", 500, 2), ("c", 500, 1))
    done = refreshed(blocks, before, {"V1": DELTA_V1})
    assert [done.plans[name].strategy for name in ("ByParts", "Most", "Both")] == [
        "incremental",
        "affected",
        "incremental",
    ]
    assert done.after.visible["Both"] == bag(("a", 60, 2), ("c", 1000, 1), ("d", 30, 1))
    assert done.after == computed(blocks, {"V1": TABLE_7_1 + DELTA_V1})
