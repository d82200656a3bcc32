"""The evaluator follows SQL where NULL is concerned, and Spark where NaN is."""

from __future__ import annotations

from decimal import Decimal

import pytest

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.evaluate import NegativeCount, NotEvaluable, compiled, evaluate
from strandline.algebra.plan import (
    COUNT,
    At,
    Backing,
    Bag,
    Change,
    Filter,
    GroupBy,
    Join,
    MergeSummary,
    Negate,
    Net,
    Operand,
    Output,
    Partial,
    Plan,
    Project,
    Scan,
    SemiJoin,
    UnionAll,
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text, Value, equality
from strandline.algebra.schema import Column
from tests.algebra.views import bigints

NAN = float("nan")


def value(op: str, *args: Value | Scalar) -> object:
    scalars = tuple(a if isinstance(a, Col | Lit | Call | Text) else Lit(a) for a in args)
    return compiled(Call(op, scalars), ())(())


def given(**relations: list[Row]) -> dict[str, SignedBag]:
    return {name: SignedBag.of(rows) for name, rows in relations.items()}


def result(plan: Plan, relations: dict[str, SignedBag]) -> SignedBag:
    def read(operand: Operand) -> SignedBag:
        assert not isinstance(operand, Bag)
        return relations[operand.node if isinstance(operand, Backing) else operand.relation]

    return evaluate(plan, read)


def scan(name: str, *columns: str) -> Scan:
    return Scan(At(name), name, bigints(*columns))


def count(name: str = COUNT, argument: Scalar | None = None, where: Scalar | None = None) -> Partial:
    return Partial(Column(name, "bigint", False), "count", argument, where)


# Scalars


@pytest.mark.parametrize(
    ("left", "right", "both", "either"),
    [
        (True, True, True, True),
        (True, False, False, True),
        (True, None, None, True),
        (False, False, False, False),
        (False, None, False, None),
        (None, None, None, None),
    ],
)
def test_and_and_or_are_three_valued(
    left: bool | None, right: bool | None, both: bool | None, either: bool | None
) -> None:
    assert value("and", left, right) is both
    assert value("and", right, left) is both
    assert value("or", left, right) is either
    assert value("or", right, left) is either


@pytest.mark.parametrize(("operand", "negated"), [(True, False), (False, True), (None, None)])
def test_not_is_three_valued(operand: bool | None, negated: bool | None) -> None:
    assert value("not", operand) is negated


@pytest.mark.parametrize("op", ["=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%"])
@pytest.mark.parametrize("args", [(None, 1), (1, None), (None, None)])
def test_comparison_and_arithmetic_with_null_are_null(op: str, args: tuple[int | None, int | None]) -> None:
    assert value(op, *args) is None


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [(None, None, True), (None, 0, False), (0, None, False), (1, 1, True), (1, 2, False), (NAN, -NAN, True)],
)
def test_null_safe_equality_is_never_null(left: Value, right: Value, same: bool) -> None:
    assert value("<=>", left, right) is same


@pytest.mark.parametrize(("operand", "null"), [(None, True), (0, False), (False, False), ("", False)])
def test_is_null(operand: Value, null: bool) -> None:
    assert value("is null", operand) is null
    assert value("is not null", operand) is not null


def test_comparisons() -> None:
    table = {"=": "010", "<>": "101", "<": "100", "<=": "110", ">": "001", ">=": "011"}
    for op, expected in table.items():
        assert [value(op, left, 1) for left in (0, 1, 2)] == [digit == "1" for digit in expected]


def test_nan_equals_itself_and_is_above_all_numbers() -> None:
    assert value("=", NAN, -NAN) is True
    assert value("<>", NAN, NAN) is False
    assert value(">", NAN, float("inf")) is True
    assert value("<", NAN, 1.0) is False
    assert value("<=", 1.0, NAN) is True
    assert value("=", 0.0, -0.0) is True


def test_remainder_has_the_sign_of_the_dividend_and_is_exact() -> None:
    assert [value("%", a, b) for a, b in ((7, 3), (-7, 3), (7, -3), (-7, -3))] == [1, -1, 1, -1]
    assert value("%", 10**18 + 7, 3) == 2
    assert value("%", -7.5, 2.0) == -1.5
    assert value("%", Decimal("-7.5"), Decimal(2)) == Decimal("-1.5")


def test_division() -> None:
    assert value("/", 1, 2) == 0.5
    assert value("/", Decimal(1), 8) == Decimal("0.125")


def test_coalesce_takes_the_first_value_that_is_not_null() -> None:
    assert value("coalesce", None, 0, 1) == 0
    assert value("coalesce", None, None) is None


def test_case_takes_the_first_condition_that_is_true() -> None:
    assert value("case", None, 1, False, 2, True, 3, 4) == 3
    assert value("case", None, 1, False, 2, 4) == 4
    assert value("case", None, 1, False, 2) is None
    assert value("case", True, None, 4) is None


def test_case_does_not_evaluate_what_it_does_not_take() -> None:
    assert value("case", True, 1, Call("/", (Lit(1), Lit(0)))) == 1


