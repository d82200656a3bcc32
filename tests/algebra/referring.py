"""Random tables that refer to each other, views along their foreign keys, and changes that keep the keys or break them.

The tables have keys of one and of two columns, a key that refers to its own table, chains, two keys to one table, and
NULLs in foreign keys and elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from random import Random

from hypothesis import strategies as st

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.block import Block
from strandline.algebra.constraints import ForeignKey, NotNull
from strandline.algebra.plan import COUNT, At, Exists, Filter, Join, OuterJoin, Output, Partial, Plan, Project, Scan
from strandline.algebra.scalar import Call, Col, Lit, Scalar
from strandline.algebra.schema import Column, Schema, names
from tests.algebra.views import bigints

State = Mapping[str, SignedBag]

FIELDS: Mapping[str, Schema] = {
    "customers": bigints("k", "x"),
    "orders": bigints("k", "c", "x"),
    "lines": bigints("o", "o2", "c", "x"),
    "staff": bigints("k", "boss", "x"),
    "places": bigints("k", "j", "x"),
    "visits": bigints("k", "j", "x"),
}
KEYS = {"customers": 1, "orders": 1, "staff": 1, "places": 2}
"""How many of the first columns are the key."""
FOREIGN_KEYS = (
    ForeignKey("orders", ("c",), "customers", ("k",)),
    ForeignKey("lines", ("o",), "orders", ("k",)),
    ForeignKey("lines", ("o2",), "orders", ("k",)),
    ForeignKey("lines", ("c",), "customers", ("k",)),
    ForeignKey("staff", ("boss",), "staff", ("k",)),
    ForeignKey("visits", ("k", "j"), "places", ("k", "j")),
)
NOT_NULL = (NotNull("lines", "o"), NotNull("visits", "k"), NotNull("visits", "j"))
"""Declared in some histories, and then true."""


@dataclass(frozen=True)
class Case:
    """A view, the tables at first, and what happens to them."""

    block: Block
    states: tuple[State, ...]
    not_null: tuple[NotNull, ...]


@st.composite
def cases(draw: st.DrawFn, *, keeping: bool = True) -> Case:
    """A view and two to four states of its tables; without *keeping* the last may break what is declared."""
    random = Random(draw(st.integers(0, 2**48)))
    not_null = NOT_NULL if random.random() < 0.5 else ()
    block = _view(random)
    states = [_kept(random, _changed(random, {name: SignedBag() for name in FIELDS}), not_null)]
    for _ in range(random.randint(1, 3)):
        states.append(_kept(random, _changed(random, states[-1]), not_null))
    if not keeping:
        states[-1] = _changed(random, states[-2], once=random.random() < 0.5)
    return Case(block, tuple(states), not_null)


# Tables


def _changed(random: Random, state: State, *, once: bool = False) -> dict[str, SignedBag]:
    """Rows deleted, changed in a column and inserted anywhere; with *once*, in one table only."""
    touched = [name for name in FIELDS if random.random() < 0.5]
    if once:
        touched = [random.choice(list(FIELDS))]
    found = dict(state)
    for name in touched:
        rows = [row for row in state[name].rows() if random.random() < 0.8]
        rows = [_with_another_value(random, row) if random.random() < 0.3 else row for row in rows]
        width = len(FIELDS[name])
        rows += [tuple(random.choice((0, 1, 2, 3, None)) for _ in range(width)) for _ in range(random.randint(0, 3))]
        found[name] = SignedBag.of(rows)
    return found


def _with_another_value(random: Random, row: Row) -> Row:
    place = random.choice([len(row) - 1, len(row) - 1, random.randrange(len(row))])
    return (*row[:place], random.choice((0, 1, 2, None)), *row[place + 1 :])


def _kept(random: Random, state: State, not_null: tuple[NotNull, ...]) -> dict[str, SignedBag]:
    """*state* with just those rows that constraints allow, or with NULL for what refers to nothing."""
    found = dict(state)
    for name, width in KEYS.items():
        by_key = {row[:width]: row for row in found[name].rows() if None not in row[:width]}
        found[name] = SignedBag.of(by_key.values())
    while True:
        before = dict(found)
        for key in FOREIGN_KEYS:
            found[key.table] = SignedBag.of(
                row for given in found[key.table].rows() if (row := _referring(random, key, given, found)) is not None
            )
        for constraint in not_null:
            place = names(FIELDS[constraint.table]).index(constraint.column)
            rows = [row for row in found[constraint.table].rows() if row[place] is not None]
            found[constraint.table] = SignedBag.of(rows)
        if found == before:
            return found


def _referring(random: Random, key: ForeignKey, row: Row, state: State) -> Row | None:
    places = [names(FIELDS[key.table]).index(column) for column in key.columns]
    wanted = tuple(row[place] for place in places)
    if None in wanted or any(other[: len(wanted)] == wanted for other in state[key.references]):
        return row
    if random.random() < 0.5:
        return None
    return tuple(None if place == places[0] else value for place, value in enumerate(row))


# Views


def _view(random: Random) -> Block:
    body = _body(random)
    columns = names(body.columns)
    shown = tuple(Output(Column(f"c{i}", "bigint"), Col(name)) for i, name in enumerate(columns))
    if random.random() < 0.4:
        return Block("v", Project(body, shown))
    keys = tuple(random.sample(shown, random.randint(0, 2)))
    partials = [Partial(Column(COUNT, "bigint", False), "count")]
    for kind in random.sample(("sum", "min", "max"), random.randint(0, 2)):
        partials.append(Partial(Column(kind, "bigint"), kind, Col(random.choice(columns))))  # type: ignore[arg-type]
    return Block("v", body, keys, tuple(partials))


def _body(random: Random) -> Plan:
    """Tables joined along foreign keys, some of them by outer, semi and anti joins, and some other conditions."""
    first = random.choice([key.table for key in FOREIGN_KEYS])
    scans = [_scan(first, 1)]
    plan: Plan = _input(random, scans[0])
    for number in range(2, random.randint(3, 5)):
        near, key, other = _step(random, scans, number)
        pairs = tuple(_pair(key, near, other))
        if random.random() < 0.1:
            pairs = pairs[:1]
        right = _input(random, other) if random.random() < 0.6 else other
        match random.choice(("inner", "inner", "inner", "flat", "left", "semi", "anti")):
            case "left":
                plan = OuterJoin(plan, right, pairs)
            case "semi" | "anti" as kind:
                plan = Exists(plan, right, pairs, negated=kind == "anti")
                continue
            case "flat" if isinstance(plan, Join):
                plan = Join((*plan.inputs, right), (*plan.conditions, *(Call("=", pair) for pair in pairs)))
            case _:
                inputs = (plan, right) if random.random() < 0.5 else (right, plan)
                plan = Join(inputs, tuple(Call("=", pair) for pair in pairs))
        scans.append(other)
    return Filter(plan, _condition(random, plan)) if random.random() < 0.3 else plan


def _step(random: Random, scans: list[Scan], number: int) -> tuple[Scan, ForeignKey, Scan]:
    """A scan that is there, a foreign key from it or to it, and a scan of the table at the other end."""
    near = random.choice(scans)
    table = _table(near)
    key = random.choice([key for key in FOREIGN_KEYS if table in (key.table, key.references)])
    forth = key.table == table and (key.references != table or random.random() < 0.5)
    return near, key, _scan(key.references if forth else key.table, number, outward=forth)


def _pair(key: ForeignKey, near: Scan, other: Scan) -> list[tuple[Scalar, Scalar]]:
    forth = other.alias.endswith("to")
    ours, theirs = (key.columns, key.key) if forth else (key.key, key.columns)
    return [(Col(f"{near.alias}.{a}"), Col(f"{other.alias}.{b}")) for a, b in zip(ours, theirs, strict=True)]


def _scan(table: str, number: int, *, outward: bool = False) -> Scan:
    return Scan(At(table), f"x{number}{'to' if outward else 'from'}", FIELDS[table])


def _table(scan: Scan) -> str:
    assert isinstance(scan.operand, At)
    return scan.operand.relation


def _input(random: Random, scan: Scan) -> Plan:
    if random.random() < 0.3:
        return Filter(scan, _condition(random, scan))
    if random.random() < 0.2:
        return Project(scan, tuple(Output(replace(c, name=c.name), Col(c.name)) for c in scan.columns))
    return scan


def _condition(random: Random, plan: Plan) -> Scalar:
    column = Col(random.choice(names(plan.columns)))
    if random.random() < 0.2:
        return Call("is null", (column,))
    return Call(random.choice(("=", "<", ">=", "<>")), (column, Lit(random.choice((0, 1, 2)))))
