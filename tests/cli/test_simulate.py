"""``strandline simulate`` prints every event and state and the level reached, without a project and without Java."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Invoke, parsed, without_java

TRACES = Path(__file__).parents[1] / "integrate" / "traces.jsonl"
EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
EVENTS = "S_up1 W_up1 S_up2 W_up2 S_qu1 W_ans1 S_qu2 W_ans2"
TRACE = {
    "id": "anomaly/eca",
    "rels": {"r1": "WX", "r2": "XY"},
    "project": "W",
    "init": {"r1": "([1,2])"},
    "updates": ["insert(r2,[2,3])", "insert(r1,[4,2])"],
    "events": EVENTS,
}


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps(TRACE))
    return file


def test_events_queries_answers_collect_and_level_are_printed(trace: Path, invoke: Invoke) -> None:
    result = invoke("simulate", trace)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in result.stdout.splitlines()]
    assert lines[:2] == ["anomaly/eca: eca", "V = pi_W(r1 >< r2) over r1(W, X), r2(X, Y)"]
    assert "4 W_up2 send Q2 = pi_W([4,2] >< r2) - pi_W([4,2] >< [2,3]) {1,2} () ()" in lines
    assert "5 S_qu1 A1 = ([1],[4]) {1,2} () ()" in lines
    assert "6 W_ans1 {2} ([1],[4]) ()" in lines
    assert "8 W_ans2 {} () ([1],[4])" in lines
    assert lines[-3:] == [
        "level reached: STRONG (holds: convergence, weak, consistency, strong)",
        "not complete: the source's state 1, ([1]), is never shown",
        "messages: 2 queries, 2 answers",
    ]


def test_another_algorithm_takes_the_events_that_it_has(trace: Path, invoke: Invoke) -> None:
    levels = {
        name: parsed(invoke("simulate", trace, "--algorithm", name, "--json"))["traces"][0]["level"]
        for name in ("basic", "rv", "sc", "eca", "eca-local", "lca", "sweep")
    }
    assert levels == {
        "basic": None, "rv": "STRONG", "sc": "COMPLETE", "eca": "STRONG", "eca-local": "COMPLETE", "lca": "COMPLETE",
        "sweep": "COMPLETE",
    }  # fmt: skip


def test_json_has_steps_and_verdict(trace: Path, invoke: Invoke) -> None:
    found = parsed(invoke("simulate", trace, "--json"))
    (replayed,) = found["traces"]
    assert found["ok"] is True
    assert [step["event"] for step in replayed["steps"]] == EVENTS.split()
    assert replayed["steps"][5] == {
        "event": "W_ans1", "happened": "", "waiting": [2], "held": {"COLLECT": "([1],[4])"}, "view": "()",
        "published": [],
    }  # fmt: skip
    assert (replayed["level"], replayed["queries"], replayed["differences"]) == ("STRONG", 2, [])


def test_a_trace_that_goes_otherwise_than_it_says_fails(tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({**TRACE, "mv": ["()", "()", "()", "([1])"]}))
    result = invoke("simulate", file)
    assert result.exit_code == 1
    assert "DIFFERS: mv: the trace says () () () ([1]), and it is () () () ([1],[4])" in result.stdout
    assert parsed(invoke("simulate", file, "--json"))["ok"] is False


def test_a_file_of_many_traces_is_run_through(invoke: Invoke) -> None:
    found = parsed(invoke("simulate", TRACES, "--json"))
    assert len(found["traces"]) == 20
    assert found["ok"] is True


@pytest.mark.parametrize("file", sorted(EXAMPLES.glob("*.json")), ids=lambda file: file.name)
def test_the_examples_of_the_documentation_go_as_they_say(file: Path, invoke: Invoke) -> None:
    result = invoke("simulate", file)
    assert result.exit_code == 0, result.stdout


def test_errors_are_clear(tmp_path: Path, invoke: Invoke) -> None:
    file = tmp_path / "trace.json"
    file.write_text(json.dumps({**TRACE, "project": "Q"}))
    result = invoke("simulate", file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.strip() == f"{file}:1:1: [BAD_TRACE] project names Q; there are W, X, Y."
    assert parsed(invoke("simulate", file, "--json"))["error"]["code"] == "BAD_TRACE"
    missing = invoke("simulate", tmp_path / "no.json")
    assert (missing.exit_code, missing.stderr.startswith("[TRACE_UNREADABLE]")) == (1, True)
    file.write_text(json.dumps(TRACE))
    unknown = invoke("simulate", file, "--algorithm", "guess")
    assert unknown.stderr.startswith("[UNKNOWN_ALGORITHM] there is no algorithm 'guess'; there are basic, rv")


def test_neither_a_project_nor_java_is_needed(trace: Path) -> None:
    done = without_java("simulate", trace)
    assert (done.returncode, done.stderr) == (0, "")