def test_a_text_is_evaluated_by_its_meaning() -> None:
    text = Text(("upper(", Col("r.a"), ")"), Call("+", (Col("r.a"), Lit(1))))
    assert compiled(text, scan("r", "a").columns)((1,)) == 2


def test_what_only_spark_knows_is_refused() -> None:
    with pytest.raises(NotEvaluable, match="known to Spark only"):
        compiled(Text(("soundex(", Col("r.a"), ")")), scan("r", "a").columns)
    with pytest.raises(NotEvaluable, match="cast"):
        value("cast", 1)
    opaque = Partial(Column("p", "bigint"), "opaque", Col("r.a"))
    with pytest.raises(NotEvaluable, match="aggregate p"):
        result(GroupBy(scan("r", "a"), (), (count(), opaque)), given(r=[(1,)]))


def test_an_unknown_operator_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown operator 'like'; known: "):
        Call("like", (Lit("a"), Lit("b")))


# Plans


def test_a_filter_keeps_only_rows_for_which_the_condition_is_true() -> None:
    plan = Filter(scan("r", "a"), Call(">", (Col("r.a"), Lit(0))))
    assert result(plan, given(r=[(1,), (1,), (0,), (None,)])) == SignedBag([((1,), 2)])
    negated = Filter(scan("r", "a"), Call("not", (plan.condition,)))
    assert result(negated, given(r=[(1,), (0,), (None,)])) == SignedBag.of([(0,)])


def test_a_projection_keeps_duplicates() -> None:
    plan = Project(scan("r", "a", "b"), (Output(Column("a", "bigint"), Col("r.a")),))
    assert result(plan, given(r=[(1, 1), (1, 2), (None, 1)])) == SignedBag([((1,), 2), ((None,), 1)])


def test_join_keys_that_are_null_do_not_match() -> None:
    relations = given(r=[(1,), (None,)], s=[(1,), (None,)])
    inputs = (scan("r", "a"), scan("s", "a"))
    assert result(Join(inputs, (equality("r.a", "s.a"),)), relations) == SignedBag.of([(1, 1)])
    safe = Call("<=>", (Col("r.a"), Col("s.a")))
    assert result(Join(inputs, (safe,)), relations) == SignedBag.of([(1, 1), (None, None)])


def test_a_join_multiplies_multiplicities() -> None:
    relations = {"r": SignedBag([((1,), 2)]), "s": SignedBag([((1,), -3)])}
    join = Join((scan("r", "a"), scan("s", "a")), (equality("r.a", "s.a"),))
    assert result(join, relations) == SignedBag([((1, 1), -6)])


def test_a_join_without_conditions_is_the_product() -> None:
    relations = given(r=[(1,), (2,)], s=[(3,), (3,)])
    assert result(Join((scan("r", "a"), scan("s", "a")), ()), relations) == SignedBag([((1, 3), 2), ((2, 3), 2)])


def test_a_theta_join_of_three_inputs() -> None:
    inputs = (scan("r", "a"), scan("s", "a"), scan("t", "a"))
    conditions = (
        Call("<", (Col("r.a"), Col("t.a"))),
        Call("=", (Col("s.a"), Call("-", (Col("t.a"), Col("r.a"))))),
    )
    relations = given(r=[(1,), (2,)], s=[(1,), (2,)], t=[(2,), (3,), (None,)])
    assert result(Join(inputs, conditions), relations) == SignedBag.of([(1, 1, 2), (1, 2, 3), (2, 1, 3)])


def test_a_union_goes_by_place() -> None:
    plan = Filter(UnionAll((scan("r", "a", "b"), scan("s", "b", "a"))), Call("=", (Col("r.a"), Lit(1))))
    assert result(plan, given(r=[(1, 2)], s=[(1, 2), (2, 1)])) == SignedBag([((1, 2), 2)])


def test_negation_and_net_effect() -> None:
    r = scan("r", "a")
    assert result(Negate(r), given(r=[(1,)])) == SignedBag([((1,), -1)])
    assert result(Net(UnionAll((r, Negate(r)))), given(r=[(1,), (None,)])) == SignedBag()


def test_null_is_a_group() -> None:
    r = scan("r", "a", "b")
    plan = GroupBy(r, (Output(Column("k", "bigint"), Col("r.a")),), (count(),))
    rows: list[Row] = [(1, 1), (None, 1), (None, 2), (1, None)]
    assert result(plan, given(r=rows)) == SignedBag.of([(1, 2), (None, 2)])


def test_nan_is_a_group() -> None:
    plan = GroupBy(scan("r", "a"), (Output(Column("k", "double"), Col("r.a")),), (count(),))
    assert result(plan, given(r=[(NAN,), (-NAN,), (0.0,), (-0.0,)])) == SignedBag.of([(NAN, 2), (0.0, 2)])


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(1, 5), (1, None), (1, 7)], (3, 2, 12, 5, 7)),
        ([(1, None), (1, None)], (2, 0, 0, None, None)),
        ([], (0, 0, 0, None, None)),
    ],
)
def test_aggregates_skip_null(rows: list[Row], expected: Row) -> None:
    b = Col("r.b")
    partials = (
        count(),
        count("n", b),
        Partial(Column("sum", "bigint"), "sum", b),
        Partial(Column("min", "bigint"), "min", b),
        Partial(Column("max", "bigint"), "max", b),
    )
    assert result(GroupBy(scan("r", "a", "b"), (), partials), given(r=rows)) == SignedBag.of([expected])


