"""Reading only what lies near a delta: which tables get conditions, and that nothing is lost by them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, Method, delta_of
from strandline.algebra.evaluate import evaluate
from strandline.algebra.near import Near, Origin, Ranges, RangesOf, limits_of, near, tables_read
from strandline.algebra.plan import (
    COUNT,
    At,
    Backing,
    Bag,
    Change,
    Exists,
    Filter,
    GroupBy,
    Join,
    OuterJoin,
    Output,
    Partial,
    Plan,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
    Window,
    children,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Column
from tests.algebra.referring import FOREIGN_KEYS, Case, cases
from tests.algebra.replay import computed, refreshed
from tests.algebra.test_constraints import changes, known
from tests.algebra.test_incremental import EXAMPLES, campaign
from tests.algebra.test_shared import sharing
from tests.algebra.views import History, Relation, bigints, histories

ORDERS = Relation("orders", bigints("o", "c"))
LINES = Relation("lines", bigints("o", "p"))
CUSTOMERS = Relation("customers", bigints("c", "region"))
RANGES = Ranges("bigint", ((Lit(1), Lit(9)), (Lit(70), Lit(70))))


def equal(one: str, other: str) -> Scalar:
    return Call("=", (Col(one), Col(other)))


def of_lines(nulls: bool = False) -> Ranges:
    return Ranges(RANGES.type, RANGES.pairs, nulls)


def limited(plan: Plan, under: tuple[str, ...] = ()) -> dict[str, str]:
    """By operand, the columns of scans that have conditions on constants."""
    if isinstance(plan, Scan):
        return {str(plan.operand): ", ".join(under)} if under else {}
    found: dict[str, str] = {}
    if isinstance(plan, Filter) and isinstance(plan.condition, Call) and plan.condition.op in ("or", "and"):
        under = (*under, str(next(iter(_columns(plan.condition)))))
    else:
        under = ()
    for child in children(plan):
        found.update(limited(child, under))
    return found


def _columns(scalar: Scalar) -> list[str]:
    if isinstance(scalar, Col):
        return [scalar.name]
    return [name for part in scalar.args for name in _columns(part)] if isinstance(scalar, Call) else []


def known_of_lines(nulls: bool = False) -> RangesOf:
    """The column ``o`` of the change of lines lies in two ranges, and no more is known."""

    def ranges_of(scan: Scan, field: str) -> Ranges | None:
        return of_lines(nulls) if scan.operand == Change("lines") and field == "o" else None

    return ranges_of


def near_lines(plan: Plan, nulls: bool = False) -> dict[str, str]:
    """What is read only in part."""
    return limited(near(plan, known_of_lines(nulls)))


def asked(plan: Plan) -> list[tuple[str, list[str]]]:
    """The tables that a plan near the change of lines reads, with the columns that it asks for."""
    found = tables_read(near(plan, known_of_lines()))
    return sorted((str(scan.operand), sorted(limits)) for scan, limits in found)


def delta(body: Plan, changed: list[str]) -> Plan:
    found = delta_of(Block("v", body), changed, insert_only=False)
    assert found is not None
    return found.plan


CHAIN = Join((LINES.scan("l"), ORDERS.scan("o"), CUSTOMERS.scan("c")), (equal("l.o", "o.o"), equal("o.c", "c.c")))


def test_a_table_that_a_delta_is_joined_with_is_read_in_its_ranges() -> None:
    assert near_lines(delta(CHAIN, ["lines"])) == {"orders@post": "o.o"}
    # NULL equals nothing, so it makes no difference to a join.
    assert near_lines(delta(CHAIN, ["lines"]), nulls=True) == {"orders@post": "o.o"}
    # Terms that read no delta of lines are left as they are.
    assert near_lines(delta(CHAIN, ["orders"])) == {}


def test_equal_columns_pass_the_ranges_on() -> None:
    third = Relation("third", bigints("o"))
    chain = Join((LINES.scan("l"), ORDERS.scan("o"), third.scan("t")), (equal("l.o", "o.o"), equal("o.o", "t.o")))
    assert near_lines(delta(chain, ["lines"])) == {"orders@post": "o.o", "third@post": "t.o"}


def test_ranges_do_not_pass_through_a_column_of_another_type() -> None:
    texts, numbers = Relation("texts", (Column("c", "string"),)), Relation("numbers", bigints("b"))
    chain = Join((numbers.scan("n"), texts.scan("t")), (equal("n.b", "t.c"),))
    changed = Scan(Change("lines"), "l", (Column("o", "string"),))
    known = Ranges("string", ((Lit("01"), Lit("01")),))
    plan = Exists(changed, chain, ((Col("l.o"), Col("n.b")),), negated=True)
    assert near(plan, lambda *_: known) == plan


@pytest.mark.parametrize("outer", [False, True])
def test_groups_of_null_are_computed_from_all_their_rows_below_a_join(outer: bool) -> None:
    rows, others = Relation("rows", bigints("a", "v")), Relation("others", bigints("v"))
    one, single = Relation("one", bigints("i")), Relation("single", bigints("c"))

    def named(plan: Plan, key: Scalar, value: str) -> Plan:
        return Project(plan, (Output(Column("x", "bigint"), key), Output(Column("y", "bigint"), Col(value))))

    first: Plan = rows.scan("r")
    if outer:
        first = OuterJoin(first, one.scan("o"), ((Col("r.v"), Col("o.i")),))
    united = UnionAll((named(first, Col("r.a"), "r.v"), named(others.scan("w"), Lit(7), "w.v")))
    partials = (Partial(Column("m", "bigint"), "max", Col("y")), Partial(Column(COUNT, "bigint"), "count"))
    grouped = GroupBy(united, (Output(Column("k", "bigint"), Col("x")),), partials)
    block = Block("v", Join((grouped, single.scan("s")), ()))
    leaves = {
        "rows": SignedBag.of([(None, 1), (1, 2), (3, 4)]),
        "others": SignedBag.of([(5,)]),
        "one": SignedBag.of([(1,)]),
        "single": SignedBag.of([(0,)]),
    }
    step = {"rows": SignedBag.of([(None, 10), (1, 20)])}
    after = computed([block], {**leaves, "rows": leaves["rows"] + step["rows"]})
    assert refreshed([block], computed([block], leaves), step, only_near=True).after == after


def test_values_of_other_types_have_another_order() -> None:
    texts = Relation("orders", (Column("o", "string"),))
    numbers = Relation("orders", (Column("o", "int"),))
    for relation, expected in ((texts, {}), (numbers, {"orders@post": "o.o"})):
        assert (
            near_lines(delta(Join((LINES.scan("l"), relation.scan("o")), (equal("l.o", "o.o"),)), ["lines"]))
            == expected
        )


@pytest.mark.parametrize("nulls", [False, True])
def test_groups_and_their_stored_rows_are_looked_up_in_ranges_unless_null_is_one(nulls: bool) -> None:
    keys = (Output(Column("o", "bigint"), Col("l.o")),)
    partials = (Partial(Column("__count", "bigint", False), "count"), Partial(Column("m", "bigint"), "max", Col("l.p")))
    block = Block("v", LINES.scan("l"), keys, partials[:1])
    summed = delta_of(block, ["lines"], insert_only=False)
    anew = delta_of(Block("v", LINES.scan("l"), keys, partials), ["lines"], insert_only=False)
    assert summed is not None and anew is not None and isinstance(block.contents, GroupBy)
    assert near_lines(summed.plan, nulls) == ({} if nulls else {str(Backing("v")): "o"})
    assert near_lines(anew.plan, nulls) == (
        {} if nulls else {str(Backing("v")): "o", str(At("lines", "post")): "l.o"}
    )  # fmt: skip


def test_windows_are_computed_from_whole_partitions() -> None:
    numbered = (Output(Column("n", "bigint"), Call("+", (Col("o.o"), Lit(1)))),)
    for partition, expected in (("o.o", {"orders@post": "o.o"}), ("o.c", {})):
        windowed = Window(ORDERS.scan("o"), (Col(partition),), numbered)
        join = Join((LINES.scan("l"), windowed), (equal("l.o", "o.o"),))
        assert near_lines(delta(join, ["lines"])) == expected


def test_tables_are_read_as_often_as_they_stand_in_a_delta() -> None:
    assert asked(delta(CHAIN, ["lines"])) == [("customers@post", []), ("orders@post", ["o.o"])]
    assert asked(delta(CHAIN, ["lines", "orders"])) == [
        ("customers@post", []),
        ("customers@post", []),
        ("lines@pre", []),
        ("orders@post", ["o.o"]),
    ]


def test_what_a_plan_asks_of_a_table_is_what_the_delta_lies_in() -> None:
    ((scan, limits),) = (
        found
        for found in tables_read(near(delta(CHAIN, ["lines"]), known_of_lines()))
        if found[0].operand == At("orders", "post")
    )
    assert scan.fields == ORDERS.fields
    assert limits == {"o.o": RANGES}


def test_a_table_is_asked_for_several_columns_at_once() -> None:
    both = Join((LINES.scan("l"), ORDERS.scan("o")), (equal("l.o", "o.o"), equal("l.p", "o.c")))
    near_both = near(delta(both, ["lines"]), lambda scan, _: RANGES if isinstance(scan.operand, Change) else None)
    ((_, limits),) = tables_read(near_both)
    assert limits == {"o.o": RANGES, "o.c": RANGES}


def test_stored_rows_are_read_and_deltas_and_bags_are_not() -> None:
    keys = (Output(Column("o", "bigint"), Col("l.o")),)
    block = Block("v", LINES.scan("l"), keys, (Partial(Column("__count", "bigint", False), "count"),))
    summed = delta_of(block, ["lines"], insert_only=False)
    assert summed is not None
    assert asked(summed.plan) == [(str(Backing("v")), ["o"])]
    assert asked(Scan(Change("lines"), "l", LINES.fields)) == []
    assert asked(Scan(Bag("lines"), "l", LINES.fields)) == []


def test_a_condition_of_the_view_itself_is_not_taken_for_one_that_was_added() -> None:
    own = Filter(ORDERS.scan("o"), RANGES.condition("o.o"))
    assert list(tables_read(own)) == [(ORDERS.scan("o"), {})]
    joined = delta(Join((LINES.scan("l"), own), (equal("l.p", "o.c"),)), ["lines"])
    assert asked(joined) == [("orders@post", [])]


def test_a_table_within_limits_is_a_table_like_others_below_its_conditions() -> None:
    (within,) = [side for side in _sides(near(delta(CHAIN, ["lines"]), known_of_lines())) if isinstance(side, Filter)]
    assert within.columns == ORDERS.scan("o").columns
    assert isinstance(within.input, Near) and within.input.limits == (("o.o", RANGES),)
    rows = SignedBag.of([(1, 0), (9, 0), (10, 0), (70, 0), (None, 0)])
    assert evaluate(within, lambda _: rows) == SignedBag.of([(1, 0), (9, 0), (70, 0)])


def _sides(plan: Plan) -> tuple[Plan, ...]:
    """The inputs of the join in a plan."""
    return plan.inputs if isinstance(plan, Join) else _sides(children(plan)[0])


def test_what_a_table_is_asked_for_passes_on_to_what_it_is_matched_with() -> None:
    """The rows of a semi join lie near its keys, and so does what has to exist beside them."""
    exists = Exists(ORDERS.scan("o"), LINES.scan("l"), ((Col("o.o"), Col("l.o")),))
    keys = Scan(Change("lines"), "", LINES.fields[:1])
    assert asked(SemiJoin(exists, (Col("o.o"),), keys)) == [("lines@current", ["l.o"]), ("orders@current", ["o.o"])]
    outside = Exists(SemiJoin(ORDERS.scan("o"), (Col("o.o"),), keys), LINES.scan("l"), ((Col("o.o"), Col("l.o")),))
    assert asked(outside) == [("lines@current", ["l.o"]), ("orders@current", ["o.o"])]


def test_keys_of_another_type_tell_nothing_of_what_meets_the_same_rows() -> None:
    """Texts that are equal to the same number differ, so that those of a delta are not all that rows meet."""
    number, code = Relation("numbers", bigints("n")), Relation("codes", (Column("code", "string"),))
    keys = Scan(Change("codes"), "", code.fields)
    met = SemiJoin(number.scan("n"), (Col("n.n"),), keys)
    exists = Exists(met, code.scan("c"), ((Col("n.n"), Col("c.code")),))

    def ranges_of(scan: Scan, field: str) -> Ranges | None:
        return Ranges("string", ((Lit("01"), Lit("01")),), among=(Origin(scan, field),))

    assert limits_of(met, ranges_of) == {}
    assert [limits for _, limits in tables_read(near(exists, ranges_of))] == [{}, {}]


def test_a_delta_lies_where_what_it_is_computed_from_does() -> None:
    found = limits_of(delta(CHAIN, ["lines"]), known_of_lines())
    assert found == {"l.o": RANGES, "o.o": RANGES}
    # A term with another delta may yield any row.
    assert limits_of(delta(CHAIN, ["lines", "orders"]), known_of_lines()) == {}


def test_null_is_in_a_delta_but_equals_nothing() -> None:
    found = limits_of(delta(CHAIN, ["lines"]), known_of_lines(nulls=True))
    assert found["o.o"] == of_lines(nulls=False)


def test_the_ends_of_ranges_are_values_whatever_their_text_is() -> None:
    day = Text(("DATE '2026-01-31'",), Lit("2026-01-31"))
    assert RANGES.values == ((1, 9), (70, 70))
    assert Ranges("date", ((day, day),)).values == (("2026-01-31", "2026-01-31"),)
    assert Ranges("string", ((Lit("a"), Lit("é")),)).values == (("a", "é"),)
    assert Ranges("date", ((Text(("current_date()",)), day),)).values == ((None, "2026-01-31"),)


def sought_by(relation: str, *fields: str, nulls: bool = False) -> RangesOf:
    """Where values of some fields of a change come from is known, and that they lie in two ranges."""

    def ranges_of(scan: Scan, field: str) -> Ranges | None:
        if scan.operand != Change(relation) or field not in fields:
            return None
        return Ranges("bigint", RANGES.pairs, nulls, (Origin(scan, field),))

    return ranges_of


def sought(plan: Plan, ranges_of: RangesOf) -> dict[str, dict[str, list[str]]]:
    """For each table in which rows are sought the columns, and of what their values are."""
    found = [scan for scan, _ in tables_read(near(plan, ranges_of)) if isinstance(scan, Near) and scan.sought]
    return {
        str(scan.operand): {
            column: [f"{origin.scan.operand}.{origin.field}" for origin in origins]
            for column, origins in scan.sought.items()
        }
        for scan in found
    }


def test_rows_that_are_sought_tell_what_to_seek_in_the_next_table() -> None:
    customers = str(Change("customers"))
    assert sought(delta(CHAIN, ["customers"]), sought_by("customers", "c")) == {
        "orders@post": {"o.c": [f"{customers}.c"]},
        "lines@post": {"l.o": ["orders@post.o"]},
    }
    # Nothing is sought if nobody knows where values come from, and rows of the change itself are not.
    assert sought(delta(CHAIN, ["customers"]), known_of_lines()) == {}
    assert sought(delta(CHAIN, ["lines"]), sought_by("lines", "o")) == {
        "orders@post": {"o.o": [f"{Change('lines')}.o"]},
        "customers@post": {"c.c": ["orders@post.c"]},
    }


@pytest.mark.parametrize("kind", ["double", "float", "string collate UTF8_LCASE", "struct<x:double>"])
def test_nothing_is_sought_by_values_that_others_may_equal(kind: str) -> None:
    changed = Scan(Change("customers"), "c", bigints("c"))
    orders = Scan(At("orders"), "o", (*bigints("o", "c"), Column("x", kind)))
    lines = Scan(At("lines"), "l", (*bigints("o"), Column("x", kind)))
    join = Join((changed, orders, lines), (equal("c.c", "o.c"), equal("o.o", "l.o"), equal("o.x", "l.x")))
    assert sought(join, sought_by("customers", "c")) == {
        "orders@current": {"o.c": [f"{Change('customers')}.c"]},
        "lines@current": {"l.o": ["orders@current.o"]},
    }


def test_null_is_among_values_that_are_matched_null_with_null() -> None:
    keys = Scan(Change("lines"), "", LINES.fields[:1])
    semi = SemiJoin(ORDERS.scan("o"), (Col("o.o"),), keys)
    for nulls in (False, True):
        ranges_of = sought_by("lines", "o", nulls=nulls)
        assert sought(semi, ranges_of) == {"orders@current": {"o.o": [f"{Change('lines')}.o"]}}
        assert limited(near(semi, ranges_of)) == ({} if nulls else {"orders@current": "o.o"})


def test_values_of_a_union_are_those_of_its_inputs() -> None:
    changes = tuple(Scan(Change(name), "", LINES.fields[:1]) for name in ("lines", "others"))
    join = Join((UnionAll(changes), ORDERS.scan("o")), (equal("o", "o.o"),))
    known = {name: sought_by(name, "o") for name in ("lines", "others")}

    def of_both(scan: Scan, field: str) -> Ranges | None:
        return known["lines"](scan, field) or known["others"](scan, field)

    assert sought(join, of_both) == {"orders@current": {"o.o": [f"{Change(name)}.o" for name in known]}}
    assert sought(join, known["lines"]) == {}


@campaign(EXAMPLES // 2)
@given(histories(), st.data(), st.sampled_from(["explicit", "summary", "affected"]))
def test_what_is_not_near_is_not_missed(history: History, data: st.DataObject, method: Method) -> None:
    contents = computed(history.blocks, history.start)
    for step in history.steps:
        shared = {block.node: sharing(data, block) for block in history.blocks}
        usual = refreshed(history.blocks, contents, step, method)
        found = refreshed(history.blocks, contents, step, method, sharing=shared, only_near=True)
        assert found.after.stored == usual.after.stored
        contents = usual.after


@campaign(EXAMPLES // 2)
@given(case=cases())
def test_constraints_and_ranges_go_together(case: Case) -> None:
    contents = computed([case.block], case.states[0])
    for before, after in pairwise(case.states):
        change = changes(before, after)
        assumed = known((*FOREIGN_KEYS, *case.not_null), change)
        contents = refreshed([case.block], contents, change, assumed=assumed, only_near=True).after
        assert contents.stored == computed([case.block], after).stored


def test_a_part_that_stands_in_two_places_does_so_afterwards() -> None:
    changed = delta(CHAIN, ["lines"])
    found = near(UnionAll((changed, changed)), known_of_lines())
    assert isinstance(found, UnionAll)
    assert found.inputs[0] != changed
    assert found.inputs[0] is found.inputs[1]
