"""Laws of the signed bag."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.algebra.bag import Row, SignedBag, SignedRow, canonical, negate, product, project, select

rows = st.tuples(st.sampled_from((0, 1, 2, None)), st.sampled_from(("x", "y", None)))
signed_rows = st.lists(st.tuples(rows, st.integers(-2, 2)), max_size=8)
bags = signed_rows.map(SignedBag)

laws = settings(max_examples=80, deadline=None, derandomize=True)


def net(signed: list[SignedRow]) -> list[SignedRow]:
    return list(SignedBag(signed).items())


@laws
@given(bags, bags, bags)
def test_addition_makes_an_abelian_group(a: SignedBag, b: SignedBag, c: SignedBag) -> None:
    assert (a + b) + c == a + (b + c)
    assert a + b == b + a
    assert a + SignedBag() == a
    assert a + -a == SignedBag()
    assert a - b == a + -b
    assert -(a + b) == -a + -b


@laws
@given(signed_rows)
def test_net_effect_adds_multiplicities_and_drops_zeros(signed: list[SignedRow]) -> None:
    bag = SignedBag(signed)
    for row in {row for row, _ in signed}:
        assert bag.get(row, 0) == sum(count for other, count in signed if other == row)
    assert 0 not in bag.values()
    assert SignedBag(net(signed)) == bag


@laws
@given(signed_rows)
def test_net_effect_commutes_with_selection(signed: list[SignedRow]) -> None:
    def condition(row: Row) -> bool:
        return row[0] in (1, None)

    assert SignedBag(select(signed, condition)) == SignedBag(select(net(signed), condition))


@laws
@given(signed_rows)
def test_net_effect_commutes_with_projection(signed: list[SignedRow]) -> None:
    def output(row: Row) -> Row:
        return (row[1],)

    assert SignedBag(project(signed, output)) == SignedBag(project(net(signed), output))


@laws
@given(signed_rows, signed_rows)
def test_net_effect_commutes_with_union(left: list[SignedRow], right: list[SignedRow]) -> None:
    assert SignedBag(left + right) == SignedBag(net(left) + net(right)) == SignedBag(left) + SignedBag(right)


@laws
@given(signed_rows, signed_rows)
def test_net_effect_commutes_with_product(left: list[SignedRow], right: list[SignedRow]) -> None:
    assert SignedBag(product(left, right)) == SignedBag(product(net(left), net(right)))


@laws
@given(signed_rows)
def test_net_effect_commutes_with_negation(signed: list[SignedRow]) -> None:
    assert SignedBag(negate(signed)) == -SignedBag(signed)


@laws
@given(signed_rows, signed_rows, signed_rows)
def test_product_is_bilinear(left: list[SignedRow], right: list[SignedRow], more: list[SignedRow]) -> None:
    def times(a: list[SignedRow], b: list[SignedRow]) -> SignedBag:
        return SignedBag(product(a, b))

    assert times(left + more, right) == times(left, right) + times(more, right)
    assert times(left, right + more) == times(left, right) + times(left, more)
    assert times(negate(left), right) == -times(left, right) == times(left, negate(right))


@laws
@given(bags)
def test_a_bag_is_its_insertions_without_its_deletions(bag: SignedBag) -> None:
    assert bag == bag.inserted - bag.deleted
    assert all(count > 0 for part in (bag.inserted, bag.deleted) for count in part.values())


@laws
@given(st.lists(rows))
def test_an_ordinary_bag_gives_back_its_rows(listed: list[Row]) -> None:
    bag = SignedBag.of(listed)
    assert len(bag.rows()) == len(listed)
    assert SignedBag.of(bag.rows()) == bag
    assert hash(SignedBag.of(reversed(listed))) == hash(bag)


def test_a_delta_with_deletions_has_no_list_of_rows() -> None:
    with pytest.raises(ValueError, match="negative"):
        SignedBag([((1,), -1)]).rows()


def test_every_nan_is_one_value() -> None:
    bag = SignedBag.of([(float("nan"), 1), (float("inf") - float("inf"), 1)])
    assert bag == SignedBag([((float("nan"), 1), 2)])
    assert hash(bag) == hash(SignedBag([((float("nan"), 1), 2)]))
    assert bag[(float("nan"), 1)] == 2
    assert bag - SignedBag([((float("nan"), 1), 2)]) == SignedBag()


def test_negative_zero_is_zero() -> None:
    bag = SignedBag.of([(-0.0,), (0.0,)])
    assert list(bag.items()) == [((0.0,), 2)]
    assert str(canonical(-0.0)) == "0.0"
    assert str(next(iter(SignedBag.of([(-0.0,)])))) == "(0.0,)"


def test_other_values_are_their_own_canonical_form() -> None:
    for value in (None, 0, 1.5, -1.5, "", "x", True, float("inf")):
        assert canonical(value) is value