def test_min_and_max_take_nan_for_the_greatest() -> None:
    a = Col("r.a")
    extremes = (Partial(Column("m", "double"), "min", a), Partial(Column("x", "double"), "max", a))
    plan = GroupBy(scan("r", "a"), (), (count(), *extremes))
    for rows in ([(NAN,), (1.0,)], [(1.0,), (NAN,)]):
        assert result(plan, given(r=rows)) == SignedBag.of([(2, 1.0, NAN)])


def test_an_aggregate_with_where_sees_only_rows_for_which_it_is_true() -> None:
    b = Col("r.b")
    some = Call(">", (b, Lit(1)))
    partials = (count(), count("n", None, some), Partial(Column("s", "bigint"), "sum", b, some))
    rows: list[Row] = [(1, 1), (1, 2), (1, 3), (1, None)]
    assert result(GroupBy(scan("r", "a", "b"), (), partials), given(r=rows)) == SignedBag.of([(4, 2, 5)])


def test_grouping_an_empty_input_gives_no_group_but_a_global_aggregate_one_row() -> None:
    r = scan("r", "a")
    key = Output(Column("k", "bigint"), Col("r.a"))
    assert result(GroupBy(r, (key,), (count(),)), given(r=[])) == SignedBag()
    assert result(GroupBy(r, (), (count(),)), given(r=[])) == SignedBag.of([(0,)])


def test_a_summary_delta_keeps_groups_of_zero_and_less() -> None:
    key = Output(Column("k", "bigint"), Col("r.a"))
    delta = {"r": SignedBag([((1, 5), 1), ((1, 6), -1), ((2, 5), -1)])}
    partials = (count(), Partial(Column("s", "bigint"), "sum", Col("r.b")))
    summary = GroupBy(scan("r", "a", "b"), (key,), partials, keep_empty=True)
    assert result(summary, delta) == SignedBag.of([(1, 0, -1), (2, -1, -5)])


def test_a_semi_join_matches_null_with_null_and_keeps_multiplicities() -> None:
    plan = SemiJoin(scan("r", "a", "b"), (Col("r.a"),), scan("s", "a"))
    relations = given(r=[(None, 1), (None, 1), (1, 1), (2, 1)], s=[(None,), (None,), (1,)])
    assert result(plan, relations) == SignedBag([((None, 1), 2), ((1, 1), 1)])


def test_a_semi_join_matches_a_computed_nan() -> None:
    difference = Output(Column("k", "double"), Call("-", (Col("s.a"), Col("s.a"))))
    plan = SemiJoin(scan("r", "a"), (Col("r.a"),), Project(scan("s", "a"), (difference,)))
    assert result(plan, given(r=[(NAN,), (0.0,)], s=[(float("inf"),)])) == SignedBag.of([(NAN,)])


def test_a_summary_is_merged_with_the_stored_rows_of_its_groups() -> None:
    partials = (Partial(Column("m", "bigint"), "max", Col("r.a")), count())
    columns = bigints("k", "m", COUNT)
    merged = MergeSummary(Scan(Backing("v"), "", columns), Scan(Change("summary"), "", columns), ("k",), partials)
    stored = [(1, 5, 1), (2, 5, 1), (3, None, 1), (4, 4, 2)]
    relations = given(v=stored, summary=[(1, 7, 1), (2, None, 1), (3, 1, 1), (None, 1, 1), (5, None, 0)])
    assert result(merged, relations) == SignedBag(
        [
            ((1, 5, 1), -1),
            ((1, 7, 2), 1),
            ((2, 5, 1), -1),
            ((2, 5, 2), 1),
            ((3, None, 1), -1),
            ((3, 1, 2), 1),
            ((None, 1, 1), 1),
        ]
    )
    with pytest.raises(NegativeCount, match=r"group \(1,\) would have -1 rows"):
        result(merged, given(v=stored, summary=[(1, None, -2)]))


# Plans that make no sense are refused where they are built.


def test_a_column_that_does_not_exist_is_named_with_those_that_do() -> None:
    with pytest.raises(ValueError, match=r"filter reads r\.z; its input has r\.a, r\.b"):
        Filter(scan("r", "a", "b"), Call("is null", (Col("r.z"),)))
    with pytest.raises(ValueError, match=r"join condition reads s\.z"):
        Join((scan("r", "a"), scan("s", "a")), (equality("r.a", "s.z"),))


def test_two_inputs_of_a_join_need_distinct_columns() -> None:
    with pytest.raises(ValueError, match=r"two inputs of a join have a column 'r\.a'"):
        Join((scan("r", "a"), scan("r", "a")), ())


def test_inputs_of_a_union_need_the_same_number_of_columns() -> None:
    with pytest.raises(ValueError, match=r"\[1, 2\] columns"):
        UnionAll((scan("r", "a"), scan("s", "a", "b")))
