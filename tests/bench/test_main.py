"""Benchmarks by their names."""

from __future__ import annotations

import os

import pytest

from bench import __main__ as benchmarks


def test_what_a_name_sets_does_not_reach_the_next_benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str | None] = []
    monkeypatch.delenv("PARTS", raising=False)
    monkeypatch.setitem(benchmarks.BENCHMARKS, "whips", lambda: found.append(os.environ.get("PARTS")))
    for name in ("install", "aggregates", "whips"):
        benchmarks.run(name)
    assert found == ["duplicates,deletions", "aggregates", None]


def test_the_environment_goes_before_what_a_name_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str | None] = []
    monkeypatch.setenv("PARTS", "deletions")
    monkeypatch.setitem(benchmarks.BENCHMARKS, "whips", lambda: found.append(os.environ.get("PARTS")))
    benchmarks.run("install")
    assert (found, os.environ["PARTS"]) == (["deletions"], "deletions")
