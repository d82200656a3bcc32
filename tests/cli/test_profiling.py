"""A profile on the terminal."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from strandline.cli.profiling import print_profile, size
from strandline.propagate.profile import Profile, StepProfile, TableRead

READ = TableRead("lake.lineitem", 2, 28, 140_000_000, 6_000_000, 424, 4_000_000_000, 18, 90_000_000)
UNTOLD = TableRead("lake.orders", 1, 3, 2_000_000, 40_000, 3, 2_000_000)
SPENT = {"building": 0.25, "driver": 12.0, "jobs": 110.5, "commit": 3.25, "catalog": 0.5}
STEPS = (
    StepProfile("1", "ingest", "lake.lineitem", "done", 1.5, 20.0, seconds={"spark": 20.0}),
    StepProfile(
        "2",
        "compute",
        "a_view_with_a_long_name_of_its_own",
        "done",
        21.5,
        126.5,
        20.0,
        4.0,
        seconds=SPENT,
        measured={"jobs": 7, "tasks": 40, "executor_seconds": 200.0, "bytes_read": 140_000_000, "shuffle_bytes": 5_500},
        read=(READ, UNTOLD),
    ),
    StepProfile("3", "publish", "", "pending", 148.0, 0.02),
)
PROFILE = Profile(
    "3f0c2a77aa", 4, datetime(2026, 11, 16, tzinfo=UTC), 150.0, {"planning": 1.5, "jobs": 148.5}, {"log": 1.5}, STEPS
)


def test_it_can_be_read_in_100_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    print_profile(PROFILE)
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert [" ".join(line.split()) for line in lines[3:6]] == [
        "1.50 20.00 ingest lake.lineitem 0.00 0.00 0.00 0.00 20.00",
        "21.50 126.5 compute a_view_with_a… 0.25 12.00 110.5 3.25 0.50 31/427 140 MB 5.5 kB",
        "148.0 0.02 publish",
    ]
    found = [" ".join(line.split()) for line in lines]
    assert "Spark, jobs 148.50 99.0 ██████████████████████████████ 110.50" in found
    assert "planning 1.50 1.0" in found
    assert "7 jobs, 40 tasks, which ran 200.00 s, 0.00 s of that on a processor." in found
    assert found[-3:] == [
        "table by scans files of touched read needed rows",
        "lake.lineitem compute a_view_with_a… 2 28 424 18 140 MB 90 MB 6,000,000",
        "lake.orders compute a_view_with_a… 1 3 3 2.0 MB 40,000",
    ]


def test_sizes_are_told_in_few_characters() -> None:
    assert [size(n) for n in (0, 999, 1_234, 56_789, 2_000_000, 3_400_000_000)] == [
        "0 B", "999 B", "1.2 kB", "57 kB", "2.0 MB", "3.4 GB"
    ]  # fmt: skip


def test_parts_are_kept_and_steps_added_up() -> None:
    told = PROFILE.to_dict()
    assert told["in_steps"] == {
        "building": 0.25,
        "driver": 12.0,
        "jobs": 110.5,
        "spark": 20.0,
        "commit": 3.25,
        "catalog": 0.5,
    }
    assert told["steps"][1]["read"][0]["holding"] == 18
    assert STEPS[1].files == (31, 427)


def test_what_is_not_known_is_no_list_of_nothing() -> None:
    untold = PROFILE.to_dict()["steps"][0]
    assert (untold["read"], untold["wrote"], STEPS[0].files) == (None, None, None)
