"""What a block stores, and what a reader sees of it."""

from __future__ import annotations

from dataclasses import replace

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block
from strandline.algebra.plan import COUNT, At, Join, Output, Partial, Project, Scan, UnionAll
from strandline.algebra.scalar import Call, Col, Lit, equality
from strandline.algebra.schema import Column, names
from tests.algebra.replay import computed, read, refreshed
from tests.algebra.views import bigints

R = Scan(At("r"), "r", bigints("a", "b"))
S = Scan(At("s"), "s", bigints("a", "b"), ("a",))
COUNT_OF_ROWS = Partial(Column(COUNT, "bigint", False), "count")
SUM = Partial(Column("s", "bigint"), "sum", Col("r.b"))


def bigint(name: str, column: str) -> Output:
    return Output(Column(name, "bigint"), Col(column))


GROUPED = Block(
    "v",
    R,
    keys=(bigint("k", "r.a"),),
    partials=(COUNT_OF_ROWS, SUM),
    having=Call(">", (Col(COUNT), Lit(1))),
    outputs=(bigint("total", "s"), bigint("key", "k")),
)
ROWS = SignedBag.of([(1, 10), (1, 20), (2, 5), (None, 7), (None, 8)])


def test_a_grouped_block_stores_keys_and_partials_and_shows_its_outputs() -> None:
    contents = computed([GROUPED], {"r": ROWS})
    assert names(GROUPED.stored) == ("k", COUNT, "s")
    assert contents.stored["v"] == SignedBag.of([(1, 2, 30), (2, 1, 5), (None, 2, 15)])
    assert names(GROUPED.visible) == ("total", "key")
    assert contents.visible["v"] == SignedBag.of([(30, 1), (15, None)])


def test_having_is_a_filter_over_the_maintained_aggregate() -> None:
    before = computed([GROUPED], {"r": ROWS})
    done = refreshed([GROUPED], before, {"r": SignedBag([((2, 6), 1), ((1, 10), -1)])})
    assert done.stored_deltas["v"] == SignedBag([((2, 1, 5), -1), ((2, 2, 11), 1), ((1, 2, 30), -1), ((1, 1, 20), 1)])
    assert done.visible_deltas["v"] == SignedBag([((11, 2), 1), ((30, 1), -1)])


def test_reading_takes_a_delta_of_stored_rows_to_one_of_visible_rows() -> None:
    delta = SignedBag([((1, 2, 30), -1), ((1, 3, 31), 1), ((2, 1, 5), -1)])
    assert read(GROUPED, delta) == SignedBag([((30, 1), -1), ((31, 1), 1)])


def test_without_outputs_stored_columns_are_visible() -> None:
    block = replace(GROUPED, outputs=())
    assert block.visible == block.stored
    assert computed([block], {"r": ROWS}).visible["v"] == SignedBag.of([(1, 2, 30), (None, 2, 15)])


def test_a_block_that_is_not_grouped_stores_duplicates_as_rows() -> None:
    block = Block("v", Project(R, (bigint("a", "r.a"),)))
    contents = computed([block], {"r": ROWS})
    assert contents.stored["v"] == contents.visible["v"] == SignedBag([((1,), 2), ((2,), 1), ((None,), 2)])
    some = replace(block, having=Call("is not null", (Col("a"),)), outputs=(bigint("x", "a"),))
    assert names(some.visible) == ("x",)
    assert computed([some], {"r": ROWS}).visible["v"] == SignedBag([((1,), 2), ((2,), 1)])


def test_distinct_is_grouping_by_all_columns_with_a_count() -> None:
    keys = (bigint("a", "r.a"),)
    block = Block("v", R, keys, (COUNT_OF_ROWS,), outputs=(bigint("a", "a"),))
    before = computed([block], {"r": ROWS})
    assert before.visible["v"] == SignedBag.of([(1,), (2,), (None,)])
    one_copy = refreshed([block], before, {"r": SignedBag([((1, 10), -1)])})
    assert one_copy.visible_deltas["v"] == SignedBag()
    both = refreshed([block], before, {"r": SignedBag([((1, 10), -1), ((1, 20), -1)])})
    assert both.visible_deltas["v"] == SignedBag([((1,), -1)])


def test_inputs_are_named_once_in_order_of_first_use() -> None:
    again = Scan(At("r"), "q", bigints("a", "b"))
    assert Block("v", Join((S, R, again), (equality("s.a", "r.a"),))).inputs == ("s", "r")
    assert Block("v", UnionAll((R, R))).inputs == ("r",)


def test_the_group_keys_are_the_key() -> None:
    assert GROUPED.key == ("k",)
    assert GROUPED.visible_key == ("key",)
    assert replace(GROUPED, outputs=(bigint("total", "s"),)).visible_key == ()


def test_a_block_that_is_not_grouped_has_a_key_if_all_its_inputs_do() -> None:
    other = Scan(At("s"), "q", bigints("a", "b"), ("a",))
    both = Join((S, other), ())
    assert Block("v", both).key == ("s.a", "q.a")
    assert Block("v", Project(both, (bigint("x", "q.a"), bigint("y", "s.a")))).key == ("x", "y")
    assert Block("v", Join((S, R), ())).key == ()
