"""DataFrames on a Spark Connect server, and the views that are made of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines.transformations import TRANSFORMATIONS
from tests.engines.turn import turn

_PROGRAM = Path(__file__).with_name("frames.py")


def run(server: str, folder: Path) -> dict[str, Any]:
    with turn():
        done = subprocess.run(
            [sys.executable, str(_PROGRAM), server, str(folder)],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            timeout=300,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


def check(outcome: dict[str, Any]) -> None:
    """Equal columns and rows; and, though nothing but the first fill may recompute them, views that follow."""
    assert len(outcome["compared"]) >= len(TRANSFORMATIONS) - 1
    assert {name: found for name, found in outcome["compared"].items() if found != "same"} == {}
    assert all({"incremental", "affected"} & set(found) for found in outcome["maintained"].values())
    assert outcome["maintained"]["join_and_group"] == ["incremental"]
    assert outcome["maintained"]["using_left"] == ["affected"]


@pytest.mark.connect
def test_dataframes_of_a_connect_server_of_apache_spark_make_views(tmp_path: Path) -> None:
    check(run("spark", tmp_path))


@pytest.mark.sail
def test_dataframes_of_sail_make_views(tmp_path: Path) -> None:
    check(run("sail", tmp_path))
