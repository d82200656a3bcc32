"""Which steps wait for which: a diamond over two leaves and a copy."""

from __future__ import annotations

from datetime import UTC, datetime

from strandline.catalog import Json, ViewRecord
from strandline.catalog.records import ViewKind
from strandline.propagate.plan import NodePlan, RefreshPlan, Step
from strandline.propagate.schedule import prerequisites
from strandline.propagate.vdag import Vdag
from strandline.reasons import Reason
from strandline.store.node import Node


def node(name: str, kind: ViewKind, *inputs: str) -> Node:
    made = datetime(2026, 1, 1, tzinfo=UTC)
    record = ViewRecord(len(name), name, kind, "", {}, None, "", (), inputs, "", None, made)
    return Node(record, None, None, "/nowhere")


def planned(name: str, strategy: str, pinned: dict[str, Json], changed: tuple[str, ...] = ()) -> NodePlan:
    return NodePlan(name, False, strategy, Reason("CHANGES"), 1, pinned, changed=changed)  # type: ignore[arg-type]


VDAG = Vdag(
    [
        node("pg.a", "copy"),
        node("pg.b", "copy"),
        node("left", "view", "pg.a", "lake.t"),
        node("right", "view", "pg.b", "lake.t"),
        node("top", "view", "left", "right"),
        node("other", "view", "lake.u"),
    ]
)
STEPS = (
    Step("capture", "capture", "pg"),
    Step("ingest t", "ingest", "lake.t", after=1),
    Step("compute a", "compute", "pg.a"),
    Step("install a", "install", "pg.a"),
    Step("compute b", "compute", "pg.b"),
    Step("install b", "install", "pg.b"),
    Step("compute left", "compute", "left"),
    Step("install left", "install", "left"),
    Step("recompute right", "recompute", "right"),
    Step("compare right", "compare", "right", after=7),
    Step("compute top", "compute", "top"),
    Step("install top", "install", "top"),
    Step("recompute other", "recompute", "other"),
    Step("publish", "publish"),
)
PLAN = RefreshPlan(
    "plan",
    None,
    (
        planned("pg.a", "incremental", {}, ("pg.a",)),
        planned("pg.b", "incremental", {}, ("pg.b",)),
        planned("left", "incremental", {"pg.a": 5, "lake.t": 1}, ("pg.a", "lake.t")),
        planned("right", "full", {}),
        planned("top", "incremental", {"left": 3, "right": 7}, ("left", "right")),
        planned("other", "full", {}),
    ),
    STEPS,
)


def test_a_step_waits_for_what_it_reads_and_for_nothing_else() -> None:
    assert prerequisites(PLAN, VDAG) == {
        "capture": set(),
        "ingest t": set(),
        "compute a": {"capture"},
        "install a": {"compute a"},
        "compute b": {"capture"},
        "install b": {"compute b"},
        "compute left": {"ingest t", "install a"},
        "install left": {"compute left"},
        "recompute right": {"install b"},
        "compare right": {"recompute right"},
        "compute top": {"install left", "recompute right", "compare right"},
        "install top": {"compute top"},
        "recompute other": set(),
        "publish": {step.id for step in STEPS} - {"publish"},
    }


def test_a_view_that_moved_before_this_refresh_is_compared_at_once() -> None:
    step = Step("compare left", "compare", "left", after=2)
    assert prerequisites(RefreshPlan("plan", None, (), (step,)), VDAG) == {"compare left": set()}


def test_a_step_waits_only_for_steps_before_it_in_the_plan() -> None:
    places = {step.id: place for place, step in enumerate(STEPS)}
    for step, earlier in prerequisites(PLAN, VDAG).items():
        assert all(places[other] < places[step] for other in earlier)


def test_steps_that_ask_the_same_source_do_so_in_turn_and_others_at_once() -> None:
    vdag = Vdag([*VDAG.nodes.values(), node("crm.c", "copy"), node("base 1", "base"), node("base 2", "base")])
    kinds = {"pg.a": "load", "pg.b": "load", "crm.c": "load", "base 1": "load", "base 2": "load", "pg": "capture"}
    steps = tuple(Step(subject, kind, subject) for subject, kind in kinds.items())  # type: ignore[arg-type]
    assert prerequisites(RefreshPlan("plan", None, (), steps), vdag) == {
        "pg.a": set(),
        "pg.b": {"pg.a"},
        "crm.c": set(),
        "base 1": set(),
        "base 2": {"base 1"},
        "pg": {"pg.b"},
    }
