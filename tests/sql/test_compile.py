"""How each query of ``strategies.txt`` is maintained, and that the compiled form means what was written."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, delta_of
from strandline.algebra.plan import Join, children
from strandline.algebra.scalar import Call, Col, Lit, Text
from strandline.algebra.schema import names
from strandline.engine.session import Engine
from strandline.errors import SqlError
from strandline.sql.compile import Compiled, compile_view
from strandline.sql.ddl import parse_select
from strandline.sql.functions import DECOMPOSED, GENERATORS, NON_DETERMINISTIC, OTHER_AGGREGATES, RECOMPUTED
from strandline.sql.names import quoted_list
from strandline.sql.references import replaced
from strandline.sql.render import SIGN
from tests.sql.before_and_after import View, part_of, show_change
from tests.sql.shop import CUSTOMER, DELETED, INSERTED, KEPT, LINES, ORDERS, SHOP, TOTALS

pytestmark = pytest.mark.spark


@dataclass(frozen=True)
class Case:
    """A query of the golden file and what is said about it."""

    line: int
    sql: str
    expected: tuple[str, ...]

    def __str__(self) -> str:
        return f"line {self.line}: {self.sql}"


def golden() -> list[Case]:
    """Each query, not indented, followed by indented lines: its blocks, the reason for a full refresh, or an error."""
    found: list[tuple[int, list[str], list[str]]] = []
    for number, line in enumerate((Path(__file__).parent / "strategies.txt").read_text("utf-8").splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if line.startswith("    "):
            found[-1][2].append(line.strip())
        elif found and not found[-1][2]:
            found[-1][1].append(line)
        else:
            found.append((number, [line], []))
    return [Case(number, "\n".join(sql), tuple(expected)) for number, sql, expected in found]


CASES = golden()


@pytest.fixture(scope="module")
def shop(small: Engine) -> Engine:
    """The engine, with the rows of the shop before and after a change, and the changes."""
    for relation in (ORDERS, LINES, CUSTOMER, TOTALS):
        name = relation.name
        show_change(small, name, relation.columns, KEPT[name], DELETED[name], INSERTED[name])
    return small


@pytest.fixture(scope="module")
def compiled(shop: Engine) -> Mapping[str, Compiled | SqlError]:
    """Each query of the golden file, compiled."""
    found: dict[str, Compiled | SqlError] = {}
    for case in CASES:
        try:
            found[case.sql] = compile_view("v", parse_select(case.sql), SHOP, shop.analyse)
        except SqlError as error:
            found[case.sql] = error
    return found


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_strategy_is_the_one_that_is_pinned(compiled: Mapping[str, Compiled | SqlError], case: Case) -> None:
    assert described(compiled[case.sql]) == case.expected


def described(found: Compiled | SqlError) -> tuple[str, ...]:
    """The lines of the golden file about a query."""
    if isinstance(found, SqlError):
        assert found.origin is not None
        return (f"error: {found.code} at {found.origin.line}:{found.origin.column}",)
    if found.reason is not None:
        return (f"full: {found.reason.code}",)
    return tuple(f"{'view' if block is found.blocks[-1] else 'hidden'}: {_maintained(block)}" for block in found.blocks)


def _maintained(block: Block) -> str:
    inserted, changed = (delta_of(block, block.inputs, insert_only=insert_only) for insert_only in (True, False))
    if inserted is None or changed is None:
        return "constant"
    text = f"{changed.strategy} ({', '.join(changed.operators)})"
    return text if inserted.strategy == changed.strategy else f"{text}, insertions {inserted.strategy}"


def test_a_full_refresh_says_why(compiled: Mapping[str, Compiled | SqlError]) -> None:
    """Every reason that a query can be the cause of occurs in the golden file, and each has a text."""
    reasons = {found.reason for found in compiled.values() if isinstance(found, Compiled) and found.reason}
    assert all(reason.text for reason in reasons)
    assert {reason.code for reason in reasons} == {
        "CLAUSE",
        "GENERATOR",
        "LIMIT",
        "NATURAL_JOIN",
        "NON_DETERMINISTIC",
        "SUBQUERY",
        "TYPE_NOT_COMPARABLE",
    }


def test_columns_that_are_equal_in_all_cases_of_an_or_are_joined_by(shop: Engine) -> None:
    either = "(o.customer = c.id AND o.amount > 1) OR (c.id = o.customer AND o.note IS NULL)"
    found = compile_view(
        "v", parse_select(f"SELECT o.id FROM shop.orders o, shop.customer c WHERE {either}"), SHOP, shop.analyse
    )
    body = found.blocks[-1].body
    join = next(node for node in (body, *children(body)) if isinstance(node, Join))
    first, second = join.conditions
    assert first == Call("=", (Col("o.customer"), Col("c.id")))
    assert isinstance(second, Text) and "OR" in "".join(part for part in second.fragments if isinstance(part, str))


def test_floating_sums_are_computed_anew_if_they_are_to_be_exact(shop: Engine) -> None:
    query = parse_select("SELECT customer, sum(CAST(amount AS DOUBLE)) AS s FROM shop.orders GROUP BY customer")
    operators = {}
    for exact in (False, True):
        (block,) = compile_view("v", query, SHOP, shop.analyse, exact_floats=exact).blocks
        delta = delta_of(block, block.inputs, insert_only=True)
        assert delta is not None
        operators[exact] = delta.operators
    assert operators == {False: ("linear", "linear"), True: ("linear", "affected groups")}


def test_a_block_of_windows_keeps_only_the_rows_that_are_read(shop: Engine) -> None:
    numbered = "SELECT *, row_number() OVER (PARTITION BY customer ORDER BY id) AS n FROM shop.orders"
    newest = compile_view("v", parse_select(f"SELECT id FROM ({numbered}) WHERE n = 1"), SHOP, shop.analyse)
    hidden, own = newest.blocks
    assert hidden.ordered is not None
    assert hidden.ordered.where == Call("=", (Col("window.0"), Text(("1",), Lit(1))))
    assert own.inputs == (hidden.node,)
    twice = f"WITH x AS ({numbered}) SELECT a.id FROM x AS a JOIN x AS b ON a.id = b.n WHERE a.n = 1"
    blocks = compile_view("v", parse_select(twice), SHOP, shop.analyse).blocks
    assert [block.ordered.where for block in blocks if block.ordered] == [None]


# --- The compiled form over rows


def test_the_compiled_form_gives_the_rows_of_the_query(
    shop: Engine, compiled: Mapping[str, Compiled | SqlError]
) -> None:
    linear = [case for case in CASES if not _computed_anew(case)]
    assert _different(shop, compiled, linear, lambda view: [view.rows("post")]) == []


def test_contents_and_delta_make_the_rows_of_the_query(
    shop: Engine, compiled: Mapping[str, Compiled | SqlError]
) -> None:
    others = [case for case in CASES if _computed_anew(case)]
    assert _different(shop, compiled, others, lambda view: [view.rows("pre"), view.delta()]) == []


def _computed_anew(case: Case) -> bool:
    """Whether groups are computed anew, or the view reads hidden blocks: there the user's text is joined by."""
    return "affected" in case.expected[-1] or len(case.expected) > 1


