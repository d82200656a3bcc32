"""Plans whose inputs are replaced."""

from __future__ import annotations

from strandline.algebra.plan import At, Filter, Join, Net, Plan, Scan, SemiJoin, UnionAll, map_children, map_scans
from strandline.algebra.scalar import Col, Lit
from strandline.algebra.schema import Column

R = Scan(At("r"), "r", (Column("a", "int"),))
S = Scan(At("s"), "s", (Column("b", "int"),))
KEYS = Scan(At("k"), "k", (Column("a", "int"),))
PLANS: list[Plan] = [
    R,
    Filter(R, Lit(True)),
    Join((R, S), ()),
    UnionAll((R, R)),
    SemiJoin(Join((R, S), ()), (Col("r.a"),), KEYS),
    Net(Filter(Join((R, S), ()), Lit(True))),
]


def test_a_plan_whose_inputs_stay_is_the_very_same() -> None:
    for plan in PLANS:
        assert map_children(plan, lambda child: child) is plan
        assert map_scans(plan, lambda scan: scan) is plan


def test_where_one_input_is_another_the_others_stay_the_very_same() -> None:
    later = Scan(At("s", 7), "s", S.fields)
    join = Join((Filter(R, Lit(True)), S), ())
    found = map_scans(join, lambda scan: later if scan is S else scan)
    assert found == Join((Filter(R, Lit(True)), later), ())
    assert isinstance(found, Join)
    assert found.inputs[0] is join.inputs[0]
