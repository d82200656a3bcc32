"""Operators over columns of every type give the rows that Spark gives for the same plan, or leave it to Spark."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import Decimal
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.plan import (
    COUNT,
    At,
    Change,
    Exists,
    Filter,
    GroupBy,
    Join,
    Limit,
    MergeSummary,
    Negate,
    Net,
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
)
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Column, Schema, names
from strandline.columnar import evaluate as evaluating
from strandline.columnar import joining, matching
from strandline.columnar.evaluate import evaluate
from strandline.columnar.joining import Met
from strandline.columnar.rows import beside
from strandline.columnar.types import NotHere, arrow_type
from strandline.engine.session import Engine
from strandline.sql.render import SIGN, render

FIELDS: Schema = tuple(
    Column(name, kind)
    for name, kind in (
        ("k", "int"), ("n", "bigint"), ("p", "decimal(15,2)"), ("w", "decimal(32,4)"), ("s", "string"), ("d", "date"),
        ("b", "boolean"), ("f", "double"),
    )
)  # fmt: skip


def values(random: Random, kind: str) -> Any:
    """A value of a small domain; one in six is NULL."""
    if random.randrange(6) == 0:
        return None
    number = random.randrange(-2, 4)
    match kind:
        case "boolean":
            return number > 0
        case "string":
            return ["", "a", "A", "ä", "b c", "z"][number]
        case "date":
            return date(1994, 1, 1) + timedelta(days=200 * number)
        case "double":
            return number / 4
        case "int" | "bigint":
            return number
        case _:
            return Decimal(number * 125).scaleb(-2)


def rows(seed: int, count: int, fields: Schema = FIELDS) -> pa.Table:
    random = Random(seed)
    table = {f.name: pa.array([values(random, f.type) for _ in range(count)], arrow_type(f.type)) for f in fields}
    return pa.table(table)


TABLES = {
    "r": rows(1, 40),
    "t": rows(2, 30),
    "none": rows(3, 0),
    "once": rows(4, 1),
}
CHANGES = {
    name: table.append_column(SIGN, pa.array([Random(n).choice([1, -1]) for n in range(table.num_rows)], pa.int32()))
    for name, table in TABLES.items()
}


def scan(relation: str, alias: str) -> Scan:
    return Scan(At(relation, "post"), alias, FIELDS)


def change(relation: str, alias: str) -> Scan:
    return Scan(Change(relation), alias, FIELDS)


def columns(alias: str, *fields: str) -> tuple[Output, ...]:
    kinds = {field.name: field for field in FIELDS}
    return tuple(Output(Column(name, kinds[name].type), Col(f"{alias}.{name}")) for name in fields)


def equal(one: str, other: str) -> Scalar:
    return Call("=", (Col(one), Col(other)))


def above(one: str, other: str) -> Scalar:
    return Text((Col(one), " > ", Col(other)))


def names_of(outputs: tuple[Output, ...]) -> tuple[str, ...]:
    return tuple(output.name for output in outputs)


PARTIALS = (
    Partial(Column(COUNT, "bigint"), "count"),
    Partial(Column("n", "bigint"), "count", Col("x.n")),
    Partial(Column("sum n", "bigint"), "sum", Col("x.n")),
    Partial(Column("sum k", "bigint"), "sum", Col("x.k"), Call(">", (Col("x.k"), Lit(0)))),
    Partial(Column("sum p", "decimal(25,2)"), "sum", Col("x.p")),
    Partial(Column("sum w", "decimal(38,4)"), "sum", Col("x.w")),
    Partial(Column("sum f", "double"), "sum", Col("x.f")),
)
EXTREMES = tuple(
    Partial(Column(f"{kind} {field.name}", field.type), kind, Col(f"x.{field.name}"))
    for kind in ("min", "max")
    for field in FIELDS
    if field.type != "double"
)
DISTINCT = tuple(
    Partial(Column(f"distinct {field.name}", "bigint"), "opaque", Text((written, Col(f"x.{field.name}"), " )")))
    for written, field in zip(["count(DISTINCT ", "COUNT (distinct\n"] * 4, FIELDS, strict=True)
    if field.type != "double"
)
BY = columns("x", "s", "k")


def grouped(plan: Plan, *, keys: tuple[Output, ...] = BY, of_rows: bool = False) -> GroupBy:
    """Rows in groups; *of_rows* have aggregates too that no delta has."""
    return GroupBy(plan, keys, (*PARTIALS, *((*EXTREMES, *DISTINCT) if of_rows else ())), keep_empty=True)


def stored(relation: str) -> Plan:
    """Groups as a table has them."""
    return Filter(grouped(scan(relation, "x")), Call(">", (Col(COUNT), Lit(0))))


def merged(old: Plan, summary: Plan, keys: tuple[Output, ...] = BY) -> MergeSummary:
    # What goes must have been there: the delta is added to its own deletions.
    return MergeSummary(old, summary, tuple(key.name for key in keys), PARTIALS)


def summary(relation: str, keys: tuple[Output, ...] = BY) -> Plan:
    """The groups of a relation, as if all its rows came."""
    return grouped(scan(relation, "x"), keys=keys)


def ordered(*items: tuple[str, str]) -> tuple[Scalar, ...]:
    return tuple(Text((Col(name), f" {direction}")) for name, direction in items)


ALL_IN_ORDER = ordered(
    ("x.s", "DESC NULLS LAST"), ("x.p", "ASC NULLS FIRST"), ("x.d", "DESC NULLS FIRST"), ("x.k", "ASC NULLS LAST"),
    ("x.n", "ASC NULLS FIRST"), ("x.w", "ASC NULLS FIRST"), ("x.b", "ASC NULLS FIRST"),
)  # fmt: skip
PLAIN = columns("x", "k", "n", "p", "s", "d", "b")

PLANS: dict[str, Plan] = {
    "join on text": Join((scan("r", "x"), scan("t", "y")), (equal("x.s", "y.s"), above("x.p", "y.p"))),
    "join on decimal and date": Join((scan("r", "x"), scan("t", "y")), (equal("x.p", "y.p"), equal("x.d", "y.d"))),
    "join of decimals of two scales": Join((scan("r", "x"), scan("t", "y")), (equal("x.p", "y.w"),)),
    "join of numbers of two widths": Join((scan("r", "x"), scan("t", "y")), (equal("x.k", "y.n"),)),
    "join of number and decimal": Join((scan("r", "x"), scan("t", "y")), (equal("x.k", "y.p"),)),
    "join on boolean": Join((scan("r", "x"), scan("t", "y")), (equal("x.b", "y.b"), equal("x.k", "y.k"))),
    "join with nothing": Join((scan("r", "x"), scan("none", "y")), (equal("x.k", "y.k"),)),
    "product": Join((scan("r", "x"), scan("once", "y")), ()),
    "three": Join(
        (scan("r", "x"), change("t", "y"), change("r", "z")),
        (equal("x.s", "y.s"), equal("y.k", "z.k"), equal("z.p", "x.p")),
    ),
    "semi join": Exists(scan("r", "x"), scan("t", "y"), ((Col("x.s"), Col("y.s")),)),
    "semi join of a delta": Exists(
        change("r", "x"), scan("t", "y"), ((Col("x.s"), Col("y.s")), (Col("x.k"), Col("y.k")))
    ),
    "anti join": Exists(scan("r", "x"), scan("t", "y"), ((Col("x.p"), Col("y.p")),), negated=True),
    "anti join with a condition": Exists(
        change("r", "x"), scan("t", "y"), ((Col("x.k"), Col("y.k")),),
        (above("y.d", "x.d"),), negated=True,
    ),
    "semi join without keys": Exists(scan("r", "x"), scan("t", "y"), (), (above("x.p", "y.w"),)),
    "semi join with nothing": Exists(scan("r", "x"), scan("none", "y"), ((Col("x.k"), Col("y.k")),)),
    "left join": OuterJoin(scan("r", "x"), scan("t", "y"), ((Col("x.s"), Col("y.s")),), (Text((Col("y.n"), " > 0")),)),
    "left join of a delta": OuterJoin(change("r", "x"), scan("t", "y"), ((Col("x.s"), Col("y.s")),)),
    "full join": OuterJoin(scan("r", "x"), scan("t", "y"), ((Col("x.p"), Col("y.p")),), full=True),
    "left join with nothing": OuterJoin(scan("r", "x"), scan("none", "y"), ((Col("x.k"), Col("y.k")),)),
    "left join by nothing": OuterJoin(scan("r", "x"), scan("t", "y"), (), (Text(("true",)),)),
    "left join by a constant too": OuterJoin(
        scan("r", "x"), scan("t", "y"), ((Col("x.s"), Col("y.s")),), (Text(("1 = 1",)),)
    ),
    "semi join by a constant": Exists(scan("r", "x"), scan("t", "y"), (), (Text(("1 = 1",)),)),
    "rows of keys": SemiJoin(scan("r", "x"), (Col("x.s"), Col("x.d")), Project(scan("t", "y"), columns("y", "s", "d"))),
    "groups": grouped(scan("r", "x"), of_rows=True),
    "groups of a delta": grouped(change("r", "x")),
    "groups of nothing": grouped(scan("none", "x"), of_rows=True),
    "one group": grouped(scan("r", "x"), keys=(), of_rows=True),
    "one group of nothing": grouped(scan("none", "x"), keys=(), of_rows=True),
    "one group of a delta": grouped(change("r", "x"), keys=()),
    "groups by all kinds": GroupBy(scan("r", "x"), columns("x", "k", "n", "p", "w", "s", "d", "b"), PARTIALS[:1]),
    "summary merged": merged(stored("r"), summary("t")),
    "summary merged into nothing": merged(stored("none"), summary("t")),
    "one summary merged": merged(grouped(scan("r", "x"), keys=()), summary("t", ()), ()),
    "net": Net(Project(change("r", "x"), columns("x", "s", "k"))),
    "net of a difference": Net(
        UnionAll((Project(scan("r", "x"), PLAIN), Negate(Project(scan("t", "y"), columns("y", *names_of(PLAIN))))))
    ),
    "net of texts": Net(Project(change("r", "x"), columns("x", "s", "b"))),
    "first rows": Project(Limit(scan("r", "x"), ALL_IN_ORDER, 7, 3), PLAIN),
    "copies": Repeat(scan("r", "x"), Col("x.n")),
    "written rows": Values(
        ((Lit(1), Lit("a"), Text(("DATE '1994-01-01'",))), (Lit(None), Lit(None), Lit(None))),
        (Column("one", "int"), Column("two", "string"), Column("three", "date")),
    ),
}  # fmt: skip


class Reading:
    """The tables, or of those that are met only such rows."""

    def rows(self, scan: Scan, met: Met) -> pa.Table:
        operand = scan.operand
        assert isinstance(operand, At | Change)
        found = (CHANGES if isinstance(operand, Change) else TABLES)[operand.relation]
        for name, values in met.items():
            if values.type == found.column(name).type:
                found = found.filter(pc.is_in(found.column(name), values.drop_null()))
        return found

    def size(self, scan: Scan) -> int:
        return int(TABLES[scan.operand.relation].num_rows)  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def spark(engine: Engine) -> Iterator[Engine]:
    for kind, tables in (("at", TABLES), ("change", CHANGES)):
        for name, table in tables.items():
            engine.worker.createDataFrame(table).createOrReplaceTempView(f"{kind}_{name}")
    yield engine
    for kind in ("at", "change"):
        for name in TABLES:
            engine.worker.catalog.dropTempView(f"{kind}_{name}")


def bound(scan: Scan) -> str:
    kind = "change" if isinstance(scan.operand, Change) else "at"
    return f"SELECT * FROM {kind}_{scan.operand.relation}"  # type: ignore[union-attr]


def bag(table: pa.Table, shown: Schema) -> SignedBag:
    found = table.select(list(names(shown)))
    signs = table.column(SIGN).to_pylist() if SIGN in table.schema.names else [1] * table.num_rows
    return SignedBag(zip(zip(*(column.to_pylist() for column in found.columns), strict=True), signs, strict=True))


@pytest.mark.spark
@pytest.mark.parametrize("large", [0, 1_000], ids=["met", "read whole"])
@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS)
def test_rows_are_those_of_spark(spark: Engine, monkeypatch: pytest.MonkeyPatch, plan: Plan, large: int) -> None:
    monkeypatch.setattr(evaluating, "LARGE_ROWS", large)
    monkeypatch.setattr(joining, "MANY_PAIRS", large)
    found = evaluate(plan, Reading())
    expected = spark.worker.sql(render(plan, bound)).toArrow()
    assert bag(found, plan.columns) == bag(expected, plan.columns)
    kinds = {column.name: arrow_type(column.type) for column in plan.columns}
    assert {name: found.schema.field(name).type for name in kinds} == kinds


def test_a_join_of_too_many_rows_is_left_to_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "MOST_PAIRS", 10)
    with pytest.raises(NotHere, match=r"a join of \d+ rows"):
        evaluate(PLANS["join on text"], Reading())


@pytest.mark.parametrize("kind", sorted({field.type for field in FIELDS} - {"double"}))
def test_inputs_without_rows_match_nothing(kind: str) -> None:
    empty = pa.chunked_array([], arrow_type(kind))
    for one, other in ((empty, empty), (empty, pa.chunked_array([pa.nulls(2, arrow_type(kind))]))):
        found = matching.keys([one, one], [other, other], nulls_match=True)
        assert (len(found.left), len(found.right)) == (len(one), len(other))
        assert matching.pairs(found)[0].tolist() == []


def test_a_group_with_fewer_rows_than_none_is_left_to_spark() -> None:
    deleted = grouped(Negate(scan("t", "x")))
    with pytest.raises(NotHere, match="fewer rows than none"):
        evaluate(merged(stored("r"), deleted), Reading())


def test_groups_of_floating_numbers_are_left_to_spark() -> None:
    with pytest.raises(NotHere, match="groups of double"):
        evaluate(GroupBy(scan("r", "x"), columns("x", "f"), PARTIALS[:1]), Reading())


class Unreadable(Reading):
    """Of a table that is not met by a key, too many rows would have to be read."""

    def __init__(self, table: str, key: str) -> None:
        self._table, self._key = table, key
        self.read: list[str] = []

    def rows(self, scan: Scan, met: Met) -> pa.Table:
        relation = scan.operand.relation  # type: ignore[union-attr]
        if relation == self._table and self._key not in met:
            raise NotHere("many rows")
        self.read.append(relation)
        return super().rows(scan, met)


def test_a_large_input_that_cannot_be_read_yet_is_read_when_another_meets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "LARGE_ROWS", 1)
    plan = Join(
        (scan("once", "o"), scan("r", "x"), scan("t", "y")),
        (equal("o.b", "x.b"), equal("x.k", "y.k"), Text((Col("y.s"), " <> 'z'"))),
    )
    reading = Unreadable("r", "k")
    assert bag(evaluate(plan, reading), plan.columns) == bag(evaluate(plan, Reading()), plan.columns)
    assert reading.read == ["once", "t", "r"]
    with pytest.raises(NotHere, match="many rows"):
        evaluate(plan, Unreadable("r", "n"))


@pytest.mark.parametrize("filtered", [False, True])
def test_a_join_of_large_tables_is_read_for_what_its_rows_have_to_be_among(
    monkeypatch: pytest.MonkeyPatch, filtered: bool
) -> None:
    monkeypatch.setattr(evaluating, "LARGE_ROWS", 1)
    left: Plan = Join((scan("t", "y"), scan("r", "x")), (equal("x.n", "y.n"),))
    if filtered:
        left = Filter(left, Call("is not null", (Col("x.n"),)))
    among = Project(scan("once", "o"), (Output(Column("key", "int"), Col("o.k")),))
    plan = Exists(left, among, ((Col("x.k"), Col("key")),))
    reading = Unreadable("r", "k")
    assert bag(evaluate(plan, reading), plan.columns) == bag(evaluate(plan, Reading()), plan.columns)
    assert reading.read == ["once", "r", "t"]


def test_what_says_more_than_the_right_side_of_a_semi_join_is_read_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evaluating, "LARGE_ROWS", 1)
    reading = Unreadable("nothing", "k")
    keys = ((Col("x.k"), Col("y.k")),)
    chosen = Filter(scan("r", "x"), Text((Col("x.s"), " <> 'z'")))
    for negated, left in ((False, chosen), (True, scan("r", "x"))):
        reading.read.clear()
        plan = Exists(left, scan("t", "y"), keys, negated=negated)
        assert bag(evaluate(plan, reading), plan.columns) == bag(evaluate(plan, Reading()), plan.columns)
        assert reading.read == ["r", "t"]


def test_a_join_that_multiplies_rows_waits_for_others(monkeypatch: pytest.MonkeyPatch) -> None:
    sellers = pa.table({"s.key": range(20), "s.nation": [n % 2 for n in range(20)]})
    buyers = pa.table({"b.key": range(40), "b.nation": [n % 2 for n in range(40)]})
    sales = pa.table({"seller": [n % 20 for n in range(90)], "buyer": [n % 40 for n in range(90)]})
    asked = [equal("s.nation", "b.nation"), equal("seller", "s.key"), equal("buyer", "b.key")]
    made: list[int] = []

    def counted(left: pa.Table, right: pa.Table, ours: Any, theirs: Any) -> pa.Table:
        made.append(len(ours))
        return beside(left, right, ours, theirs)

    def joined() -> list[dict[str, Any]]:
        made.clear()
        found = joining.Joining([sales, buyers, sellers], [], asked, lambda plan, met: sales).rows().to_pylist()
        return sorted(found, key=lambda row: sorted(row.items()))

    monkeypatch.setattr(joining, "beside", counted)
    at_once = joined()
    assert (len(at_once), made) == (90, [400, 90])
    monkeypatch.setattr(joining, "MANY_PAIRS", 100)
    assert joined() == at_once
    assert made == [90, 90]