def _different(
    engine: Engine,
    compiled: Mapping[str, Compiled | SqlError],
    cases: Sequence[Case],
    parts: Callable[[View], list[str]],
) -> list[tuple[str, str, int]]:
    """Rows, as JSON, that the query as written and the sum of *parts* do not have in common, with the query."""
    checks = []
    for place, case in enumerate(cases):
        found = compiled[case.sql]
        if isinstance(found, Compiled) and found.blocks and not found.loose:
            written = replaced(parse_select(case.sql), SHOP, lambda relation: part_of(relation.name, "post"))
            row = f"to_json(struct({quoted_list(names(found.columns))}))"
            checks.append(f"SELECT {place} AS place, {row} AS row, -1 AS {SIGN} FROM ({written})")
            checks += [f"SELECT {place}, {row}, {SIGN} FROM ({part})" for part in parts(View(found.blocks))]
    different = []
    for first in range(0, len(checks), 9):
        different += engine.rows(" UNION ALL ".join(checks[first : first + 9]))
    net = SignedBag(((place, row), sign) for place, row, sign in different)
    return [(cases[place].sql, row, count) for (place, row), count in net.items()]


# --- What is known about functions


def test_all_aggregates_and_generators_of_spark_are_known(engine: Engine) -> None:
    session: object = engine.spark
    registry = session._jsparkSession.sessionState().functionRegistry()  # type: ignore[attr-defined]
    listed = registry.listFunction().iterator()
    groups: dict[str, set[str]] = {}
    notes: dict[str, str] = {}
    while listed.hasNext():
        identifier = listed.next()
        info = registry.lookupFunction(identifier).get()
        groups.setdefault(info.getGroup(), set()).add(identifier.funcName())
        notes[identifier.funcName()] = f"{info.getUsage()} {info.getNote()}".lower()
    assert groups["agg_funcs"] == DECOMPOSED | RECOMPUTED | OTHER_AGGREGATES
    assert groups["generator_funcs"] <= GENERATORS
    documented = {name for name, note in notes.items() if "non-deterministic" in note} - groups["agg_funcs"]
    assert documented <= NON_DETERMINISTIC
