"""The choice of joins to share: by what it saves, among nodes that have seen the same."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from strandline.algebra.constraints import NOTHING
from strandline.algebra.near import Ranges
from strandline.algebra.plan import Join
from strandline.algebra.scalar import Call, Col, Lit
from strandline.algebra.schema import Column
from strandline.cost.calibration import Prices
from strandline.cost.charges import Extent, Work
from strandline.cost.model import FIXED
from strandline.engine.statistics import Ends, TableSize
from strandline.propagate.inputs import Inputs, Leaf
from strandline.propagate.look_ahead import Taken
from strandline.propagate.plan import NodePlan
from strandline.propagate.pricing import Reading
from strandline.propagate.reach import Reach
from strandline.propagate.sharing import Reader, Sharing, Sized, share
from strandline.propagate.vdag import Vdag
from strandline.reasons import Reason
from strandline.sources.protocol import Position
from strandline.store.node import passing_node
from tests.algebra.views import Relation, bigints

TABLES = {name: Relation(name, bigints("k", "j")) for name in ("customers", "orders", "lines", "parts", "returns")}
JOINED_ON = {
    frozenset({"customers", "orders"}): ("c.k", "o.j"),
    frozenset({"orders", "lines"}): ("o.k", "l.k"),
    frozenset({"lines", "parts"}): ("l.j", "p.k"),
    frozenset({"lines", "returns"}): ("l.k", "r.k"),
}
ROWS = {"customers": 150_000, "orders": 1_500_000, "lines": 6_000_000, "parts": 200_000, "returns": 500_000}
BOUGHT, MADE = ("customers", "orders", "lines"), ("orders", "lines", "parts")
PRICES = Prices(FIXED, FIXED)


class WholeTables(Inputs):
    """Tables that are in no files: whatever is asked of one, all of its rows are read."""

    seeks = False

    def __init__(self, rows: Mapping[str, int]) -> None:
        self.taken = Taken()
        self.leaves = {name: Leaf(1, TABLES[name].fields, None, TableSize(rows[name], 0, 0)) for name in rows}

    def extent(self, name: str, columns: int, limits: Mapping[str, Collection[Ends]] | None = None) -> Extent:
        return Extent(self.leaves[name].size.rows or 0)

    def ranges(self, name: str, after: Position, column: Column) -> Ranges | None:
        return None


def sizes(name: str) -> Sized:
    return Sized(ROWS[name], ROWS[name] // 1_000 if name in ("orders", "lines") else 0)


def reader(
    name: str,
    tables: Sequence[str],
    seen: int = 1,
    changed: Sequence[str] = ("orders", "lines"),
    inputs: Inputs | None = None,
) -> Reader:
    """A view that joins *tables* in a row, and has seen version *seen* of them."""
    scans = tuple(TABLES[table].scan(table[0]) for table in tables)
    pairs = [JOINED_ON[frozenset(pair)] for pair in pairwise(tables)]
    body = Join(scans, tuple(Call("=", (Col(one), Col(other))) for one, other in pairs))
    node = passing_node(name, body)
    moved = tuple(table for table in changed if table in tables)
    plan = NodePlan(name, False, "incremental", Reason("CHANGES"), 1, dict.fromkeys(tables, seen), changed=moved)
    reach = Reach(Vdag(()), WholeTables(ROWS) if inputs is None else inputs, plan.pinned)
    without = Reader(node, plan, moved, NOTHING, Reading(Work(0, 0, Extent(), Extent())), reach)
    delta = without.prepared(()).delta(insert_only=False)
    assert delta is not None
    rows = sum(sizes(table).changed for table in moved)
    work = Work(rows, len(delta.terms), Extent(), Extent(1_000), reach.read(delta.plan), install="overwrite")
    return replace(without, reading=Reading(work))


def shared(*readers: Reader) -> Sharing:
    return share(readers, sizes, PRICES)


def test_views_over_much_share_the_join_that_changes() -> None:
    found = shared(reader("v", ("customers", "orders", "lines")), reader("w", ("orders", "lines", "parts")))
    (delta,) = found.deltas
    assert (delta.name, delta.readers) == ("lines ⋈ orders", ("v", "w"))
    assert delta.pinned == {"lines": 1, "orders": 1} and set(delta.changed) == {"orders", "lines"}
    assert {name: reader.reading.work.terms for name, reader in found.readers.items()} == {"v": 1, "w": 1}
    # Neither orders nor lines is read by the views any more.
    assert found.readers["v"].reading.work.looked_up == Extent(ROWS["customers"])


def test_what_more_views_have_in_common_is_shared_as_a_whole() -> None:
    tables = ("customers", "orders", "lines")
    found = shared(reader("v", tables), reader("w", tables), reader("x", ("lines", "parts")))
    assert [delta.name for delta in found.deltas] == ["customers ⋈ lines ⋈ orders"]
    assert set(found.readers) == {"v", "w"}


def test_nodes_that_have_seen_different_versions_share_nothing() -> None:
    tables = ("orders", "lines")
    assert shared(reader("v", tables, seen=1), reader("w", tables, seen=2)) == Sharing()
    (delta,) = shared(reader("v", tables, 1), reader("w", tables, 2), reader("x", tables, 2)).deltas
    assert delta.readers == ("w", "x") and delta.pinned == {"lines": 2, "orders": 2}


def test_two_sets_of_views_share_each_their_own() -> None:
    tables = ("orders", "lines")
    found = shared(*(reader(name, tables, seen) for name, seen in (("a", 1), ("b", 1), ("c", 2), ("d", 2))))
    assert {delta.name: delta.readers for delta in found.deltas} == {
        "lines ⋈ orders": ("a", "b"),
        "lines ⋈ orders (2)": ("c", "d"),
    }


def test_a_join_that_does_not_change_is_not_shared() -> None:
    tables = ("customers", "orders")
    readers = [reader(f"v{n}", (*tables, "lines"), changed=["lines"]) for n in range(4)]
    assert [delta.name for delta in shared(*readers).deltas] == ["customers ⋈ lines ⋈ orders"]
    others = [reader(f"v{n}", (*tables, "lines"), seen=n, changed=["lines"]) for n in range(4)]
    alike = [replace(each, plan=replace(each.plan, pinned={**each.plan.pinned, "orders": 0})) for each in others]
    assert shared(*alike).deltas == ()


def test_little_is_not_worth_a_step() -> None:
    small = [of_little(reader(name, ("orders", "lines"))) for name in ("v", "w")]
    assert share(small, lambda name: Sized(60, 3), PRICES) == Sharing()
    many = [of_little(reader(f"v{n}", ("orders", "lines"))) for n in range(8)]
    assert len(share(many, lambda name: Sized(60, 3), PRICES).readers) == 8


def of_little(found: Reader) -> Reader:
    """The same over small tables."""
    work = Work(6, found.reading.work.terms, Extent(), Extent(10), Extent(120), install="overwrite")
    reach = replace(found.reach, inputs=WholeTables(dict.fromkeys(ROWS, 60)))
    return replace(found, reading=Reading(work), reach=reach)


class Clustered(WholeTables):
    """Rows that changed have keys of one in a hundred, and so have the files to read, wherever keys are asked for."""

    def extent(self, name: str, columns: int, limits: Mapping[str, Collection[Ends]] | None = None) -> Extent:
        whole = super().extent(name, columns).rows
        return Extent(whole // 100 if limits and "k" in limits else whole)

    def ranges(self, name: str, after: Position, column: Column) -> Ranges | None:
        return Ranges("bigint", ((Lit(1), Lit(9)),)) if column.name == "k" else None


def test_what_a_shared_delta_skips_is_skipped_by_its_readers_too() -> None:
    """The delta of the join lies in the ranges of its inputs, and the views look up near it."""
    clustered = Clustered(ROWS)
    returned = reader("v", ("orders", "lines", "returns"), inputs=clustered)
    # Each table that changed is met by the delta of the other, and what is returned by both.
    near = (ROWS["orders"] + ROWS["lines"] + 2 * ROWS["returns"]) // 100
    assert returned.reading.work.looked_up == Extent(near)
    others = [reader(name, tables, inputs=clustered) for name, tables in (("w", BOUGHT), ("x", MADE))]
    dear = replace(FIXED, term=5.0)
    sharing = share([returned, *others], sizes, Prices(dear, dear))
    assert [delta.name for delta in sharing.deltas] == ["lines ⋈ orders"]
    assert sharing.works["lines ⋈ orders"].work.looked_up == Extent((ROWS["orders"] + ROWS["lines"]) // 100)
    # Parts are not looked up by the key of what changed.
    read = {name: each.reading.work.looked_up.rows for name, each in sharing.readers.items()}
    assert read == {"v": ROWS["returns"] // 100, "w": ROWS["customers"], "x": ROWS["parts"]}


def test_sharing_saves_less_where_most_is_skipped_anyway() -> None:
    tables = ("orders", "lines")
    assert len(shared(*(reader(name, tables) for name in "vw")).deltas) == 1
    assert shared(*(reader(name, tables, inputs=Clustered(ROWS)) for name in "vw")).deltas == ()
