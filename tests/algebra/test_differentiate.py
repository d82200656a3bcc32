"""Each operator's rule: plans, and the terms of their deltas."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, delta_of
from strandline.algebra.differentiate import differentiate
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import (
    COUNT,
    At,
    Backing,
    Change,
    Exists,
    Filter,
    Generate,
    GroupBy,
    Join,
    Limit,
    MergeSummary,
    Negate,
    Net,
    Operand,
    OuterJoin,
    Output,
    Partial,
    Plan,
    Project,
    Repeat,
    Scan,
    SemiJoin,
    UnionAll,
    Values,
    Window,
    key,
    scans,
)
from strandline.algebra.scalar import Call, Col, Lit, equality
from strandline.algebra.schema import Column, names
from strandline.algebra.term import Term, as_plan, bind, substitute, substitute_now
from tests.algebra.views import bigints


def scan(name: str, alias: str = "") -> Scan:
    return Scan(At(name), alias or name.lower(), bigints("a", "b"))


R, S, T = scan("R"), scan("S"), scan("T")
POSITIVE = Call(">", (Col("r.a"), Lit(0)))
A = Output(Column("a", "bigint"), Col("r.a"))
COUNT_OF_ROWS = Partial(Column(COUNT, "bigint", False), "count")
LEAST = Partial(Column("least", "bigint"), "min", Col("r.b"))
MINIMUM = Partial(Column("m", "bigint"), "min", Col("r.b"))


def shown(plan: Plan) -> str:
    """A plan on one line: its operators and operands."""
    match plan:
        case Scan(operand=Change(relation, "pre", "post")):
            return f"Δ{relation}"
        case Scan(operand=operand):
            return str(operand)
        case Filter(child):
            return f"σ({shown(child)})"
        case Project(child):
            return f"π({shown(child)})"
        case Join(inputs):
            return f"({' ⋈ '.join(shown(child) for child in inputs)})"
        case UnionAll(inputs):
            return f"({' + '.join(shown(child) for child in inputs)})"
        case Negate(child):
            return f"-{shown(child)}"
        case Net(child):
            return f"Net{shown(child)}"
        case GroupBy(input=child):
            return f"γ({shown(child)})"
        case MergeSummary(old=old, summary=summary):
            return f"Merge({shown(old)}, {shown(summary)})"
        case SemiJoin(child, _, keys):
            return f"({shown(child)} ⋉ {shown(keys)})"
        case Exists(left, right, negated=negated):
            return f"({shown(left)} {'▷' if negated else '∃'} {shown(right)})"
        case OuterJoin(left, right):
            return f"({shown(left)} ⟕ {shown(right)})"
        case Window(input=child):
            return f"ω({shown(child)})"
        case Repeat(input=child) | Generate(input=child):
            return f"ρ({shown(child)})"
        case Limit(input=child):
            return f"top({shown(child)})"
        case Values():
            return "values"


CHAIN = (equality("r.b", "s.a"), equality("s.b", "t.a"))
MATCH = ((Col("r.a"), Col("s.a")),)
RULES: list[tuple[Plan, str, list[str]]] = [
    # semi and anti join
    (Exists(R, S, MATCH), "R", ["(ΔR ∃ S@post)"]),
    (
        Exists(R, S, MATCH, negated=True),
        "S",
        ["-π(((R@post ⋉ π(ΔS)) ⋈ Netπ(Merge(γ((S@pre ⋉ π(ΔS))), γ(ΔS)))))"],
    ),
    (
        Exists(R, S, MATCH, (Call(">", (Col("s.b"), Lit(0))),)),
        "S",
        ["π(((R@post ⋉ π(ΔS)) ⋈ Netπ(Merge(γ(σ((S@pre ⋉ π(ΔS)))), γ(σ(ΔS))))))"],
    ),
    # by more than keys
    (
        Exists(R, S, MATCH, (Call("<", (Col("r.b"), Col("s.b"))),)),
        "S",
        ["((R@post ⋉ π(ΔS)) ∃ S@post)", "-((R@post ⋉ π(ΔS)) ∃ S@pre)"],
    ),
    (Exists(R, S, ()), "S", ["(R@post ∃ S@post)", "-(R@post ∃ S@pre)"]),
    # outer join
    (OuterJoin(R, S, MATCH), "R", ["(ΔR ⋈ S@post)", "π((ΔR ▷ S@post))"]),
    # window, repeat
    (Window(R, (Col("r.a"),), ()), "R", ["ω((R@post ⋉ π(ΔR)))", "-ω((R@pre ⋉ π(ΔR)))"]),
    (Window(R, (), ()), "R", ["ω(R@post)", "-ω(R@pre)"]),
    (Repeat(R, Col("r.a")), "R", ["ρ(ΔR)"]),
    # groups without a table
    (
        Filter(GroupBy(R, (A,), (COUNT_OF_ROWS,)), Call(">", (Col(COUNT), Lit(1)))),
        "R",
        ["σ(Merge(γ((R@pre ⋉ π(ΔR))), γ(ΔR)))"],
    ),
    (GroupBy(R, (), (COUNT_OF_ROWS,)), "R", ["Merge(γ(R@pre), γ(ΔR))"]),
    (GroupBy(R, (A,), (COUNT_OF_ROWS, LEAST)), "R", ["γ((R@post ⋉ π(ΔR)))", "-γ((R@pre ⋉ π(ΔR)))"]),
    # rows that are written out
    (Join((R, Values(((Lit(1),),), bigints("n"))), ()), "R", ["(ΔR ⋈ values)"]),
    (Values(((Lit(1),),), bigints("n")), "R", []),
    # scan
    (R, "R", ["ΔR"]),
    (R, "S", []),
    (Scan(At("R", 7), "r", bigints("a")), "R", ["ΔR"]),
    (Scan(Change("R"), "r", bigints("a")), "R", []),
    # filter
    (Filter(R, POSITIVE), "R", ["σ(ΔR)"]),
    (Filter(R, POSITIVE), "S", []),
    # project
    (Project(R, (A,)), "R", ["π(ΔR)"]),
    (Project(Filter(R, POSITIVE), (A,)), "R", ["π(σ(ΔR))"]),
    # union all; the second input's columns get the names of the first's
    (UnionAll((R, R)), "R", ["ΔR", "ΔR"]),
    (UnionAll((R, S)), "RS", ["ΔR", "π(ΔS)"]),
    (UnionAll((R, S)), "S", ["π(ΔS)"]),
    (Filter(UnionAll((R, S)), POSITIVE), "RS", ["σ(ΔR)", "σ(π(ΔS))"]),
    # join: n terms for n inputs, before the change on the left, after it on the right
    (Join((R, S), ()), "RS", ["(ΔR ⋈ S@post)", "(R@pre ⋈ ΔS)"]),
    (
        Join((R, S, T), CHAIN),
        "RST",
        ["(ΔR ⋈ S@post ⋈ T@post)", "(R@pre ⋈ ΔS ⋈ T@post)", "(R@pre ⋈ S@pre ⋈ ΔT)"],
    ),
    # what did not change has one state
    (Join((R, S, T), CHAIN), "S", ["(R@post ⋈ ΔS ⋈ T@post)"]),
    (Join((R, S, T), CHAIN), "RT", ["(ΔR ⋈ S@post ⋈ T@post)", "(R@pre ⋈ S@post ⋈ ΔT)"]),
    (Join((R, S, T), CHAIN), "", []),
    # self-join: once per occurrence
    (Join((R, scan("R", "q")), ()), "R", ["(ΔR ⋈ R@post)", "(R@pre ⋈ ΔR)"]),
    (
        Join((R, S, scan("R", "q")), ()),
        "R",
        ["(ΔR ⋈ S@post ⋈ R@post)", "(R@pre ⋈ S@post ⋈ ΔR)"],
    ),
    # operators below a join
    (
        Join((Filter(R, POSITIVE), UnionAll((S, S))), ()),
        "RS",
        ["(σ(ΔR) ⋈ (S@post + S@post))", "(σ(R@pre) ⋈ ΔS)", "(σ(R@pre) ⋈ ΔS)"],
    ),
    (
        Join((Join((R, S), ()), T), ()),
        "RST",
        ["((ΔR ⋈ S@post) ⋈ T@post)", "((R@pre ⋈ ΔS) ⋈ T@post)", "((R@pre ⋈ S@pre) ⋈ ΔT)"],
    ),
]


@pytest.mark.parametrize(("plan", "changed", "terms"), RULES)
def test_rule(plan: Plan, changed: str, terms: list[str]) -> None:
    found = differentiate(plan, set(changed))
    assert [("-" if term.sign < 0 else "") + shown(term.plan) for term in found] == terms


@pytest.mark.parametrize(("plan", "changed", "terms"), RULES)
def test_a_delta_has_the_columns_of_its_plan(plan: Plan, changed: str, terms: list[str]) -> None:
    for term in differentiate(plan, set(changed)):
        assert names(term.plan.columns) == names(plan.columns)


def test_a_join_keeps_its_conditions_in_every_term() -> None:
    for term in differentiate(Join((R, S, T), CHAIN), {"R", "S", "T"}):
        assert isinstance(term.plan, Join)
        assert term.plan.conditions == CHAIN


ORDERS: list[tuple[Plan, str, list[str]]] = [
    # what is first in the order is read after the change by the terms of the others
    (Join((R, S), ()), "RS", ["(ΔR ⋈ S@pre)", "(R@post ⋈ ΔS)"]),
    (
        Join((R, S, T), CHAIN),
        "SRT",
        ["(ΔR ⋈ S@post ⋈ T@pre)", "(R@pre ⋈ ΔS ⋈ T@pre)", "(R@post ⋈ S@post ⋈ ΔT)"],
    ),
    (Join((R, scan("R", "q"), S), ()), "RS",
     ["(ΔR ⋈ R@post ⋈ S@pre)", "(R@pre ⋈ ΔR ⋈ S@pre)", "(R@post ⋈ R@post ⋈ ΔS)"]),
    (
        Join((Join((R, S), ()), T), ()),
        "TRS",
        ["((ΔR ⋈ S@pre) ⋈ T@post)", "((R@post ⋈ ΔS) ⋈ T@post)", "((R@pre ⋈ S@pre) ⋈ ΔT)"],
    ),
    # below an outer join it is the order of its inner part
    (OuterJoin(R, S, MATCH), "RS", ["(ΔR ⋈ S@pre)", "(R@post ⋈ ΔS)", "π((ΔR ▷ S@post))",
     "-π(π(((R@pre ⋉ π(ΔS)) ⋈ Netπ(Merge(γ((S@pre ⋉ π(ΔS))), γ(ΔS))))))"]),
]  # fmt: skip


@pytest.mark.parametrize(("plan", "order", "terms"), ORDERS)
def test_the_terms_of_a_join_follow_the_order_of_changes(plan: Plan, order: str, terms: list[str]) -> None:
    found = differentiate(plan, set(order), order=order)
    assert [("-" if term.sign < 0 else "") + shown(term.plan) for term in found] == terms


def test_an_operator_that_only_deltas_use_has_no_terms() -> None:
    with pytest.raises(TypeError, match="SemiJoin does not stand in the body of a block"):
        differentiate(SemiJoin(R, (Col("r.a"),), S), {"R"})


GROUPED: list[tuple[Block, bool, str, str]] = [
    (Block("v", R), False, "incremental", "NetΔR"),
    (
        Block("v", R, (A,), (COUNT_OF_ROWS,)),
        False,
        "incremental",
        "Merge(v.backing@pre, σ(γ(ΔR)))",
    ),
    (
        Block("v", R, (A,), (COUNT_OF_ROWS, MINIMUM)),
        True,
        "incremental",
        "Merge(v.backing@pre, σ(γ(ΔR)))",
    ),
    (
        Block("v", R, (A,), (COUNT_OF_ROWS, MINIMUM)),
        False,
        "affected",
        "Net(-(v.backing@pre ⋉ π(ΔR)) + γ((R@post ⋉ π(ΔR))))",
    ),
    (
        Block("v", R, (), (COUNT_OF_ROWS, MINIMUM)),
        False,
        "affected",
        "Net(-v.backing@pre + γ(R@post))",
    ),
    (
        Block("v", R, (A,), (COUNT_OF_ROWS, Partial(Column("p", "double"), "opaque", Col("r.b")))),
        True,
        "affected",
        "Net(-(v.backing@pre ⋉ π(ΔR)) + γ((R@post ⋉ π(ΔR))))",
    ),
]


@pytest.mark.parametrize(("block", "insert_only", "strategy", "plan"), GROUPED)
def test_a_block_chooses_its_strategy(block: Block, insert_only: bool, strategy: str, plan: str) -> None:
    delta = delta_of(block, {"R"}, insert_only=insert_only)
    assert delta is not None
    assert delta.strategy == strategy
    assert shown(delta.plan) == plan
    assert delta_of(block, {"S"}, insert_only=insert_only) is None


def test_a_block_names_the_strategy_of_each_operator() -> None:
    joined = Block("v", Join((R, S), ()), (A,), (COUNT_OF_ROWS, MINIMUM))
    for block, insert_only, operators in (
        (Block("v", R), False, ("linear",)),
        (Block("v", Filter(Join((R, S), ()), POSITIVE)), False, ("bilinear",)),
        (joined, True, ("bilinear", "linear")),
        (joined, False, ("bilinear", "affected groups")),
    ):
        delta = delta_of(block, {"R"}, insert_only=insert_only)
        assert delta is not None
        assert delta.operators == operators


# Terms


def operands(term: Term) -> list[str]:
    return [str(s.operand) for s in scans(term.plan)]


def test_substitution_puts_a_delta_in_the_place_of_a_relation() -> None:
    term = Term(Join((R, S), ()), -1)
    (found,) = substitute(term, "S", Change("S", 3, 4))
    assert operands(found) == ["R@current", "ΔS(3,4]"]
    assert found.sign == -1
    assert found.deltas == ("S",)
    assert not found.only_deltas


def test_substitution_is_empty_where_the_relation_is_a_delta_already() -> None:
    (once,) = substitute(Term(Join((R, S), ())), "S", Change("S", 3, 4))
    assert substitute(once, "S", Change("S", 4, 5)) == ()


def test_substitution_is_empty_where_the_relation_does_not_occur() -> None:
    assert substitute(Term(R), "S", Change("S")) == ()


def test_a_term_of_deltas_alone_needs_no_source() -> None:
    (once,) = substitute(Term(Join((R, S), ())), "S", Change("S", 3, 4))
    (twice,) = substitute(once, "R", Change("R", 7, 8))
    assert operands(twice) == ["ΔR(7,8]", "ΔS(3,4]"]
    assert twice.only_deltas
    assert twice.deltas == ("R", "S")


def test_a_self_join_is_substituted_once_per_occurrence() -> None:
    term = Term(Join((R, S, scan("R", "q"), scan("R", "p")), ()))
    assert [operands(found) for found in substitute(term, "R", Change("R", 3, 4))] == [
        ["ΔR(3,4]", "S@current", "R@4", "R@4"],
        ["R@3", "S@current", "ΔR(3,4]", "R@4"],
        ["R@3", "S@current", "R@3", "ΔR(3,4]"],
    ]


def test_occurrences_are_told_apart_though_derived_tables_use_the_same_alias() -> None:
    inputs = tuple(Project(R, (Output(Column(name, "bigint"), Col("r.a")),)) for name in ("x", "y"))
    assert [operands(found) for found in substitute(Term(Join(inputs, ())), "R", Change("R"))] == [
        ["ΔR(pre,post]", "R@post"],
        ["R@pre", "ΔR(pre,post]"],
    ]


pairs = st.tuples(st.sampled_from((0, 1, None)), st.sampled_from((0, 1, None)))
bags = st.lists(pairs, max_size=4).map(SignedBag.of)
deltas = st.lists(st.tuples(pairs, st.integers(-2, 2)), max_size=4).map(SignedBag)


@settings(max_examples=100, deadline=None, derandomize=True)
@given(bags, deltas, bags)
def test_the_terms_of_a_substitution_add_up_to_the_difference(
    before: SignedBag, delta: SignedBag, other: SignedBag
) -> None:
    three = Join((R, S, scan("R", "q")), (equality("r.b", "s.a"), Call("<=", (Col("s.b"), Col("q.a")))))

    def rows(operand: Operand) -> SignedBag:
        match operand:
            case At("S"):
                return other
            case Change("R", "pre", "post"):
                return delta
            case At("R", "pre"):
                return before
            case At("R", "post"):
                return before + delta
        raise AssertionError(operand)

    total = as_plan(substitute(Term(three), "R", Change("R")))
    assert total is not None
    states = [evaluate(bind(three, state, {"R"}), rows) for state in ("pre", "post")]
    assert evaluate(total, rows) == states[1] - states[0]


def test_substitution_where_only_the_present_is_readable_takes_off_what_was_counted_twice() -> None:
    term = Term(Join((R, S, scan("R", "q")), ()), -1)
    found = substitute_now(term, {"R": Change("R", 3, 4)})
    assert [(operands(one), one.sign) for one in found] == [
        (["ΔR(3,4]", "S@current", "R@current"], -1),
        (["R@current", "S@current", "ΔR(3,4]"], -1),
        (["ΔR(3,4]", "S@current", "ΔR(3,4]"], 1),
    ]


def test_a_second_delta_of_a_relation_goes_where_the_relation_still_stands() -> None:
    (first, *_) = substitute_now(Term(Join((R, scan("R", "q")), ())), {"R": Change("R", 3, 4)})
    (both,) = substitute_now(first, {"R": Change("R", 4, 5)})
    assert operands(both) == ["ΔR(3,4]", "ΔR(4,5]"]
    assert substitute_now(both, {"R": Change("R", 5, 6)}) == ()
    assert substitute_now(Term(R), {"S": Change("S")}) == ()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(bags, deltas, bags, deltas)
def test_changes_made_at_once_add_up_to_the_difference(
    before: SignedBag, delta: SignedBag, other: SignedBag, other_delta: SignedBag
) -> None:
    three = Join((R, S, scan("R", "q")), (equality("r.b", "s.a"), Call("<=", (Col("s.b"), Col("q.a")))))
    deltas_of = {"R": delta, "S": other_delta}

    def after(operand: Operand) -> SignedBag:
        if isinstance(operand, Change):
            return deltas_of[operand.relation]
        assert isinstance(operand, At)
        return {"R": before, "S": other}[operand.relation] + deltas_of[operand.relation]

    def earlier(operand: Operand) -> SignedBag:
        assert isinstance(operand, At)
        return {"R": before, "S": other}[operand.relation]

    total = as_plan(substitute_now(Term(three), {"R": Change("R"), "S": Change("S")}))
    assert total is not None
    assert evaluate(total, after) == evaluate(three, after) - evaluate(three, earlier)


def test_binding_reads_what_did_not_change_after_the_change() -> None:
    plan = Join((R, S, Scan(Change("T"), "t", bigints("a"))), ())
    assert shown(bind(plan, "pre", {"R"})) == "(R@pre ⋈ S@post ⋈ ΔT)"
    assert shown(bind(plan, "post", {"R"})) == "(R@post ⋈ S@post ⋈ ΔT)"
    assert shown(bind(plan, 3, {"R", "S"})) == "(R@3 ⋈ S@3 ⋈ ΔT)"


def test_binding_leaves_stored_rows_alone() -> None:
    stored = Scan(Backing("v"), "", bigints("a"))
    assert bind(stored, "post", {"v"}) == stored


def test_a_sum_of_terms_is_a_plan() -> None:
    assert as_plan(()) is None
    assert as_plan((Term(R),)) == R
    assert as_plan((Term(R), -Term(S))) == UnionAll((R, Negate(S)))


# Keys


def test_keys_pass_through_operators_that_keep_them() -> None:
    keyed = Scan(At("R"), "r", bigints("a", "b"), ("a",))
    other = Scan(At("S"), "s", bigints("a", "b"), ("a", "b"))
    renamed = Project(keyed, (Output(Column("id", "bigint"), Col("r.a")),))
    assert key(keyed) == key(Filter(keyed, POSITIVE)) == frozenset({"r.a"})
    assert key(renamed) == frozenset({"id"})
    assert key(Project(keyed, (Output(Column("b", "bigint"), Col("r.b")),))) is None
    assert key(Join((keyed, other), ())) == frozenset({"r.a", "s.a", "s.b"})
    assert key(Join((keyed, S), ())) is None
    assert key(UnionAll((keyed, keyed))) is None
    assert key(GroupBy(R, (A,), (COUNT_OF_ROWS,))) == frozenset({"a"})


def test_a_delta_has_no_key_for_it_names_an_updated_row_twice() -> None:
    keyed = Scan(At("R"), "r", bigints("a", "b"), ("a",))
    (term,) = differentiate(Filter(keyed, POSITIVE), {"R"})
    assert key(term.plan) is None
