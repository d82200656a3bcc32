"""Columns that nobody reads are not scanned, and the result is the same without them."""

from __future__ import annotations

import os
from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, delta_of
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import (
    COUNT,
    At,
    Bag,
    Filter,
    Join,
    Operand,
    Output,
    Partial,
    Plan,
    Project,
    Scan,
    UnionAll,
    map_scans,
    scans,
)
from strandline.algebra.prune import pruned
from strandline.algebra.scalar import Call, Col, Lit, Text
from strandline.algebra.schema import Column, names
from tests.algebra.views import bigints, blocks, databases

EXAMPLES = int(os.environ.get("STRANDLINE_EXAMPLES", "150"))

A = Scan(At("r"), "x", bigints("a", "b", "c"), ("a",))
B = Scan(At("s"), "y", bigints("a", "b", "c"), ("a", "b"))
ROWS = Partial(Column(COUNT, "bigint"), "count")


def read(block: Block) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    """The relations that *block* scans, with the fields and the key of each."""
    return [(str(scan.operand), names(scan.fields), scan.key) for scan in scans(pruned(block).body)]


def output(name: str, column: str) -> Output:
    return Output(Column(name, "bigint"), Col(column))


def test_what_is_projected_filtered_and_joined_by_is_kept() -> None:
    joined = Join((Filter(A, Call(">", (Col("x.b"), Lit(1)))), B), (Call("=", (Col("x.a"), Col("y.a"))),))
    assert read(Block("v", Project(joined, (output("o", "y.c"),)))) == [
        ("r@current", ("a", "b"), ("a",)),
        ("s@current", ("a", "c"), ()),
    ]


def test_a_block_without_grouping_shows_all_that_it_has() -> None:
    assert read(Block("v", A)) == [("r@current", ("a", "b", "c"), ("a",))]
    assert read(Block("v", A, outputs=(output("o", "x.a"),))) == [("r@current", ("a", "b", "c"), ("a",))]


def test_keys_arguments_and_filters_of_aggregates_are_kept() -> None:
    argument = Text(("abs(", Col("x.b"), ")"))
    total = Partial(Column("t", "bigint"), "sum", argument, Call("is null", (Col("x.c"),)))
    assert read(Block("v", A, (output("k", "x.a"),), (ROWS, total))) == [("r@current", ("a", "b", "c"), ("a",))]
    assert read(Block("v", A, (output("k", "x.c"),), (ROWS,))) == [("r@current", ("c",), ())]


def test_where_nothing_is_read_one_column_stays() -> None:
    assert read(Block("v", A, (), (ROWS,))) == [("r@current", ("a",), ("a",))]
    assert read(Block("v", Join((A, B), ()), (), (ROWS,))) == [("r@current", ("a",), ("a",)), ("s@current", ("a",), ())]


def test_columns_of_derived_tables_that_nobody_reads_are_dropped_with_what_they_read() -> None:
    derived = Project(A, (output("d.one", "x.a"), output("d.two", "x.b"), output("d.three", "x.c")))
    block = Block("v", derived, (output("k", "d.two"),), (ROWS,))
    assert read(block) == [("r@current", ("b",), ())]
    assert names(pruned(block).body.columns) == ("d.two",)


def test_the_parts_of_a_union_are_cut_alike_though_their_names_differ() -> None:
    union = UnionAll(
        (Project(A, (output("p", "x.a"), output("q", "x.b"))), Project(B, (output("q", "y.b"), output("p", "y.c"))))
    )
    block = Block("v", union, (output("k", "q"),), (ROWS,))
    assert read(block) == [("r@current", ("b",), ()), ("s@current", ("c",), ())]


def test_each_scan_of_a_relation_keeps_its_own_columns() -> None:
    other = replace(A, alias="z")
    joined = Join((A, other), (Call("=", (Col("x.a"), Col("z.b"))),))
    assert read(Block("v", Project(joined, (output("o", "z.c"),)))) == [
        ("r@current", ("a",), ("a",)),
        ("r@current", ("b", "c"), ()),
    ]


@settings(
    max_examples=max(1, EXAMPLES),
    deadline=None,
    derandomize="STRANDLINE_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_the_result_is_the_same(data: st.DataObject) -> None:
    leaves, rows = data.draw(databases())
    block = data.draw(blocks(leaves))
    less = pruned(block)
    fields = {leaf.name: names(leaf.fields) for leaf in leaves}
    assert evaluated(less.contents, rows, fields) == evaluated(block.contents, rows, fields)
    assert (less.stored, less.visible, less.inputs) == (block.stored, block.visible, block.inputs)
    assert pruned(less) == less
    for before, after in zip(scans(block.body), scans(less.body), strict=True):
        assert set(after.fields) <= set(before.fields) and after.fields
        assert after.key in ((), before.key) and set(after.key) <= set(names(after.fields))
    strategies = [delta_of(b, b.inputs, insert_only=False) for b in (block, less)]
    assert strategies[0] and strategies[1] and strategies[0].operators == strategies[1].operators


def evaluated(plan: Plan, rows: dict[str, SignedBag], fields: dict[str, tuple[str, ...]]) -> SignedBag:
    """*plan* over *rows*, of which each scan sees only its own fields."""
    seen: dict[str, SignedBag] = {}

    def numbered(scan: Scan) -> Scan:
        assert isinstance(scan.operand, At)
        relation = scan.operand.relation
        places = [fields[relation].index(name) for name in names(scan.fields)]
        bag = Bag(str(len(seen)))
        seen[bag.name] = SignedBag((tuple(row[p] for p in places), count) for row, count in rows[relation].items())
        return replace(scan, operand=bag)

    def shown(operand: Operand) -> SignedBag:
        assert isinstance(operand, Bag)
        return seen[operand.name]

    return evaluate(map_scans(plan, numbered), shown)
