"""How far changes reach, by the statistics of real Delta tables: what a delta would read of its tables, and no less."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block, Method, delta_of
from strandline.algebra.evaluate import evaluate
from strandline.algebra.near import Ranges, RangesOf, near, tables_read
from strandline.algebra.plan import At, Change, Join, Operand, Output, Partial, Plan, Scan
from strandline.algebra.scalar import Call, Col, Lit
from strandline.algebra.schema import Column, Schema, names
from strandline.cost.charges import Extent
from strandline.engine.delta_log import DeltaLog
from strandline.engine.statistics import TableSize
from strandline.propagate.reach import Reach
from strandline.propagate.vdag import Vdag
from strandline.sources.memory import MemorySource
from strandline.sources.protocol import Position
from strandline.store.node import Node
from tests.algebra.replay import computed, ranges
from tests.propagate.lake import COLUMNS, JOINED, ROWS, Lake, equal, scan


@pytest.fixture
def lake(tmp_path: Path) -> Iterator[Lake]:
    """Orders and lines, each in four files by the order; no session is started."""
    found = Lake(tmp_path)
    found.clustered("orders")
    found.clustered("lines")
    yield found
    assert not found.engine.started


def delta(block: Block, *changed: str, method: Method = "explicit") -> Plan:
    relations = [name if name == "v" else f"s.{name}" for name in changed]
    found = delta_of(block, relations, insert_only=False, method=method)
    assert found is not None
    return found.plan


def whole(lake: Lake, table: str) -> Extent:
    size = DeltaLog(str(lake.folder / "s" / table)).size()
    assert size.rows is not None
    return Extent(size.rows, size.bytes, size.files)


def read_of(lake: Lake, seen: Mapping[str, Position], *changed: str, body: Plan = JOINED) -> Extent:
    node = lake.node("v", body)
    assert node.block is not None
    return lake.reach(seen, node).read(delta(node.block, *changed))


def test_a_change_in_one_file_reads_the_file_that_it_overlaps(lake: Lake) -> None:
    seen = lake.positions()
    lake.write("lines", (12, 0), (15, 1))
    found = read_of(lake, seen, "lines")
    assert (found.rows, found.files) == (4, 1), "orders 12 to 15"
    assert found.bytes == DeltaLog(str(lake.folder / "s" / "orders")).files().within({"o": [(12, 15)]}).bytes


def test_rewritten_files_reach_as_far_as_they_did_before(lake: Lake) -> None:
    """A row that goes was in the old file; which one it was is not known."""
    seen = lake.positions()
    lake.delta("lines").delete("o = 27")
    assert read_of(lake, seen, "lines").files == 1
    for key in (5, 35):
        lake.delta("lines").delete(f"o = {key}")
    assert read_of(lake, seen, "lines").files == 3


def test_changes_of_several_versions_count_together(lake: Lake) -> None:
    seen = lake.positions()
    lake.write("lines", (1, 0))
    lake.write("lines", (38, 0))
    assert read_of(lake, seen, "lines").files == 2
    later = lake.positions()
    lake.write("lines", (21, 0))
    assert read_of(lake, later, "lines").files == 1
    assert read_of(lake, seen, "lines").files == 3


def test_a_change_all_over_reads_all(lake: Lake) -> None:
    seen = lake.positions()
    lake.write("lines", (0, 0), (39, 0))
    assert read_of(lake, seen, "lines") == whole(lake, "orders")


def test_each_term_reads_what_its_delta_meets(lake: Lake) -> None:
    seen = lake.positions()
    lake.write("lines", (12, 0))
    lake.write("orders", (13, 0), (31, 0))
    found = read_of(lake, seen, "lines", "orders")
    # Of orders one file, of lines three; the new files lie beside each other.
    assert found.files == 4
    assert found.rows == 1 + (7 + 10 + 2), "order 12, and lines of orders 13 to 31"


@pytest.mark.parametrize("table", ["orders", "lines"])
def test_without_statistics_all_is_read(tmp_path: Path, table: str) -> None:
    lake = Lake(tmp_path)
    for name in ("orders", "lines"):
        lake.clustered(name, statistics=name != table)
    seen = lake.positions()
    lake.write("lines", (12, 0))
    assert read_of(lake, seen, "lines") == whole(lake, "orders")


def test_a_table_that_is_not_met_by_equal_columns_is_read_as_a_whole(lake: Lake) -> None:
    seen = lake.positions()
    lake.write("lines", (12, 0))
    product = Join((scan("lines", "l"), scan("orders", "o")), (Call("<", (Col("l.o"), Col("o.o"))),))
    assert read_of(lake, seen, "lines", body=product) == whole(lake, "orders")


def test_null_meets_nothing_in_a_join(lake: Lake) -> None:
    seen = lake.positions()
    lake.write("lines", (12, 0), (None, 0))
    assert read_of(lake, seen, "lines").files == 1


@pytest.mark.parametrize(
    ("type", "values"),
    [
        ("string", ["ant", "bee", "cat", "dog"]),
        ("date", [pa.scalar(20_000 + 30 * month, pa.int32()).cast(pa.date32()).as_py() for month in range(4)]),
    ],
)
def test_keys_may_be_texts_or_days(tmp_path: Path, type: str, values: Sequence[Any]) -> None:
    lake, columns = Lake(tmp_path), (Column("o", type), Column("p", "bigint"))
    for value in values:
        lake.write("orders", (value, 1), columns=columns)
    lake.write("lines", (values[0], 1), columns=columns)
    seen = lake.positions()
    lake.write("lines", (values[2], 1), columns=columns)
    sides = [Scan(At(f"s.{table}"), table[0], columns) for table in ("lines", "orders")]
    assert read_of(lake, seen, "lines", body=Join(tuple(sides), (equal("l.o", "o.o"),))).files == 1


def test_of_a_table_the_columns_that_are_read_count(lake: Lake) -> None:
    seen = lake.positions()
    lake.write("lines", (12, 0), (35, 0))
    keys = Scan(At("s.orders"), "o", COLUMNS["orders"][:1])
    both, one = (
        read_of(lake, seen, "lines", body=Join((scan("lines", "l"), side), (equal("l.o", "o.o"),)))
        for side in (scan("orders", "o"), keys)
    )
    assert (one.rows, one.files) == (both.rows, both.files)
    assert one.bytes == both.bytes // 2


def test_where_tables_are_in_no_files_all_rows_are_read(lake: Lake) -> None:
    memory = MemorySource("s")
    for table in ("orders", "lines"):
        memory.create(table, COLUMNS[table])
        memory.commit(table, [(key, 0) for key in range(40)])
    seen = {f"s.{table}": memory.position(table) for table in ("orders", "lines")}
    memory.commit("lines", [(12, 0)])
    node = lake.node("v", JOINED)
    assert node.block is not None
    reach = Reach(Vdag([node]), lake.inputs(node, source=memory), seen)
    assert reach.read(delta(node.block, "lines")) == Extent(40)


# Nodes above nodes


def renamed(lake: Lake) -> Node:
    """A view of lines with their orders, whose columns have other names than those that are stored."""
    outputs = (Output(Column("order", "bigint"), Col("l.o")), Output(Column("next", "bigint"), NEXT))
    return lake.node("v", Block("v", JOINED, outputs=outputs))


NEXT = Call("+", (Col("l.o"), Lit(1)))
ABOVE = Scan(At("v"), "v", (Column("order", "bigint"), Column("next", "bigint")))


def above(lake: Lake, column: str) -> Node:
    return lake.node("w", Join((ABOVE, scan("returns", "r")), (equal(f"v.{column}", "r.o"),)))


@pytest.mark.parametrize(("column", "files"), [("order", 1), ("next", 4)])
def test_the_limits_of_a_delta_are_those_of_the_node_above(lake: Lake, column: str, files: int) -> None:
    """As far as they are known: what is computed from a column may lie anywhere."""
    lake.clustered("returns")
    seen = lake.positions()
    lake.write("lines", (12, 0))
    below, node = renamed(lake), above(lake, column)
    assert below.block is not None and node.block is not None
    reach = lake.reach(seen, below, node)
    limits = reach.limits(delta(below.block, "lines"))
    told = {name: found.values for name, found in limits.items()}
    assert told == {"l.o": ((12, 12),), "l.p": ((0, 0),), "o.o": ((12, 12),)}
    changes = delta(node.block, "v")
    assert reach.read(changes) == whole(lake, "returns")
    assert reach.knowing("v", limits).read(changes).files == files
    assert reach.read(changes) == whole(lake, "returns"), "the reach of others is what it was"


def test_the_table_of_a_node_is_read_in_its_stored_columns(lake: Lake) -> None:
    lake.clustered("returns")
    parts = [[(key, 0, key, 0) for key in range(start, start + ROWS)] for start in (0, 10, 20)]
    outputs = (Output(Column("order", "bigint"), Col("l.o")), Output(Column("next", "bigint"), NEXT))
    below = lake.node("v", Block("v", JOINED, outputs=outputs), *parts)
    seen = lake.positions()
    lake.write("returns", (25, 0))
    for column, files in (("order", 1), ("next", 3)):
        node = above(lake, column)
        assert node.block is not None
        assert lake.reach(seen, below, node).read(delta(node.block, "returns")).files == files


# Groups


GROUPED = Block(
    "v",
    scan("lines", "l"),
    (Output(Column("o", "bigint"), Col("l.o")),),
    (Partial(Column("__count", "bigint", False), "count"), Partial(Column("n", "bigint"), "sum", Col("l.p"))),
)


def grouped(lake: Lake) -> Node:
    """Lines by order, in four files."""
    return lake.node("v", GROUPED, *([(key, 1, 0) for key in range(ROWS * f, ROWS * (f + 1))] for f in range(4)))


METHODS = pytest.mark.parametrize("method", ["explicit", "summary", "affected"])


@METHODS
def test_rows_of_a_delta_are_looked_for_in_files_that_they_may_be_in(lake: Lake, method: Method) -> None:
    seen, node = lake.positions(), grouped(lake)
    lake.write("lines", (12, 0))
    assert lake.reach(seen, node).matched("v", delta(GROUPED, "lines", method=method)).files == 1
    lake.write("lines", (33, 0), (34, 0))
    found = lake.reach(seen, node).matched("v", delta(GROUPED, "lines", method=method))
    assert (found.rows, found.files) == (1 + 2, 2), "groups 12, 33 and 34"


@METHODS
def test_groups_lie_where_their_rows_do(lake: Lake, method: Method) -> None:
    """So a view above looks up near them."""
    lake.clustered("returns")
    seen, below = lake.positions(), grouped(lake)
    groups = Scan(At("v"), "v", (Column("o", "bigint"), Column("n", "bigint")))
    node = lake.node("w", Join((groups, scan("returns", "r")), (equal("v.o", "r.o"),)))
    assert node.block is not None
    lake.write("lines", (12, 0))
    reach = lake.reach(seen, below, node)
    limits = reach.limits(delta(GROUPED, "lines", method=method))
    assert {name: found.values for name, found in limits.items()} == {"o": ((12, 12),)}
    assert reach.knowing("v", limits).read(delta(node.block, "v")).files == 1


@METHODS
def test_they_are_looked_for_everywhere_if_a_null_is_among_them(lake: Lake, method: Method) -> None:
    seen, node = lake.positions(), grouped(lake)
    lake.write("lines", (12, 0), (None, 0))
    found = lake.reach(seen, node).matched("v", delta(GROUPED, "lines", method=method))
    assert (found.rows, found.files) == (4 * ROWS, 4)


def test_rows_without_a_key_are_looked_for_everywhere(lake: Lake) -> None:
    seen = lake.positions()
    node = lake.node("v", JOINED, [(1, 0, 1, 0)], [(30, 0, 30, 0)])
    assert node.key == () and node.block is not None
    lake.write("lines", (30, 0))
    assert lake.reach(seen, node).matched("v", delta(node.block, "lines")).files == 2


def test_groups_that_are_computed_anew_read_their_rows(lake: Lake) -> None:
    seen, node = lake.positions(), grouped(lake)
    lake.write("lines", (12, 0))
    reach = lake.reach(seen, node)
    assert reach.read(delta(GROUPED, "lines")) == Extent()
    # The new file is one of lines, too.
    assert reach.read(delta(GROUPED, "lines", method="affected")).files == 2


def test_the_table_of_a_node_that_was_never_filled_has_no_files(lake: Lake) -> None:
    seen, node = lake.positions(), lake.node("v", GROUPED)
    lake.write("lines", (12, 0))
    assert lake.reach(seen, node).matched("v", delta(GROUPED, "lines")) == Extent()


# What happens to files


def test_files_that_were_only_put_together_change_nothing(lake: Lake) -> None:
    seen = lake.positions()
    lake.write("lines", (12, 0))
    lake.delta("orders").optimize.compact()
    assert read_of(lake, seen, "lines").files == whole(lake, "orders").files == 1


def test_changes_are_not_lost_if_their_files_were_put_together_with_others(lake: Lake) -> None:
    """What changed first is in none of the files that are named by a change any more."""
    seen = lake.positions()
    lake.write("lines", (12, 0))
    lake.delta("lines").optimize.compact()
    lake.write("lines", (35, 0))
    found = read_of(lake, seen, "lines")
    assert (found.rows, found.files) >= (2 * ROWS, 2)


def test_changes_are_not_lost_in_folders_of_any_name(lake: Lake) -> None:
    columns, path = (Column("o", "bigint"), Column("city", "string")), str(lake.folder / "s" / "shops")

    def open_shops(city: str, *keys: int) -> None:
        rows = pa.table({"o": pa.array(keys, pa.int64()), "city": [city] * len(keys)})
        write_deltalake(path, rows, mode="append", partition_by=["city"])

    open_shops("Rome", 1)
    seen = lake.positions()
    open_shops("Rome", 2)
    open_shops("São Paulo", 12, 35)
    join = Join((Scan(At("s.shops"), "x", columns), scan("orders", "o")), (equal("x.o", "o.o"),))
    found = read_of(lake, seen, "shops", body=join)
    assert (found.files, found.rows) == (4, 1 + 24), "order 2, and orders 12 to 35"


# The property: nothing is missed, and no less is told than the rows that really changed would need

Happening = tuple[str, str, Any]

keys = st.one_of(st.none(), st.integers(0, 12))
file_of_rows = st.lists(st.tuples(keys, st.integers(0, 3)), min_size=1, max_size=4)
files_of_rows = st.lists(file_of_rows, min_size=1, max_size=3)
tables = st.sampled_from(["lines", "orders"])
happenings = st.lists(
    st.one_of(
        st.tuples(st.just("insert"), tables, file_of_rows),
        st.tuples(st.sampled_from(["delete", "update"]), tables, st.integers(0, 12)),
        st.tuples(st.just("compact"), tables, st.none()),
    ),
    min_size=1,
    max_size=4,
)


def carried_out(lake: Lake, happening: Happening) -> None:
    kind, table, value = happening
    match kind:
        case "insert":
            lake.write(table, *value)
        case "delete":
            lake.delta(table).delete(f"o = {value}")
        case "update":
            lake.delta(table).update(updates={"o": "o + 5"}, predicate=f"o = {value}")
        case "compact":
            lake.delta(table).optimize.compact()


def contents(lake: Lake) -> dict[str, SignedBag]:
    """The rows of all tables."""
    return {f"s.{table}": _rows(lake.delta(table), COLUMNS[table]) for table in ("lines", "orders")}


def _rows(table: DeltaTable, columns: Schema) -> SignedBag:
    found = table.to_pyarrow_table()
    return SignedBag.of(list(zip(*(found.column(c.name).to_pylist() for c in columns), strict=True)))


def needed(lake: Lake, plan: Plan, ranges_of: RangesOf) -> TableSize:
    """What *plan* reads of tables if the rows that changed are there to be looked at."""
    parts = []
    for found, limits in tables_read(near(plan, ranges_of)):
        if isinstance(found.operand, At):
            fields = dict(zip(names(found.columns), names(found.fields), strict=True))
            files = lake.source.files(
                found.operand.relation.removeprefix("s."), lake.positions()[found.operand.relation]
            )
            parts.append(files.within({fields[column]: told.values for column, told in limits.items()}))
    return TableSize(sum(p.rows or 0 for p in parts), sum(p.bytes for p in parts), sum(p.files for p in parts))


PLAIN = Block("v", JOINED)
COUNTED = Block(
    "v",
    JOINED,
    (Output(Column("o", "bigint"), Col("o.o")),),
    (Partial(Column("__count", "bigint", False), "count"),),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    files_of_rows,
    files_of_rows,
    happenings,
    st.sampled_from([(PLAIN, "explicit"), (COUNTED, "explicit"), (COUNTED, "affected")]),
)
def test_nothing_is_missed_and_no_less_is_told_than_the_rows_that_changed_need(
    lines: list[list[tuple[Any, ...]]],
    orders: list[list[tuple[Any, ...]]],
    happened: list[Happening],
    view: tuple[Block, Method],
) -> None:
    with TemporaryDirectory() as folder:
        lake = Lake(Path(folder))
        for table, parts in (("lines", lines), ("orders", orders)):
            for rows in parts:
                lake.write(table, *rows)
        seen, before = lake.positions(), contents(lake)
        for happening in happened:
            carried_out(lake, happening)
        after = contents(lake)
        changed = {name: after[name] - before[name] for name in before}
        moved = [name.removeprefix("s.") for name, rows in changed.items() if rows]
        if moved:
            _assert_enough(lake, view, delta(view[0], *moved, method=view[1]), seen, before, after, changed)


def _assert_enough(
    lake: Lake,
    view: tuple[Block, Method],
    plan: Plan,
    seen: Mapping[str, Position],
    before: Mapping[str, SignedBag],
    after: Mapping[str, SignedBag],
    changed: Mapping[str, SignedBag],
) -> None:
    node = lake.node("v", view[0])
    reach = lake.reach(seen, node)
    stored = computed([view[0]], before).stored["v"]

    def rows(operand: Operand) -> SignedBag:
        match operand:
            case Change(relation):
                return changed[relation]
            case At(relation, state):
                return before[relation] if state == "pre" else after[relation]
            case _:
                return stored

    def told(found: Scan, field: str) -> Ranges | None:
        if not isinstance(found.operand, Change):
            return None
        column = next(column for column in found.fields if column.name == field)
        relation = found.operand.relation
        return reach.inputs.ranges(relation, seen[relation], column)

    def really(found: Scan, field: str) -> Ranges | None:
        place = names(found.fields).index(field)
        # NULLs alone have no range, and what statistics tell is as good.
        return ranges(row[place] for row in rows(found.operand)) or told(found, field)

    delta_rows = evaluate(plan, rows)
    assert evaluate(near(plan, told), rows) == delta_rows
    found, least = reach.read(plan), needed(lake, plan, really)
    assert found.files >= least.files
    assert found.rows >= (least.rows or 0)
    for name, limits in reach.limits(plan).items():
        place = names(plan.columns).index(name)
        assert all(_lies_in(row[place], limits) for row in delta_rows)


def _lies_in(value: Any, limits: Ranges) -> bool:
    return limits.nulls if value is None else any(low <= value <= high for low, high in limits.values)
