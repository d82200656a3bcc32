"""Which deltas inside a body are stored before its own, by what is known of tables and changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from strandline.algebra.block import Block, BlockDelta
from strandline.algebra.constraints import NOTHING
from strandline.algebra.inner import Inner
from strandline.algebra.near import Limits, Origin, Ranges, near
from strandline.algebra.ordered import Ordered
from strandline.algebra.plan import At, Change, Exists, Filter, Join, OuterJoin, Output, Plan, Scan
from strandline.algebra.scalar import Call, Col, Lit
from strandline.engine.seeking import LEAST_ROWS
from strandline.propagate.inner_deltas import LEAST_KEYS, Prepared, prepared
from tests.algebra.views import Relation, bigints

CUSTOMERS = Relation("customers", bigints("c", "balance"))
AVERAGE = Relation("average", bigints("a"))
ORDERS = Relation("orders", bigints("o", "c"))
RETURNS = Relation("returns", bigints("r", "c"))

RICH = Filter(Join((CUSTOMERS.scan("c"), AVERAGE.scan("a")), ()), Call(">", (Col("c.balance"), Col("a.a"))))
IDLE = Exists(RICH, ORDERS.scan("o"), ((Col("c.c"), Col("o.c")),), negated=True)
MUCH = LEAST_ROWS + 1


@dataclass
class Told:
    """Tables of so many rows, in one file each, and deltas of so many rows; those in *lying* lie near each other."""

    rows: Mapping[str, int]
    changed: dict[str, int]
    lying: tuple[str, ...] = ()
    stored: list[str] = field(default_factory=list)
    few: int = 1

    def near(self, plan: Plan) -> Plan:
        return near(plan, self._ranges)

    def _ranges(self, scan: Scan, field: str) -> Ranges:
        assert isinstance(scan.operand, Change)
        pairs = ((Lit(1), Lit(9)),) if scan.operand.relation in self.lying else ()
        return Ranges("bigint", pairs, among=(Origin(scan, field),))

    def rows_within(self, scan: Scan, limits: Limits) -> int:
        assert isinstance(scan.operand, At)
        return 10 if any(ranges.pairs for ranges in limits.values()) else self.rows.get(scan.operand.relation, 0)

    def changed_rows(self, scan: Scan) -> int | None:
        return self.changed[scan.operand.relation] if isinstance(scan.operand, Change) else None

    def taken(self, inner: Inner, delta: BlockDelta) -> Inner:
        self.stored.append(inner.name)
        self.changed[inner.name] = self.few
        return inner


def stored(body: Plan, told: Told) -> list[Plan]:
    return [inner.plan for inner in prepared(Block("v", body), list(told.changed), told, NOTHING).inner]


def test_a_computed_delta_is_stored_before_it_meets_much() -> None:
    assert stored(IDLE, Told({"orders": MUCH}, {"average": 2})) == [RICH]
    assert stored(IDLE, Told({"orders": LEAST_ROWS}, {"average": 2})) == []
    assert stored(IDLE, Told({"orders": MUCH}, {"orders": 2})) == []


def test_keys_that_lie_near_each_other_or_are_few_are_as_good_as_stored() -> None:
    assert stored(IDLE, Told({"orders": MUCH}, {"customers": LEAST_KEYS})) == [RICH]
    assert stored(IDLE, Told({"orders": MUCH}, {"customers": LEAST_KEYS - 1})) == []
    assert stored(IDLE, Told({"orders": MUCH}, {"customers": LEAST_KEYS}, lying=("customers",))) == []


def test_a_right_input_is_stored_before_its_own_tables_are_asked_for_more() -> None:
    busy = Exists(RETURNS.scan("r"), RICH, ((Col("r.c"), Col("c.c")),))
    assert stored(busy, Told({"customers": MUCH}, {"average": 2})) == [RICH]
    assert stored(busy, Told({"returns": MUCH}, {"average": 2})) == [RICH]
    assert stored(busy, Told({}, {"average": 2})) == []


def test_each_is_known_before_the_next_is_looked_at() -> None:
    twice = OuterJoin(IDLE, RETURNS.scan("r"), ((Col("c.c"), Col("r.c")),))
    told = Told({"orders": MUCH, "returns": MUCH}, {"average": 2})
    assert stored(twice, told) == [RICH], "the keys of those without orders are among the few that are stored"
    many = Told({"orders": MUCH, "returns": MUCH}, {"average": 2}, few=LEAST_KEYS)
    assert stored(twice, many) == [RICH, IDLE]
    assert many.stored == [".inner 1", ".inner 2"]


def test_where_all_rows_are_put_in_order_nothing_is_stored() -> None:
    shown = tuple(Output(column, Col(column.name)) for column in IDLE.columns)
    section = Output(replace(IDLE.columns[0], name="section"), Col("c.c"))
    found: dict[bool, Prepared] = {}
    for divided in (False, True):
        ordered = Ordered(shown, (section,) if divided else (), order=(Col("c.c"),), limit=5)
        block = Block("v", IDLE, ordered=ordered)
        found[divided] = prepared(block, ["average"], Told({"orders": MUCH}, {"average": 2}), NOTHING)
    assert [len(each.inner) for each in found.values()] == [0, 1]
