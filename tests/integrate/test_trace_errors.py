"""A trace that is wrong is refused with what is wrong, and where."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from strandline.algebra.bag import SignedBag
from strandline.errors import IntegrateError
from strandline.integrate.notation import parse_bag, parse_update, show_bag
from strandline.integrate.replay import replay
from strandline.integrate.trace import parse_trace, read_traces

GOOD: dict[str, Any] = {
    "id": "t/eca",
    "rels": {"r1": "WX", "r2": "XY"},
    "project": "W",
    "init": {"r1": "([1,2])", "r2": "()"},
    "updates": ["insert(r2,[2,3])"],
    "events": "S_up1 W_up1 S_qu1 W_ans1",
}


@pytest.mark.parametrize("text", ["()", "([1,2])", "([1],[1],-[4])", '(["a",null,1.5,true])', "(-[1,3],-[1,4])"])
def test_bags_are_read_as_they_are_written(text: str) -> None:
    assert show_bag(parse_bag(text)) == text


def test_spaces_do_not_matter() -> None:
    assert parse_bag(" ( [1, 2] , - [3, 4] ) ") == SignedBag([((1, 2), 1), ((3, 4), -1)])
    assert parse_update(" delete( r1 , [1, 2] ) ") == ("r1", SignedBag([((1, 2), -1)]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"rels": None}, "rels: "),
        ({"colour": "red"}, "colour: Extra inputs are not permitted"),
        ({"project": "WQ"}, "project names Q; there are W, X, Y"),
        ({"init": {"r9": "()"}}, "init names r9; there are r1, r2"),
        ({"init": {"r1": "[1,2]"}}, "is no bag: write rows in parentheses"),
        ({"init": {"r1": "([1,2] [3,4])"}}, "a comma is missing"),
        ({"init": {"r1": "([1,2,3])"}}, "r1 has 2 attributes, and a row has 3 values"),
        ({"init": {"r1": "(-[1,2])"}}, "rows with a minus"),
        ({"init": {"r1": "([1,[2]])"}}, "where a row such as [1,2] must stand"),
        ({"updates": ["upsert(r2,[2,3])"]}, "is no update: write insert(relation,[values])"),
        ({"updates": ["insert(r2,[2,3)"]}, "has something else than a row"),
        ({"updates": [[]]}, "update 1 is empty"),
        ({"updates": ["insert(r5,[2,3])"]}, "update 1 names r5"),
        ({"events": "S_up1 W_up1 S_go1"}, "'S_go1' is no event; there are S_up1"),
        ({"events": "S_up2"}, "event S_up2 is about update 2; there are 1"),
        ({"keys": {"r1": "Y"}}, "keys.r1 names Y; there are W, X"),
        ({"where": [["W", "like", 3]]}, "unknown operator 'like'"),
        ({"where": [["Q", "<", 3]]}, "where names Q"),
        ({"where": [["W", ">", "Q"]]}, "where puts 'Q' and 1 in order"),
        ({"where": [["X", ">", 1]], "updates": ['insert(r1,[1,"z"])']}, "where puts 'z' and 1 in order"),
        ({"rels": {"r1": "WW", "r2": "XY"}}, "rels.r1 names an attribute twice"),
        ({"frequencies": {"nobody": 3}}, "frequencies names nobody; there are source"),
        ({"frequencies": {"source": -1}}, "frequencies.source: Input should be greater than or equal to 0"),
        ({"join": [["r1", "WXZ"]]}, "join names 3 attributes of r1, which has 2"),
        ({"id": ""}, "no algorithm is named"),
        (
            {"sources": {"r1": "a", "r2": "b"}, "updates": [["insert(r1,[1,1])", "insert(r2,[1,1])"]]},
            "one transaction is of one source",
        ),
    ],
)
def test_a_trace_that_cannot_be_read(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(IntegrateError) as caught:
        parse_trace({**GOOD, **changed}, "t.json")
    assert caught.value.code == "BAD_TRACE"
    assert message in caught.value.message
    assert str(caught.value).startswith("t.json:1:1: [BAD_TRACE] ")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"events": "S_up1 W_up1 S_qu1"}, "the trace ends with something still to happen (W_ans1)"),
        ({"events": "S_up1"}, "still to happen (W_up1)"),
        ({"events": "W_up1"}, "event 1, W_up1: source has nothing or something else to deliver"),
        ({"events": "S_up1 W_up1 W_ans1"}, "event 3, W_ans1: no such answer comes next; possible: none."),
        ({"events": "S_up1 S_qu1"}, "event 2, S_qu1: no source has that query next; possible: none."),
        ({"updates": ["delete(r2,[2,3])"]}, "event 1, S_up1: delete(r2,[2,3]) deletes what is not there."),
        (
            {"updates": ["insert(r2,[2,3])", "insert(r2,[2,4])"], "events": "S_up2"},
            "event 1, S_up2: source commits in order, and this is its update 2",
        ),
        (
            {
                "updates": ["insert(r2,[2,3])", "insert(r2,[2,4])"],
                "events": "S_up1 W_up1 S_up2 W_up2 S_qu2",
            },
            "event 5, S_qu2: no source has that query next; possible: S_qu1.",
        ),
    ],
)
def test_events_that_cannot_happen(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(IntegrateError) as caught:
        replay(parse_trace({**GOOD, **changed}))
    assert caught.value.code == "BAD_TRACE"
    assert message in caught.value.message


def test_what_differs_from_what_a_trace_says_is_named() -> None:
    found = replay(parse_trace({**GOOD, "mv": ["()", "([9])"], "queries": {"1": "pi_W(r1)"}, "holds": []}))
    assert [difference.what for difference in found.differences] == ["mv", "holds", "queries.1"]
    assert str(found.differences[0]) == "mv: the trace says () ([9]), and it is () ([1])"


def test_differences_come_in_the_order_of_the_updates() -> None:
    said = {str(number): "pi_W(r1)" for number in (10, 9)}
    updates = [f"insert(r2,[2,{number}])" for number in range(10)]
    trace = {key: value for key, value in GOOD.items() if key != "events"}
    found = replay(parse_trace({**trace, "updates": updates, "queries": said}))
    assert [difference.what for difference in found.differences] == [f"queries.{n}" for n in range(1, 11)]


def test_equality_compares_values_of_any_kind() -> None:
    found = replay(parse_trace({**GOOD, "where": [["W", "=", "Q"]]}))
    assert not found.verdict.witnesses


def test_without_events_each_update_is_settled_before_the_next() -> None:
    trace = {key: value for key, value in GOOD.items() if key != "events"}
    found = replay(parse_trace({**trace, "updates": ["insert(r2,[2,3])", "insert(r1,[4,2])"]}))
    assert [str(step.event) for step in found.steps] == [
        "S_up1",
        "W_up1",
        "S_qu1",
        "W_ans1",
        "S_up2",
        "W_up2",
        "S_qu2",
        "W_ans2",
    ]
    assert found.verdict.reached == "COMPLETE"


def test_a_relation_may_be_joined_with_itself() -> None:
    trace = {**GOOD, "rels": {"r1": "WX"}, "join": [["r1", "WX"], ["r1", "XY"]], "project": "WY"}
    trace |= {"init": {"r1": "([1,2],[2,2])"}, "updates": ["insert(r1,[2,1])"]}
    found = replay(parse_trace(trace))
    assert found.verdict.reached == "COMPLETE"
    assert show_bag(found.steps[-1].view) == "([1,1],[1,2],[2,1],[2,2],[2,2])"
    assert "pi_WY([2,1] >< r1) + pi_WY(r1 >< [2,1]) - pi_WY([2,1] >< [2,1])" in found.steps[1].happened


def test_a_file_holds_one_trace_or_several(tmp_path: Path) -> None:
    file = tmp_path / "traces.json"
    for text, count in (
        (json.dumps(GOOD, indent=2), 1),
        (json.dumps([GOOD, GOOD]), 2),
        (f"{json.dumps(GOOD)}\n\n{json.dumps(GOOD)}\n", 2),
    ):
        file.write_text(text)
        assert len(read_traces(file)) == count


def test_errors_of_a_file_name_the_line(tmp_path: Path) -> None:
    file = tmp_path / "traces.json"
    file.write_text(json.dumps(GOOD) + "\n" + json.dumps({**GOOD, "project": "Q"}))
    with pytest.raises(IntegrateError, match=r"traces\.json:2:1: \[BAD_TRACE\] project names Q"):
        read_traces(file)
    file.write_text(json.dumps(GOOD) + "\n{nonsense}")
    with pytest.raises(IntegrateError, match=r"traces\.json:2:2: \[BAD_TRACE\] the file is not JSON"):
        read_traces(file)
    file.write_text("\n")
    with pytest.raises(IntegrateError, match="the file is empty"):
        read_traces(file)
    file.write_bytes(b"\xff\xfe")
    with pytest.raises(IntegrateError, match=r"\[TRACE_UNREADABLE\] .* not UTF-8"):
        read_traces(file)
    with pytest.raises(IntegrateError, match=r"\[TRACE_UNREADABLE\] .*No such file"):
        read_traces(tmp_path / "nowhere.json")
