"""The choice of joins to share: by what it saves, among nodes that have seen the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from strandline.algebra.constraints import NOTHING
from strandline.algebra.plan import Join
from strandline.algebra.scalar import Call, Col
from strandline.cost.calibration import Prices
from strandline.cost.charges import Work
from strandline.cost.model import FIXED
from strandline.propagate.plan import NodePlan
from strandline.propagate.pricing import Reading
from strandline.propagate.sharing import Reader, Sharing, Sized, looked_up_by, share
from strandline.reasons import Reason
from strandline.store.node import passing_node
from tests.algebra.views import Relation, bigints

TABLES = {name: Relation(name, bigints("k", "j")) for name in ("customers", "orders", "lines", "parts")}
JOINED_ON = {
    frozenset({"customers", "orders"}): ("c.k", "o.j"),
    frozenset({"orders", "lines"}): ("o.k", "l.k"),
    frozenset({"lines", "parts"}): ("l.j", "p.k"),
}
ROWS = {"customers": 150_000, "orders": 1_500_000, "lines": 6_000_000, "parts": 200_000}
PRICES = Prices(FIXED, FIXED)


def sizes(name: str) -> Sized:
    return Sized(ROWS[name], 100 * ROWS[name], ROWS[name] // 1_000 if name in ("orders", "lines") else 0)


def reader(name: str, tables: Sequence[str], seen: int = 1, changed: Sequence[str] = ("orders", "lines")) -> Reader:
    """A view that joins *tables* in a row, and has seen version *seen* of them."""
    scans = tuple(TABLES[table].scan(table[0]) for table in tables)
    pairs = [JOINED_ON[frozenset(pair)] for pair in pairwise(tables)]
    body = Join(scans, tuple(Call("=", (Col(one), Col(other))) for one, other in pairs))
    node = passing_node(name, body)
    moved = tuple(table for table in changed if table in tables)
    plan = NodePlan(name, False, "incremental", Reason("CHANGES"), 1, dict.fromkeys(tables, seen), changed=moved)
    without = Reader(node, plan, NOTHING, Reading(Work(0, 0, 0, 0)))
    delta = without.delta(())
    assert delta is not None
    read = sum(sizes(table).rows for table in looked_up_by(delta))
    work = Work(sum(sizes(t).changed for t in moved), len(delta.terms), 0, 1_000, read, install="overwrite")
    return Reader(node, plan, NOTHING, Reading(work, 100 * read))


def shared(*readers: Reader) -> Sharing:
    return share(readers, sizes, PRICES)


def test_views_over_much_share_the_join_that_changes() -> None:
    found = shared(reader("v", ("customers", "orders", "lines")), reader("w", ("orders", "lines", "parts")))
    (delta,) = found.deltas
    assert (delta.name, delta.readers) == ("lines ⋈ orders", ("v", "w"))
    assert delta.pinned == {"lines": 1, "orders": 1} and set(delta.changed) == {"orders", "lines"}
    assert {name: reader.reading.work.terms for name, reader in found.readers.items()} == {"v": 1, "w": 1}
    # Neither orders nor lines is read by the views any more.
    assert found.readers["v"].reading.work.looked_up_rows == ROWS["customers"]


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
    assert share(small, lambda name: Sized(60, 6_000, 3), PRICES) == Sharing()
    many = [of_little(reader(f"v{n}", ("orders", "lines"))) for n in range(8)]
    assert len(share(many, lambda name: Sized(60, 6_000, 3), PRICES).readers) == 8


def of_little(found: Reader) -> Reader:
    """The same over small tables."""
    work = Work(6, found.reading.work.terms, 0, 10, 120, install="overwrite")
    return Reader(found.node, found.plan, NOTHING, Reading(work))
