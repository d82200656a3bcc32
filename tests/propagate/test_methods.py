"""Which method maintains an aggregate, and how its delta is installed, by what is known before anything is computed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

import pytest

from strandline.algebra.block import Block, Method
from strandline.algebra.plan import COUNT, At, Exists, Partial, Scan
from strandline.algebra.representation import counted
from strandline.algebra.scalar import Col
from strandline.algebra.schema import Column
from strandline.catalog import Json, ViewRecord
from strandline.cost.charges import Extent, Work
from strandline.cost.model import FIXED, LinearCosts
from strandline.propagate.methods import aggregate_method, expected_install
from strandline.store import marking
from strandline.store.node import Node
from strandline.store.replacing import FEW_BYTES

SCAN = Scan(At("r"), "r", (Column("a", "bigint"),))
PLAIN = Block("v", SCAN)
GROUPED = Block("v", SCAN, partials=(Partial(Column(COUNT, "bigint", False), "count"),))
LARGE = Work(delta_rows=1_000, terms=1, inputs=Extent(5_000_000), table=Extent(1_000_000, 100 << 20), partials=3)
SMALL = Work(delta_rows=1_000, terms=1, inputs=Extent(5_000_000), table=Extent(7), partials=3, install="overwrite")


def node(asked: str = "auto") -> Node:
    options: dict[str, Json] = {"properties": {"Strandline.Aggregates": asked.upper()}}
    record = ViewRecord(1, "v", "view", "", options, None, "", (), (), "", None, datetime(2026, 1, 1, tzinfo=UTC))
    return Node(record, GROUPED, None, "/nowhere")


@dataclass(frozen=True)
class CheapGroups(LinearCosts):
    """Computing groups anew costs next to nothing."""

    def incremental(self, work: Work) -> float:
        return 0.1 if work.recomputes_groups else super().incremental(work)


@pytest.mark.parametrize(
    ("work", "above", "cost", "method"),
    [
        (LARGE, (), FIXED, "summary"),
        (LARGE, ("w",), FIXED, "explicit"),
        (SMALL, (), FIXED, "explicit"),
        (LARGE, (), CheapGroups(), "affected"),
        (LARGE, ("w",), CheapGroups(), "affected"),
    ],
)
def test_the_cheapest_method_is_taken_that_gives_views_above_what_they_need(
    work: Work, above: tuple[str, ...], cost: LinearCosts, method: Method
) -> None:
    chosen = aggregate_method(node(), work, cost, above)
    assert chosen.method == method
    assert "estimated" in chosen.why


@pytest.mark.parametrize("asked", ["explicit", "summary", "affected"])
def test_a_declared_method_is_taken(asked: Method) -> None:
    chosen = aggregate_method(node(asked), LARGE, CheapGroups(), ())
    assert (chosen.method, chosen.why) == (asked, "as declared")


def test_a_declared_summary_delta_gives_way_to_a_view_above() -> None:
    chosen = aggregate_method(node("summary"), LARGE, CheapGroups(), ("w",))
    assert chosen.method == "explicit"
    assert chosen.why.startswith("w reads its changes; ")


def test_insertions_are_appended_unless_they_may_meet_rows_or_make_rows_go() -> None:
    without = Block("v", Exists(SCAN, Scan(At("s"), "s", SCAN.fields), ((Col("r.a"), Col("s.a")),), negated=True))
    assert expected_install(PLAIN, LARGE.table, insert_only=True) == "append"
    assert expected_install(PLAIN, LARGE.table, insert_only=False) == "merge"
    assert expected_install(PLAIN, Extent(10), insert_only=False) == "overwrite"
    narrow = Extent(10**6, 8 << 20)
    assert expected_install(PLAIN, narrow, insert_only=False) == "overwrite"
    assert expected_install(PLAIN, Extent(10**6 + 1, 8 << 20), insert_only=False) == "merge"
    assert expected_install(without, LARGE.table, insert_only=True) == "merge"
    assert expected_install(counted(PLAIN), LARGE.table, insert_only=True) == "merge"
    assert expected_install(GROUPED, LARGE.table, insert_only=True) == "merge"


def test_few_rows_are_marked_where_files_are_not_written_anew() -> None:
    files, few = Extent(10**6, FEW_BYTES + 1), 10
    for changed, way in ((few, "mark"), (9_999, "mark"), (10**4, "replace"), (marking.MOST_ROWS + 1, "replace")):
        asked = {"insert_only": False, "changed": changed, "replaceable": files, "can_be_marked": True}
        assert expected_install(GROUPED, LARGE.table, **asked) == way  # type: ignore[arg-type]
    assert expected_install(GROUPED, LARGE.table, insert_only=False, changed=few, replaceable=files) == "merge"
    many = marking.MOST_ROWS + 1
    assert expected_install(GROUPED, LARGE.table, insert_only=False, changed=many, can_be_marked=True) == "merge"
