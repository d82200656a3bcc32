"""Base views cut out of blocks: what they hold, and that nothing is lost by it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import (
    At,
    Bag,
    Filter,
    Join,
    Operand,
    OuterJoin,
    Output,
    Partial,
    Plan,
    Project,
    Scan,
    map_scans,
)
from strandline.algebra.scalar import Call, Col, Lit, Text, equality
from strandline.algebra.schema import Column, Schema, names
from strandline.integrate.base_views import BASE_PREFIX, Home, cut, view_of
from strandline.integrate.workbench import plain

FIELDS = {
    "pg.a": ("id", "x", "y"),
    "pg.b": ("id", "x"),
    "far.c": ("id", "x", "z"),
    "lake.d": ("id", "x"),
    "copied.e": ("id", "x"),
}


def schema(*names_: str) -> Schema:
    return tuple(Column(name, "int") for name in names_)


def scan(relation: str, alias: str, *fields: str) -> Scan:
    return Scan(At(relation), alias, schema(*(fields or FIELDS[relation])))


def home(relation: str) -> Home | None:
    return {"pg": "asked", "far": "asked", "lake": "versioned"}.get(relation.split(".")[0])  # type: ignore[return-value]


def key(relation: str) -> Schema:
    return schema("id")


def no_key(relation: str) -> Schema:
    return ()


def shown(*columns: str) -> tuple[Output, ...]:
    return tuple(Output(Column(name.replace(".", "_"), "int"), Col(name)) for name in columns)


def block(body: Plan) -> Block:
    return Block("v", body)


def bases(blocks: tuple[Block, ...]) -> list[Block]:
    return [each for each in blocks if each.node.startswith(BASE_PREFIX)]


def test_columns_that_cannot_be_held_in_memory_are_joined_above() -> None:
    odd = Scan(At("lake.d"), "d", (Column("id", "int"), Column("x", "struct<a:int>")))
    joined = Join((scan("pg.a", "a"), odd), (equality("a.x", "d.id"),))
    base, own = cut([block(Project(joined, shown("a.y", "d.x")))], home, key)
    assert base.inputs == ("pg.a",)
    assert own.inputs == (base.node, "lake.d")


def test_a_join_of_several_sources_and_a_lake_is_one_base_view() -> None:
    joined = Join(
        (scan("pg.a", "a"), scan("far.c", "c"), scan("lake.d", "d")), (equality("a.x", "c.x"), equality("c.z", "d.id"))
    )
    base, own = cut([block(Project(joined, shown("a.y", "d.x")))], home, key)
    assert base.inputs == ("pg.a", "far.c", "lake.d")
    assert names(base.stored) == ("t1_id", "t1_y", "t2_id", "t3_id", "t3_x"), "keys, and what is read above"
    assert own.inputs == (base.node,)
    assert names(own.stored) == ("a_y", "d_x")
    view = view_of(base, lambda relation: relation.split(".")[0])
    assert view.shows_all_keys
    assert view.sources == ("pg", "far", "lake")


def test_without_keys_only_what_is_read_is_stored() -> None:
    joined = Join((scan("pg.a", "a"), scan("pg.b", "b")), (equality("a.id", "b.id"),))
    base, _ = cut([block(Project(joined, shown("a.y")))], home, no_key)
    assert names(base.stored) == ("t1_y",)
    assert base.key == ()


def test_what_the_warehouse_holds_stays_outside() -> None:
    """Two tables that only a copied one ties together are two base views; their product is never stored."""
    joined = Join(
        (scan("pg.a", "a"), scan("copied.e", "e"), scan("far.c", "c")),
        (equality("a.x", "e.id"), equality("e.x", "c.x")),
    )
    found = cut([block(Project(joined, shown("a.y", "c.z")))], home, key)
    assert [base.inputs for base in bases(found)] == [("pg.a",), ("far.c",)]
    assert found[-1].inputs == (bases(found)[0].node, bases(found)[1].node, "copied.e")


def test_a_lake_alone_is_left_as_it_is() -> None:
    joined = block(
        Project(Join((scan("lake.d", "d"), scan("copied.e", "e")), (equality("d.id", "e.id"),)), shown("d.x"))
    )
    assert cut([joined], home, key) == (joined,)


def test_names_do_not_depend_on_aliases_and_columns_that_are_equated_are_found() -> None:
    def one(first: str, second: str) -> Block:
        on = Text((Col(f"{first}.x"), " = ", Col(f"{second}.x")), equality(f"{first}.x", f"{second}.x"))
        joined = Join((scan("pg.a", first), scan("far.c", second)), (on,))
        return bases(cut([block(Project(joined, shown(f"{first}.y")))], home, no_key))[0]

    assert one("a", "c") == one("p", "q")
    assert equality("t1.x", "t2.x") in view_of(one("a", "c"), lambda r: r).conditions


def test_a_suffix_tells_base_views_apart_that_are_maintained_otherwise() -> None:
    body = Project(scan("pg.a", "a"), shown("a.y"))
    assert cut([block(body)], home, key)[0].node != cut([block(body)], home, key, " sweep")[0].node


def test_only_comparisons_of_one_kind_are_evaluated_in_memory() -> None:
    fields = (Column("n", "int"), Column("m", "decimal(4,1)"), Column("s", "string"), Column("f", "double"))
    rows = Scan(Bag("b"), "", fields)
    for condition, expected in (
        (Call("=", (Col("n"), Col("m"))), True),
        (Call("<", (Col("n"), Lit(3))), True),
        (Call("=", (Col("n"), Col("s"))), False),
        (Call("=", (Col("m"), Col("f"))), False),
        (Call("not", (Call("is null", (Col("s"),)),)), True),
        (Call(">", (Call("+", (Col("n"), Lit(1))), Lit(3))), False),
        (Text(("upper(", Col("s"), ") = 'A'")), False),
    ):
        assert plain(Filter(rows, condition)) is expected, condition


@pytest.mark.parametrize("seed", range(40))
def test_cutting_changes_nothing_that_a_view_shows(seed: int) -> None:
    """Random joins, outer joins and groups over random bags: the blocks compute what the uncut one does."""
    rng = random.Random(seed)
    relations = [rng.choice(list(FIELDS)) for _ in range(rng.randrange(1, 5))]
    inputs = [scan(relation, f"r{number}") for number, relation in enumerate(relations)]
    columns = [column.name for each in inputs for column in each.columns]
    conditions = tuple(
        equality(rng.choice(names(inputs[n].columns)), rng.choice(names(inputs[rng.randrange(n)].columns)))
        for n in range(1, len(inputs))
        if rng.random() < 0.8
    )
    body: Plan = Join(tuple(inputs), conditions)
    if rng.random() < 0.4:
        body = Filter(body, Call(">", (Col(rng.choice(columns)), Lit(1))))
    if rng.random() < 0.3:
        other = scan(rng.choice(list(FIELDS)), "o")
        body = OuterJoin(body, other, ((Col(columns[0]), Col("o.id")),), (), full=False)
    body = Project(body, shown(*rng.sample(columns, rng.randrange(1, len(columns) + 1))))
    whole = Block("v", body)
    if rng.random() < 0.4:
        first = body.columns[0]
        whole = Block("v", body, (Output(first, Col(first.name)),), (Partial(Column("__count", "bigint"), "count"),))
    rows = {
        relation: SignedBag([(tuple(rng.randrange(3) for _ in fields), 1) for _ in range(rng.randrange(6))])
        for relation, fields in FIELDS.items()
    }

    def held(operand: Operand, fields: Schema) -> SignedBag:
        assert isinstance(operand, At)
        own = known[operand.relation]
        places = [names(own.columns).index(field.name) for field in fields]
        return SignedBag((tuple(row[place] for place in places), times) for row, times in own.rows.items())

    known = {relation: Known(schema(*FIELDS[relation]), found) for relation, found in rows.items()}
    expected = value(whole, held)
    for each in cut([whole], home, rng.choice((key, no_key))):
        known[each.node] = Known(each.stored, value(each, held))
        assert not each.node.startswith(BASE_PREFIX) or home(each.inputs[0]) is not None
    assert known["v"].rows == expected


@dataclass(frozen=True)
class Known:
    """Rows of a relation under its columns."""

    columns: Schema
    rows: SignedBag


def value(each: Block, held: Callable[[Operand, Schema], SignedBag]) -> SignedBag:
    """The contents of a block; a scan reads some of the columns of its relation, in its own order."""
    numbered: dict[Operand, SignedBag] = {}

    def read(found: Scan) -> Scan:
        bag = Bag(str(len(numbered)))
        numbered[bag] = held(found.operand, found.fields)
        return Scan(bag, found.alias, found.fields)

    return evaluate(map_scans(each.contents, read), lambda operand: numbered[operand])
