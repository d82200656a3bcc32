"""The same changes in tables of several sizes: what is told of them."""

from __future__ import annotations

from dataclasses import replace

from bench.grow import Size, verdict
from bench.tpch.kept import Repeat
from bench.tpch.settings import Settings


def repeat(whole: float, recompute: dict[str, dict[str, float]], wrong: dict[str, str] | None = None) -> Repeat:
    return Repeat({}, {"seconds": whole}, recompute, wrong=wrong or {})


SMALL = Size(
    Settings(scale=1),
    [
        repeat(2.0, {"ours": {"q1": 3.0, "q2": 1.0}, "defaults": {"q1": 2.0, "q2": 9.0}}),
        repeat(4.0, {"ours": {"q1": 4.0, "q2": 1.0}, "defaults": {"q1": 5.0, "q2": 9.0}}),
        repeat(3.0, {}),
    ],
)
LARGE = Size(Settings(scale=10), [repeat(6.0, {"ours": {"q1": 10.0, "q2": 6.0}})])


def test_each_size_is_kept_with_settings_spread_repeats_and_what_is_wrong() -> None:
    found = SMALL.to_dict()
    assert found["settings"] == Settings(scale=1).to_dict()
    assert found["refresh"] == {"median": 3.0, "low": 2.0, "high": 4.0}
    assert found["recompute"] == {"median": 4.0, "low": 3.0, "high": 5.0}
    assert [each["refresh"]["seconds"] for each in found["repeats"]] == [2.0, 4.0, 3.0]
    assert found["wrong"] == {}


def test_the_verdict_compares_the_largest_with_the_smallest() -> None:
    assert verdict([SMALL, LARGE]) == (
        "verdict: 10x data, 2.0x the time of a refresh, 4.0x that of recomputing; "
        "refresh 3.00 (2.00–4.00) s, then 6.00 s; all views correct"
    )


def test_the_verdict_names_what_is_wrong_at_any_size() -> None:
    wrong = replace(LARGE, repeats=[repeat(6.0, {}, {"q1": "1 row missing"})])
    assert verdict([SMALL, wrong]) == (
        "verdict: 10x data, 2.0x the time of a refresh; refresh 3.00 (2.00–4.00) s, then 6.00 s; WRONG: q1"
    )
