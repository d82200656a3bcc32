"""A warehouse and DataFrames through Spark Connect: on a server of Apache Spark, and on Sail.

Each server has a process of its own, because a Python process talks to one kind of Spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.engines.transformations import TRANSFORMATIONS
from tests.engines.turn import turn

_PROGRAM = Path(__file__).with_name("program.py")

Seen = Callable[[str], dict[str, Any]]

SERVERS = [pytest.param("spark", marks=pytest.mark.connect), pytest.param("sail", marks=pytest.mark.sail)]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    """What the program saw on a server, which it is run on once."""

    @cache
    def run(server: str) -> dict[str, Any]:
        with turn():
            done = subprocess.run(
                [sys.executable, str(_PROGRAM), server, str(tmp_path_factory.mktemp(server))],
                capture_output=True,
                text=True,
                check=False,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                timeout=400,
            )
        assert done.returncode == 0, done.stderr[-4000:]
        return dict(json.loads(done.stdout.strip().splitlines()[-1]))

    return run


@pytest.mark.parametrize("server", SERVERS)
def test_a_warehouse_on_another_server(seen: Seen, server: str) -> None:
    outcome = seen(server)["warehouse"]
    assert outcome["engine"] == {"spark": "spark", "sail": "spark-connect-protocol"}[server]
    assert outcome["recovered"]
    assert outcome["sought"] > 0
    assert outcome["marks"] is (server == "spark"), "Sail does not write tables with marks"
    assert set(outcome["strategies"]) == {"incremental", "affected", "none"}
    assert outcome["settings_kept"]
    assert outcome["session_kept"], "PySpark would close it, and wait there for whatever is being called"


@pytest.mark.parametrize("server", SERVERS)
def test_dataframes_of_another_server_make_views(seen: Seen, server: str) -> None:
    """Equal columns and rows; and, though nothing but the first fill may recompute them, views that follow."""
    outcome = seen(server)["frames"]
    assert len(outcome["compared"]) >= len(TRANSFORMATIONS) - 1
    assert {name: found for name, found in outcome["compared"].items() if found != "same"} == {}
    assert all({"incremental", "affected"} & set(found) for found in outcome["maintained"].values())
    assert outcome["maintained"]["join_and_group"] == ["incremental"]
    assert outcome["maintained"]["using_left"] == ["affected"]
