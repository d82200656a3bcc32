"""The worked examples, event by event: queries, answers, COLLECT, view states, and the levels that hold."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.integrate.notation import show_bag
from strandline.integrate.parallel_groups import Finished, ParallelGroups
from strandline.integrate.replay import Replayed, replay
from strandline.integrate.trace import Trace, parse_trace, read_traces, through

ALL = ["convergence", "weak", "consistency", "strong", "complete"]
TRACES = {trace.name: trace for trace in read_traces(Path(__file__).parent / "traces.jsonl")}


@pytest.mark.parametrize("trace", TRACES.values(), ids=TRACES.keys())
def test_a_trace_goes_as_it_says(trace: Trace) -> None:
    assert trace.expected.mv is not None
    assert replay(trace).differences == ()


def derived(name: str, algorithm: str, **fields: Any) -> Replayed:
    """The views and updates of an example, with other events and expectations."""
    model = TRACES[name].expected.model_dump(exclude_none=True)
    kept = {k: v for k, v in model.items() if k in ("rels", "project", "keys", "init", "updates", "events", "sources")}
    return replay(parse_trace({**kept, "id": f"{name}, {algorithm}", "algorithm": algorithm, **fields}))


def at_warehouse(replayed: Replayed, name: str) -> list[str]:
    """A held bag after each event at the warehouse."""
    steps = [step for step in replayed.steps if step.event.kind.startswith("W")]
    return [show_bag(step.held[name]) for step in steps]


def states(replayed: Replayed) -> list[str]:
    """The view states that were published, without repeats."""
    found = [show_bag(rows) for step in replayed.steps for rows in step.shown]
    return [state for place, state in enumerate(found) if place == 0 or state != found[place - 1]]


# Examples 1 to 9


def test_example_1_continued_deletes_one_of_two() -> None:
    found = derived(
        "1/basic",
        "basic",
        updates=["insert(r2,[2,3])", "delete(r2,[2,4])"],
        events="S_up1 W_up1 S_qu1 W_ans1 S_up2 W_up2 S_qu2 W_ans2",
        queries={"1": "pi_W(r1 >< [2,3])", "2": "pi_W(r1 >< -[2,4])"},
        answers={"1": "([1])", "2": "(-[1])"},
        mv=["([1])", "([1],[1])", "([1],[1])", "([1])"],
    )
    assert found.differences == ()


def test_example_2_recomputed_after_both_updates() -> None:
    found = derived(
        "2/eca", "rv", every=2, events="S_up1 W_up1 S_up2 W_up2 S_qu2 W_ans2",
        queries={"2": "pi_W(r1 >< r2)"}, answers={"2": "([1],[4])"}, mv=["()", "()", "([1],[4])"],
    )  # fmt: skip
    assert found.differences == ()
    assert found.traffic.messages == 2


def test_example_2_recomputed_after_each_update() -> None:
    found = derived(
        "2/eca", "rv", queries={"1": "pi_W(r1 >< r2)", "2": "pi_W(r1 >< r2)"}, mv=["()", "()", "([1],[4])", "([1],[4])"]
    )
    assert found.differences == ()
    assert found.traffic.messages == 4


def test_example_2_with_copies_sends_no_query() -> None:
    found = derived("2/eca", "sc", events="S_up1 W_up1 S_up2 W_up2", queries={}, mv=["([1])", "([1],[4])"], holds=ALL)
    assert found.differences == ()


def test_what_rv_does_not_cover_is_asked_for_when_all_is_quiet() -> None:
    events = "S_up1 W_up1 S_up2 W_up2 S_up3 W_up3 S_qu2 W_ans2"
    fields: dict[str, Any] = {"every": 2, "updates": ["insert(r1,[4,2])", "insert(r3,[5,3])", "insert(r2,[2,5])"]}
    cut_short = derived("4/eca", "rv", **fields, events="S_up1 W_up1 S_up2 W_up2 S_qu2 W_ans2 S_up3 W_up3")
    assert cut_short.verdict.holds == ("weak", "consistency")
    flushed = derived("4/eca", "rv", **fields, events=f"{events} W_idle S_qu3 W_ans3")
    assert flushed.verdict.reached in ("STRONG", "COMPLETE")
    assert flushed.traffic.messages == 4


@pytest.mark.parametrize(
    ("name", "sent", "answers", "collect"),
    [
        ("2/eca", {"2": "pi_W([4,2] >< r2)"}, ["([1],[4])", "([4])"], ["()", "(-[4])", "([1])", "()"]),
        ("3/eca", {"2": "pi_WY(r1 >< -[2,3])"}, ["()", "()"], ["()", "(-[1,3])", "(-[1,3])", "()"]),
        (
            "4/eca",
            {"3": "pi_W(r1 >< [2,5] >< r3) - pi_W([4,2] >< [2,5] >< r3) - pi_W(r1 >< [2,5] >< [5,3])"},
            ["([4])", "([1])", "(-[4])"],
            ["()", "()", "([4])", "([4],[4])", "([1],[4],[4])", "()"],
        ),
        (
            "5/eca",
            {"2": "pi_WY([3,2] >< r2)", "3": "pi_WY(-[1,2] >< r2)"},
            ["([3,4])", "([3,3],[3,4])", "(-[1,3],-[1,4])"],
            ["()", "(-[3,4])", "([1,4],-[3,4])", "([1,4])", "([1,4],[3,3],[3,4])", "()"],
        ),
        (
            "7/eca",
            {"3": "pi_W(r1 >< [2,5] >< r3) - pi_W(r1 >< [2,5] >< [5,3])"},
            ["()", "([1])", "()"],
            ["()", "()", "()", "([4])", "([1],[4])", "()"],
        ),
        ("8/eca", {"2": "pi_W(r1 >< -[2,3])"}, ["()", "(-[1])"], ["()", "(-[4])", "(-[4])", "()"]),
        ("9/eca", {"2": "pi_W(r1 >< [2,3])"}, ["(-[4])", "([1])"], ["()", "([4])", "()", "()"]),
    ],
)
def test_terms_without_a_relation_can_be_evaluated_at_the_warehouse(
    name: str, sent: dict[str, str], answers: list[str], collect: list[str]
) -> None:
    printed = TRACES[name].expected
    assert printed.queries is not None
    found = derived(
        name,
        "eca",
        split=True,
        queries={**printed.queries, **sent},
        answers={str(number): answer for number, answer in enumerate(answers, start=1)},
        collect=collect,
        mv=printed.mv,
        holds=printed.holds,
    )
    assert found.differences == ()


@pytest.mark.parametrize("name", ["5/eca", "7/eca"])
def test_basic_fails_where_eca_is_strong(name: str) -> None:
    assert derived(name, "basic").verdict.holds == ()


def test_example_6_compensates_pairs_of_updates_on_different_relations() -> None:
    trace = parse_trace(
        {
            "id": "6/eca", "split": True, "rels": {"r1": "WX", "r2": "XY", "r3": "YZ"}, "project": "WZ",
            "where": [["W", ">", "Z"]],
            "updates": ["insert(r1,[7,2])", "insert(r2,[2,3])", "insert(r3,[3,4])", "insert(r1,[8,2])"],
            "events": "S_up1 W_up1 S_up2 W_up2 S_up3 W_up3 S_up4 W_up4 S_qu1 W_ans1 S_qu2 W_ans2 S_qu3 W_ans3 "
            "S_qu4 W_ans4",
            "queries": {
                "1": "pi_WZ(sigma([7,2] >< r2 >< r3))",
                "2": "pi_WZ(sigma(r1 >< [2,3] >< r3)) - pi_WZ(sigma([7,2] >< [2,3] >< r3))",
                "3": "pi_WZ(sigma(r1 >< r2 >< [3,4])) - pi_WZ(sigma([7,2] >< r2 >< [3,4]))"
                " - pi_WZ(sigma(r1 >< [2,3] >< [3,4]))",
                "4": "pi_WZ(sigma([8,2] >< r2 >< r3)) - pi_WZ(sigma([8,2] >< [2,3] >< r3))"
                " - pi_WZ(sigma([8,2] >< r2 >< [3,4]))",
            },
            "mv": ["()"] * 7 + ["([7,4],[8,4])"],
        }
    )  # fmt: skip
    assert replay(trace).differences == ()


# LCA and ECA-Local


def test_lca_shows_every_state_of_example_2() -> None:
    found = derived(
        "2/eca",
        "lca",
        queries={"1": "{1: pi_W(r1 >< [2,3])}", "2": "{2: pi_W([4,2] >< r2)}"},
        answers={"1": "{1: ([1],[4])}", "2": "{2: ([4])}"},
        mv=["()", "()", "([1])", "([1],[4])"],
        holds=ALL,
    )
    assert found.differences == ()
    assert show_bag(found.steps[3].held["DELTA_1"]) == "(-[4])"


def test_lca_tags_the_queries_of_example_4() -> None:
    found = derived(
        "4/eca",
        "lca",
        queries={
            "1": "{1: pi_W([4,2] >< r2 >< r3)}",
            "2": "{2: pi_W(r1 >< r2 >< [5,3]), 1: -pi_W([4,2] >< r2 >< [5,3])}",
            "3": "{3: pi_W(r1 >< [2,5] >< r3), 1: -pi_W([4,2] >< [2,5] >< r3), 2: -pi_W(r1 >< [2,5] >< [5,3])}",
        },
        answers={"1": "{1: ([4])}", "2": "{2: ([1],[4]), 1: (-[4])}", "3": "{3: ([1],[4]), 1: (-[4]), 2: (-[1],-[4])}"},
        mv=["()", "()", "()", "()", "()", "([1],[4])"],
    )
    assert found.differences == ()
    assert [show_bag(rows) for rows in found.steps[-1].shown] == ["()", "()", "([1],[4])"]
    assert show_bag(found.steps[5].held["DELTA_1"]) == "([4])"


LOCAL: dict[str, Any] = {
    "id": "5.5/eca-local",
    "rels": {"r1": "WX", "r2": "XY", "r3": "YZ"},
    "project": "WZ",
    "keys": {"r1": "W"},
    "init": {"r1": "([1,2])", "r2": "([2,5],[7,5])"},
    "updates": ["insert(r3,[5,3])", "delete(r1,[1,2])", "insert(r1,[1,7])"],
    "events": "S_up1 W_up1 S_up2 W_up2 S_up3 W_up3 S_qu1 W_ans1 S_qu2 W_ans2 S_qu3 W_ans3",
}


def test_a_local_update_compensates_open_queries_and_waits_for_its_turn() -> None:
    found = replay(
        parse_trace(
            {
                **LOCAL,
                "queries": {
                    "1": "{1: pi_WZ(r1 >< r2 >< [5,3])}",
                    "2": "{1: -pi_WZ(-[1,2] >< r2 >< [5,3])}",
                    "3": "{3: pi_WZ([1,7] >< r2 >< r3), 1: -pi_WZ([1,7] >< r2 >< [5,3])}",
                },
                "answers": {"1": "{1: ([1,3])}", "2": "{1: ([1,3])}", "3": "{3: ([1,3]), 1: (-[1,3])}"},
                "view_at_source": ["()", "([1,3])", "()", "([1,3])"],
                "holds": ALL,
            }
        )
    )
    assert found.differences == ()
    deltas = [show_bag(step.held["DELTA_1"]) for step in found.steps if "DELTA_1" in step.held]
    assert deltas[-4:] == ["([1,3])", "([1,3])", "([1,3],[1,3])", "([1,3],[1,3])"]
    assert [show_bag(rows) for rows in found.steps[-1].shown] == ["([1,3])", "()", "([1,3])"]


# ECA-Key


@pytest.mark.parametrize(("name", "verdict"), [("K1", ["weak", "consistency"]), ("K2", [])])
def test_eca_key_as_printed_leaves_a_ghost_and_ours_does_not(name: str, verdict: list[str]) -> None:
    printed = TRACES[f"{name}/eca-key-as-printed"]
    assert list(replay(printed).verdict.holds) == verdict
    assert replay(through(printed, "eca-key")).verdict.reaches("STRONG")


# Starvation


def chain(length: int) -> str:
    """Each query is answered only after the next update has arrived."""
    words = ["S_up1", "W_up1"]
    for number in range(2, length + 1):
        words += [f"S_up{number}", f"W_up{number}", f"S_qu{number - 1}", f"W_ans{number - 1}"]
    return " ".join([*words, f"S_qu{length}", f"W_ans{length}"])


def steady(algorithm: str, length: int = 20) -> Replayed:
    updates = ["insert(r2,[2,3])" if number % 2 else "delete(r2,[2,3])" for number in range(1, length + 1)]
    return derived("1/basic", algorithm, updates=updates, events=chain(length))


def test_eca_starves_under_steady_updates_and_lca_does_not() -> None:
    starving, steps = steady("eca"), steady("lca").steps
    assert [len(step.shown) for step in starving.steps[:-1]] == [0] * (len(starving.steps) - 1)
    assert sum(len(step.shown) for step in steps[:-1]) == 19
    assert steady("lca").verdict.reached == "COMPLETE"


# Several sources


def test_two_sources_are_compensated_from_the_partial_answer() -> None:
    found = replay(
        parse_trace(
            {
                "id": "3.1/sweep", "rels": {"R1": "AB", "R2": "BC"}, "project": "ABC",
                "sources": {"R1": "s1", "R2": "s2"}, "init": {"R2": "([2,3])"},
                "updates": ["insert(R1,[1,2])", "insert(R2,[2,4])"],
                "events": "S_up1 W_up1 S_up2 S_qu1 W_up2 W_ans1 S_qu2 W_ans2",
                "queries": {"1": "[1,2] >< R2", "2": "[2,4] >< R1"},
                "answers": {"1": "([1,2,2,3],[1,2,2,4])", "2": "([2,4,1,2])"},
                "mv": ["()", "()", "([1,2,3])", "([1,2,3],[1,2,4])"], "holds": ALL,
            }
        )
    )  # fmt: skip
    assert found.differences == ()


THREE: dict[str, Any] = {
    "rels": {"R1": "AB", "R2": "BC", "R3": "CD"},
    "project": "AD",
    "sources": {"R1": "s1", "R2": "s2", "R3": "s3"},
    "init": {"R1": "([1,2])", "R3": "([3,4])"},
    "updates": ["insert(R2,[2,3])", "insert(R1,[5,2])", "delete(R3,[3,4])"],
}


def test_sweep_visits_left_and_right_and_takes_queued_updates_off() -> None:
    found = replay(
        parse_trace(
            {
                **THREE,
                "id": "sweep",
                "events": "S_up1 W_up1 S_up2 S_qu1 W_up2 W_ans1 S_up3 S_qu1 W_up3 W_ans1 "
                "S_qu2 W_ans2 S_qu2 W_ans2 S_qu3 W_ans3 S_qu3 W_ans3",
                "queries": {
                    "1": ["[2,3] >< R1", "[2,3,1,2] >< R3"],
                    "2": ["[5,2] >< R2", "[5,2,2,3] >< R3"],
                    "3": ["-[3,4] >< R2", "-[3,4,2,3] >< R1"],
                },
                "answers": {
                    "1": ["([2,3,1,2],[2,3,5,2])", "()"],
                    "2": ["([5,2,2,3])", "()"],
                    "3": ["(-[3,4,2,3])", "(-[3,4,2,3,1,2],-[3,4,2,3,5,2])"],
                },
                "mv": ["()"] * 4 + ["([1,4])", "([1,4])", "([1,4],[5,4])", "([1,4],[5,4])", "()"],
                "holds": ALL,
            }
        )
    )
    assert found.differences == ()
    assert (found.traffic.queries, found.traffic.answers) == (6, 6)


def test_groups_sweep_inside_and_join_the_rest_from_auxiliary_views() -> None:
    found = replay(
        parse_trace(
            {
                **THREE,
                "id": "grouped",
                "group_size": 2,
                "events": "S_up1 W_up1 S_up2 S_qu1 W_up2 W_ans1 S_up3 W_up3 S_qu2 W_ans2",
                "queries": {"1": "[2,3] >< R1", "2": "[5,2] >< R2"},
                "mv": ["()", "()", "([1,4])", "([1,4])", "()"],
                "holds": ALL,
            }
        )
    )
    assert found.differences == ()
    assert states(found) == ["([1,4])", "([1,4],[5,4])", "()"]


PARALLEL: dict[str, Any] = {
    **THREE,
    "id": "parallel-groups",
    "init": {"R1": "([1,2])", "R2": "([2,3])", "R3": "([3,4])"},
    "updates": ["insert(R1,[5,2])", "insert(R3,[3,6])"],
    "events": "S_up1 W_up1 S_up2 W_up2 S_qu1 W_ans1",
}


def test_parallel_groups_combine_in_order_of_arrival() -> None:
    found = replay(parse_trace({**PARALLEL, "mv": ["([1,4])", "([1,4])", "([1,4],[1,6],[5,4],[5,6])"], "holds": ALL}))
    assert found.differences == ()
    assert states(found) == ["([1,4],[5,4])", "([1,4],[1,6],[5,4],[5,6])"]


def test_combining_whatever_is_ready_breaks_the_order_of_arrival(monkeypatch: pytest.MonkeyPatch) -> None:
    def ready(groups: ParallelGroups) -> Finished | None:
        return next(iter(groups.state.done), None)

    monkeypatch.setattr(ParallelGroups, "_combinable", ready)
    found = replay(parse_trace(PARALLEL))
    assert states(found) == ["([1,4],[1,6])", "([1,4],[1,6],[5,4],[5,6])"]
    assert found.verdict.holds == ("convergence",)


KEYED: dict[str, Any] = {
    **THREE,
    "project": "ACD",
    "keys": {"R1": "A", "R2": "C", "R3": "D"},
    "init": {"R2": "([2,3])", "R3": "([3,4])"},
    "updates": ["insert(R1,[1,2])", "delete(R3,[3,4])"],
}


def test_c_strobe_asks_what_a_deleted_tuple_would_have_given() -> None:
    found = replay(
        parse_trace(
            {
                **KEYED,
                "id": "c-strobe",
                "events": "S_up1 W_up1 S_qu1 W_ans1 S_up2 W_up2 S_qu1 W_ans1 S_qu1 W_ans1",
                "queries": {"1": ["[1,2] >< R2", "[1,2,2,3] >< R3", "[1,2,3,4] >< R2"]},
                "mv": ["()", "()", "()", "()", "()"],
                "holds": ALL,
            }
        )
    )
    assert found.differences == ()
    assert states(found) == ["([1,3,4])", "()"]
    assert found.traffic.answers == 3


def test_strobe_misses_the_state_in_between() -> None:
    events = "S_up1 W_up1 S_qu1 W_ans1 S_up2 W_up2 S_qu1 W_ans1"
    holds = ["convergence", "weak", "consistency", "strong"]
    found = replay(parse_trace({**KEYED, "id": "strobe", "events": events, "mv": ["()"] * 4, "holds": holds}))
    assert found.differences == ()


def test_a_delete_in_a_keyed_group_needs_no_query() -> None:
    trace = {
        **KEYED, "id": "keyed-groups", "init": {"R1": "([1,2])", "R2": "([2,3])", "R3": "([3,4])"}, "project": "AD",
        "updates": ["delete(R2,[2,3])", "insert(R2,[2,3])"], "queries": {"2": "[2,3] >< R1"},
        "events": "S_up1 W_up1 S_up2 W_up2 S_qu2 W_ans2", "mv": ["()", "()", "([1,4])"], "holds": ALL,
    }  # fmt: skip
    assert replay(parse_trace(trace)).differences == ()
