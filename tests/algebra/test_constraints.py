"""Under constraints that hold, the delta with fewer terms is the delta; constraints that do not hold are found out.

``STRANDLINE_EXAMPLES`` sets the number of histories for longer campaigns. Costs about 4 seconds.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, given, settings

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.checks import Checks
from strandline.algebra.constraints import NOTHING, AppendOnly, Assumed, Constraint, Parts, simplified
from strandline.algebra.differentiate import differentiate, relied_on
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import (
    At,
    Change,
    Exists,
    Filter,
    Join,
    Operand,
    OuterJoin,
    Output,
    Plan,
    Project,
    Scan,
    UnionAll,
    map_scans,
)
from strandline.algebra.scalar import Call, Col, Lit, equality
from tests.algebra.referring import FIELDS, FOREIGN_KEYS, KEYS, NOT_NULL, Case, State, cases
from tests.algebra.replay import computed, refreshed
from tests.algebra.test_differentiate import shown

EXAMPLES = int(os.environ.get("STRANDLINE_EXAMPLES", "300"))


def campaign(examples: int) -> settings:
    return settings(
        max_examples=max(1, examples),
        deadline=None,
        derandomize="STRANDLINE_EXAMPLES" not in os.environ,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


LINES = Scan(At("lines"), "l", FIELDS["lines"])
ORDERS = Scan(At("orders"), "o", FIELDS["orders"])
CUSTOMERS = Scan(At("customers"), "c", FIELDS["customers"])
BY_ORDER, BY_CUSTOMER = equality("l.o", "o.k"), equality("o.c", "c.k")
NEW = CHANGED = "(Δorders ⋉ π(σ(γ(Δorders))))"
KEPT = Parts(new=False, gone=False)
GROWN = Parts(gone=False, changed=False)
MATCH = ((Col("l.o"), Col("o.k")),)


@pytest.mark.parametrize(
    ("plan", "parts", "terms"),
    [
        (
            Join((LINES, ORDERS), (BY_ORDER,)),
            {},
            [f"(Δlines ⋈ (orders@pre + {NEW}))", f"(lines@post ⋈ {CHANGED})"],
        ),
        (Join((ORDERS, LINES), (BY_ORDER,)), {"orders": GROWN}, ["(orders@post ⋈ Δlines)"]),
        (Join((ORDERS, LINES), (equality("o.k", "l.o"),)), {"orders": GROWN}, ["(orders@post ⋈ Δlines)"]),
        (Join((ORDERS, LINES), (BY_ORDER,)), {"orders": KEPT}, ["(orders@pre ⋈ Δlines)", "(Δorders ⋈ lines@post)"]),
        (
            Join((LINES, ORDERS), (BY_ORDER,)),
            {"orders": Parts(gone=False)},
            [f"(Δlines ⋈ (orders@pre + {NEW}))", f"(lines@post ⋈ {CHANGED})"],
        ),
        (
            Join((LINES, ORDERS), (BY_ORDER,)),
            {"orders": Parts(new=False)},
            ["(Δlines ⋈ orders@pre)", f"(lines@post ⋈ {CHANGED})"],
        ),
        (
            Join((LINES, ORDERS, CUSTOMERS), (BY_ORDER, BY_CUSTOMER)),
            {"orders": GROWN, "customers": GROWN},
            ["(Δlines ⋈ orders@post ⋈ customers@post)"],
        ),
        # by another column there is no key
        (
            Join((LINES, ORDERS), (equality("l.x", "o.k"),)),
            {"orders": GROWN},
            ["(Δlines ⋈ orders@post)", "(lines@pre ⋈ Δorders)"],
        ),
        (OuterJoin(LINES, ORDERS, MATCH), {"orders": GROWN}, ["(Δlines ⋈ orders@post)", "π(σ(Δlines))"]),
        (Exists(LINES, ORDERS, MATCH), {}, ["σ(Δlines)"]),
        (Exists(LINES, ORDERS, MATCH, negated=True), {}, ["σ(Δlines)"]),
        # what is selected may be missing
        (
            Exists(LINES, Filter(ORDERS, Call(">", (Col("o.x"), Lit(0)))), MATCH),
            {},
            [
                "(Δlines ∃ σ(orders@post))",
                "π(((lines@pre ⋉ π(σ(Δorders))) ⋈ Netπ(Merge(γ((σ(orders@pre) ⋉ π(σ(Δorders)))), γ(σ(Δorders))))))",
            ],
        ),
    ],
)
def test_the_terms_that_are_left(plan: Plan, parts: dict[str, Parts], terms: list[str]) -> None:
    assumed = Assumed(FOREIGN_KEYS, parts)
    simple, _ = simplified(plan, assumed)
    found = differentiate(simple, {"lines", "orders", "customers"}, assumed)
    assert ["-" * (term.sign < 0) + shown(term.plan) for term in found] == terms


def test_no_row_is_left_beside_nulls_where_there_are_none() -> None:
    assumed = Assumed((*FOREIGN_KEYS, *NOT_NULL), {"orders": GROWN})
    simple, uses = simplified(OuterJoin(LINES, ORDERS, MATCH), assumed)
    assert [shown(term.plan) for term in differentiate(simple, {"orders"}, assumed)] == []
    assert [use.constraint for use in uses] == [FOREIGN_KEYS[1], NOT_NULL[0]]


POSITIVE = Call(">", (Col("o.x"), Lit(0)))
FIRST, SECOND = (Scan(At("visits"), alias, FIELDS["visits"]) for alias in ("a", "b"))
PLACES = Scan(At("places"), "p", FIELDS["places"])


@pytest.mark.parametrize(
    "plan",
    [
        pytest.param(OuterJoin(LINES, ORDERS, MATCH, (POSITIVE,)), id="another condition"),
        pytest.param(Exists(LINES, ORDERS, MATCH, (POSITIVE,)), id="another condition on what exists"),
        pytest.param(OuterJoin(LINES, ORDERS, (*MATCH, (Col("l.x"), Col("o.x")))), id="another column"),
        pytest.param(OuterJoin(LINES, ORDERS, ((Col("l.x"), Col("o.k")),)), id="no foreign key"),
        pytest.param(OuterJoin(LINES, ORDERS, MATCH, full=True), id="full"),
        pytest.param(
            OuterJoin(
                Join((FIRST, SECOND), (equality("a.x", "b.x"),)),
                PLACES,
                ((Col("a.k"), Col("p.k")), (Col("b.j"), Col("p.j"))),
            ),
            id="half of the key from each of two rows",
        ),
    ],
)
def test_a_join_that_may_miss_rows_stays(plan: Plan) -> None:
    simple, uses = simplified(plan, Assumed((*FOREIGN_KEYS, *NOT_NULL)))
    assert isinstance(simple, type(plan)) and uses == ()


@pytest.mark.parametrize(
    "left",
    [
        OuterJoin(CUSTOMERS, LINES, ((Col("c.x"), Col("l.x")),)),
        OuterJoin(LINES, CUSTOMERS, ((Col("l.x"), Col("c.x")),), full=True),
    ],
)
def test_a_column_without_null_may_stand_beside_nulls(left: Plan) -> None:
    simple, uses = simplified(OuterJoin(left, ORDERS, MATCH), Assumed((*FOREIGN_KEYS, *NOT_NULL)))
    assert isinstance(simple, UnionAll)
    assert [use.constraint for use in uses] == [FOREIGN_KEYS[1]]


def test_of_tables_that_refer_to_each_other_only_one_is_referred_to() -> None:
    staff, boss = (Scan(At("staff"), alias, FIELDS["staff"]) for alias in ("s", "b"))
    plan = Join((staff, boss), (equality("s.boss", "b.k"), equality("b.boss", "s.k")))
    assumed = Assumed(FOREIGN_KEYS, {"staff": GROWN})
    found = differentiate(plan, {"staff"}, assumed)
    assert [shown(term.plan) for term in found] == ["(staff@post ⋈ Δstaff)"]


def changes(before: State, after: State) -> dict[str, SignedBag]:
    found = {name: after[name] - before[name] for name in FIELDS}
    return {name: delta for name, delta in found.items() if delta}


def known(constraints: Iterable[Constraint], delta: State) -> Assumed:
    """All that can be told of a change: which parts it has."""
    parts: dict[str, Parts] = {}
    for name, rows in delta.items():
        if name in KEYS:
            counts = Counter[Row]()
            for row, count in rows.items():
                counts[row[: KEYS[name]]] += count
            numbers = counts.values()
            parts[name] = Parts(any(n > 0 for n in numbers), any(n < 0 for n in numbers), any(n == 0 for n in numbers))
    return Assumed(tuple(constraints), parts)


@campaign(EXAMPLES)
@given(case=cases())
def test_a_view_is_what_recomputation_gives_with_and_without_constraints(case: Case) -> None:
    constraints: tuple[Constraint, ...] = (*FOREIGN_KEYS, *case.not_null)
    contents = computed([case.block], case.states[0])
    for before, after in zip(case.states, case.states[1:], strict=False):
        delta = changes(before, after)
        plain, *done = (
            refreshed([case.block], contents, delta, assumed=assumed).after.stored
            for assumed in (NOTHING, Assumed(constraints), known(constraints, delta))
        )
        contents = computed([case.block], after)
        assert plain == contents.stored
        assert done == [contents.stored] * 2, "with constraints, and with what is known of the changes"


@campaign(EXAMPLES)
@given(case=cases(keeping=False))
def test_changes_that_break_a_constraint_are_found_or_do_no_harm(case: Case) -> None:
    before, after = case.states[-2:]
    delta = changes(before, after)
    assumed = known((*FOREIGN_KEYS, *case.not_null), delta)
    relied = tuple(use.constraint for use in relied_on(case.block.body, assumed))
    broken = found(relied, before, after, delta, assumed)
    assert broken == {c for c in relied if in_state(c, after)}
    holding = Assumed(tuple(c for c in relied if c not in broken), assumed.parts)
    contents = computed([case.block], before)
    done = refreshed([case.block], contents, delta, assumed=holding)
    assert done.after.stored == computed([case.block], after).stored


def found(
    constraints: Iterable[Constraint], before: State, after: State, delta: State, assumed: Assumed
) -> set[Constraint]:
    """What the checks of a change say is broken."""

    def rows(operand: Operand) -> SignedBag:
        match operand:
            case Change(relation):
                return delta[relation]
            case At(relation, "pre"):
                return before[relation]
            case At(relation, _):
                return after[relation]
        raise AssertionError(operand)

    checks = [c for each in constraints for c in Checks(FIELDS).after(each, delta.keys(), assumed)]
    return {check.constraint for check in checks if evaluate(of_whole_rows(check.plan), rows)}


def of_whole_rows(plan: Plan) -> Plan:
    """*plan* over scans of all fields."""

    def scan(found: Scan) -> Plan:
        assert isinstance(found.operand, At | Change)
        whole = Scan(found.operand, "", FIELDS[found.operand.relation])
        return Project(whole, tuple(Output(column, Col(column.name)) for column in found.fields))

    return map_scans(plan, scan)


def test_what_changed_rows_refer_to_is_looked_for_as_well_as_what_new_ones_do() -> None:
    nothing = {name: SignedBag() for name in FIELDS}
    customers = SignedBag.of([(0, None), (3, None)])
    before = {**nothing, "customers": customers, "orders": SignedBag.of([(1, 0, None)])}
    after = {**before, "orders": SignedBag.of([(1, 3, None), (2, 0, None)])}
    astray = {**before, "orders": SignedBag.of([(1, 4, None), (2, 0, None)])}
    key = FOREIGN_KEYS[0]
    for state, broken in ((after, set[Constraint]()), (astray, {key})):
        delta = changes(before, state)
        assert found([key], before, state, delta, known([key], delta)) == broken


def in_state(constraint: Constraint, state: State) -> bool:
    """Whether a constraint is broken in a state."""

    def rows(operand: Operand) -> SignedBag:
        assert isinstance(operand, At)
        return state[operand.relation]

    return any(evaluate(of_whole_rows(c.plan), rows) for c in Checks(FIELDS).whole(constraint, "current"))


@campaign(EXAMPLES // 3)
@given(case=cases())
def test_tables_that_only_grow_need_no_look_at_what_refers_to_them(case: Case) -> None:
    before, after = case.states[:2]
    grown = {name: before[name] + (after[name] - before[name]).inserted for name in FIELDS}
    grown = {name: grown[name] if not _twice(name, grown[name]) else before[name] for name in FIELDS}
    delta = changes(before, grown)
    if any(in_state(key, grown) for key in FOREIGN_KEYS):
        return
    assumed = Assumed((*FOREIGN_KEYS, *map(AppendOnly, KEYS)))
    done = refreshed([case.block], computed([case.block], before), delta, assumed=assumed)
    assert done.after.stored == computed([case.block], grown).stored


def _twice(name: str, rows: SignedBag) -> bool:
    keys = [row[: KEYS.get(name, 0)] for row in rows.rows()]
    return name in KEYS and len(keys) != len(set(keys))
