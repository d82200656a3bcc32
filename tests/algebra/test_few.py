"""Joins that begin at their delta: in which order, and how long they are taken to be small."""

from __future__ import annotations

import pytest

from strandline.algebra.block import Block, delta_of
from strandline.algebra.constraints import Assumed, ForeignKey
from strandline.algebra.few import MOST_ROWS, Few, Rows, RowsOf, from_the_delta
from strandline.algebra.plan import (
    At,
    Backing,
    Change,
    Exists,
    Filter,
    Join,
    MergeSummary,
    Output,
    Partial,
    Plan,
    Project,
    Scan,
    SemiJoin,
    children,
    scans,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar
from strandline.algebra.schema import Column
from strandline.algebra.shared import shapes, shared_join
from strandline.sql.relations import empty_select
from strandline.sql.render import render
from tests.algebra.views import Relation, bigints

CUSTOMERS = Relation("customers", bigints("c", "region"))
ORDERS = Relation("orders", bigints("o", "c"))
LINES = Relation("lines", bigints("o", "p"))
PARTS = Relation("parts", bigints("p", "brand"))
SIZES = {"customers": 150_000, "orders": 1_500_000, "lines": 6_000_000, "parts": 200_000}


def equal(one: str, other: str) -> Scalar:
    return Call("=", (Col(one), Col(other)))


CHAIN = Join(
    (LINES.scan("l"), PARTS.scan("p"), ORDERS.scan("o"), CUSTOMERS.scan("c")),
    (equal("c.c", "o.c"), equal("o.o", "l.o"), equal("l.p", "p.p"), Call("<", (Col("o.o"), Lit(7)))),
)


SHARED = Join((LINES.scan("l"), ORDERS.scan("o")), (equal("o.o", "l.o"),))


def term(changed: str, rows: int, body: Plan = CHAIN) -> Plan:
    """The delta of *body* if so many rows of one table changed."""
    found = delta_of(Block("v", body), [changed], insert_only=False)
    assert found is not None
    return from_the_delta(found.plan, counted(rows))


def counted(rows: int) -> RowsOf:
    """The sizes of tables, and so many *rows* of each delta."""

    def found(scan: Scan) -> Rows | None:
        assert isinstance(scan.operand, At | Change)
        whole = SIZES[scan.operand.relation]
        return Rows(rows if isinstance(scan.operand, Change) else whole, whole)

    return found


def nesting(plan: Plan) -> list[list[str]]:
    """The relations of each join that is taken to give few rows, the innermost first."""
    found = [inner for child in children(plan) for inner in nesting(child)]
    return [*found, [str(scan.operand) for scan in scans(plan)]] if isinstance(plan, Few) else found


def test_a_join_begins_at_its_delta_and_goes_on_by_what_it_meets() -> None:
    """150 customers have 1,500 orders, and these 6,000 lines: few all the time."""
    assert nesting(term("customers", 150)) == [
        ["Δcustomers(pre,post]", "orders@post"],
        ["Δcustomers(pre,post]", "orders@post", "lines@post"],
    ]


def test_what_has_grown_large_is_not_sent_around() -> None:
    """Of half of all customers are 750,000 orders."""
    assert nesting(term("customers", 75_000)) == []
    assert MOST_ROWS < 10 * 75_000


def test_columns_stay_in_their_order_and_conditions_where_they_can_be_asked() -> None:
    (found,) = children(term("customers", 150))
    assert isinstance(found, Project) and found.columns == CHAIN.columns
    outer = found.input
    assert isinstance(outer, Join) and outer.conditions == (equal("l.p", "p.p"),)
    inner = outer.inputs[0]
    assert isinstance(inner, Few) and inner.conditions == (equal("o.o", "l.o"),)
    innermost = inner.inputs[0]
    assert isinstance(innermost, Few)
    assert set(innermost.conditions) == {equal("c.c", "o.c"), Call("<", (Col("o.o"), Lit(7)))}


def test_a_key_is_met_once() -> None:
    keyed = Scan(At("orders"), "o", ORDERS.fields, ("o",))
    body = Join((LINES.scan("l"), keyed, PARTS.scan("p")), (equal("o.o", "l.o"), equal("l.p", "p.p")))
    assert nesting(term("lines", MOST_ROWS, body)) != []
    many = Join((LINES.scan("l"), ORDERS.scan("x"), PARTS.scan("p")), (equal("l.p", "p.p"), equal("p.p", "x.c")))
    assert nesting(term("parts", MOST_ROWS // 10, many)) == [["Δparts(pre,post]", "orders@post"]]


@pytest.mark.parametrize(
    "body",
    [
        Join((LINES.scan("l"), ORDERS.scan("o")), (equal("l.o", "o.o"),)),
        Join((LINES.scan("l"), ORDERS.scan("o"), CUSTOMERS.scan("c")), (equal("l.o", "o.o"),)),
    ],
    ids=["two inputs", "a product"],
)
def test_other_joins_are_left_as_they_are(body: Plan) -> None:
    assert nesting(term("lines", 100, body)) == []


def test_a_table_of_unknown_size_is_left_where_it_is() -> None:
    found = delta_of(Block("v", CHAIN), ["customers"], insert_only=False)
    assert found is not None and from_the_delta(found.plan, lambda _: None) == found.plan


def test_few_rows_are_sent_to_where_a_table_lies() -> None:
    body = Join(
        (CUSTOMERS.scan("c"), ORDERS.scan("o"), Filter(LINES.scan("l"), Call(">", (Col("l.p"), Lit(3))))),
        (equal("c.c", "o.c"), equal("o.o", "l.o")),
    )
    sql = render(term("customers", 150, body), lambda scan: empty_select(scan.fields), signed=True)
    assert sql.count("BROADCAST") == 1 and "/*+ BROADCAST(`t_" in sql


@pytest.mark.parametrize(("rows", "reduced"), [(150, True), (MOST_ROWS + 1, False)])
def test_few_rows_are_looked_for_only_among_those_that_may_match(rows: int, reduced: bool) -> None:
    body = Exists(CUSTOMERS.scan("c"), ORDERS.scan("o"), ((Col("c.c"), Col("o.c")),), negated=True)
    found = term("customers", rows, body)
    while not isinstance(found, Exists):
        (found,) = children(found)
    assert isinstance(found.right, SemiJoin) == reduced
    if isinstance(found.right, SemiJoin):
        assert found.right.values == (Col("o.c"),)
        assert [str(scan.operand) for scan in scans(found.right.keys)] == ["Δcustomers(pre,post]"]


def test_a_small_table_is_asked_as_a_whole() -> None:
    body = Exists(LINES.scan("l"), Filter(PARTS.scan("p"), Lit(True)), ((Col("l.p"), Col("p.p")),))
    found = delta_of(Block("v", body), ["lines"], insert_only=False)
    assert found is not None
    assert from_the_delta(found.plan, lambda _: Rows(100, 100)) == found.plan


@pytest.mark.parametrize(("rows", "reduced"), [(MOST_ROWS, True), (MOST_ROWS + 1, False)])
def test_of_stored_groups_only_those_are_read_that_changed_rows_belong_to(rows: int, reduced: bool) -> None:
    found = grouped(LINES.scan("l"), "l.p", "lines", rows, stored=200_000)
    assert isinstance(found, MergeSummary)
    assert isinstance(found.old, SemiJoin) == reduced
    if isinstance(found.old, SemiJoin):
        assert found.old.values == (Col("p"),)
        assert [str(scan.operand) for scan in scans(found.old.keys)] == ["Δlines(pre,post]"]
        assert render(found.old, lambda scan: empty_select(scan.fields)).count("LEFT SEMI JOIN") == 1


def test_few_stored_groups_are_read_as_a_whole() -> None:
    found = grouped(LINES.scan("l"), "l.p", "lines", 1_000, stored=100_000)
    assert isinstance(found, MergeSummary)
    assert isinstance(found.old, Scan)


def test_stored_groups_are_read_as_a_whole_if_a_join_would_have_to_be_computed_twice_to_know_which() -> None:
    found = grouped(SHARED, "l.p", "lines", 1_000, stored=200_000)
    assert isinstance(found, MergeSummary)
    assert isinstance(found.old, Scan)


def grouped(body: Plan, key: str, changed: str, rows: int, stored: int) -> Plan:
    """The delta of the groups of *body*, of which so many are stored."""
    keys = (Output(Column("p", "bigint"), Col(key)),)
    block = Block("v", body, keys, (Partial(Column("__count", "bigint"), "count"),))
    found = delta_of(block, [changed], insert_only=False)
    assert found is not None

    def sizes(scan: Scan) -> Rows | None:
        return Rows(stored, stored) if isinstance(scan.operand, Backing) else counted(rows)(scan)

    return from_the_delta(found.plan, sizes)


def test_what_is_new_of_a_table_is_met_with_the_table() -> None:
    """Lines that refer to orders meet those of before and the new ones; changed orders begin a join of their own."""
    orders = Scan(At("orders"), "o", ORDERS.fields, ("o",))
    refers = ForeignKey("lines", ("o",), "orders", ("o",))
    body = Join(
        (LINES.scan("l"), orders, CUSTOMERS.scan("c"), PARTS.scan("p")),
        (equal("o.o", "l.o"), equal("o.c", "c.c"), equal("l.p", "p.p")),
    )
    found = delta_of(Block("v", body), ["lines", "orders"], insert_only=False, assumed=Assumed((refers,)))
    assert found is not None
    nested = nesting(from_the_delta(found.plan, counted(1_000)))
    assert ["Δlines(pre,post]", "orders@pre", "Δorders(pre,post]", "Δorders(pre,post]"] in nested
    assert ["Δorders(pre,post]", "Δorders(pre,post]", "customers@post"] in nested


def test_the_delta_of_a_shared_join_begins_a_join_and_what_is_shared_is_met_apart() -> None:
    join = shared_join("lines and orders", next(shapes(SHARED)), [SHARED])
    found = delta_of(Block("v", CHAIN), ["lines", "customers"], insert_only=False, shared=[join])
    assert found is not None

    def sizes(scan: Scan) -> Rows | None:
        shared = scan.operand == Change("lines and orders")
        return Rows(4_000, SIZES["lines"]) if shared else counted(1_000)(scan)

    nested = nesting(from_the_delta(found.plan, sizes))
    assert ["Δlines and orders(pre,post]", "parts@post"] in nested
    assert ["Δcustomers(pre,post]", "orders@post", "lines@pre"] in nested
