"""The fence ends the processes of a dead refresh, and no other that has one of their numbers by now."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict

import pytest

from strandline.catalog.process import identified, is_dead
from strandline.engine.fence import fence


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    yield process
    process.kill()
    process.wait()


def test_what_was_noted_and_still_runs_is_ended(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identified(sleeper.pid)
    fence([asdict(identity)], patience=0.2)
    assert is_dead(identity)


def test_another_process_with_the_same_number_is_left_alone(sleeper: subprocess.Popen[bytes]) -> None:
    noted = asdict(identified(sleeper.pid))
    fence([{**noted, "start": "1"}, {**noted, "machine": "another"}, {"pid": sleeper.pid, "created": 0.0}], 0.2)
    assert sleeper.poll() is None


def test_a_process_is_known_without_the_clock(sleeper: subprocess.Popen[bytes]) -> None:
    """Its start is counted from the start of the machine: setting the clock does not make it another one."""
    if sys.platform != "linux":
        pytest.skip("elsewhere processes are told by the time of their start")
    assert identified(sleeper.pid).start.isdigit()
