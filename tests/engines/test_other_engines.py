"""The same warehouse through Spark Connect: on a server of Apache Spark, and on Sail, another engine of that protocol.

Each runs in a process of its own, because a Python process talks to one kind of Spark.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.engines.turn import turn

_PROGRAM = Path(__file__).with_name("remote_warehouse.py")


def run(server: str, folder: Path) -> dict[str, Any]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with turn():
        done = subprocess.run(
            [sys.executable, str(_PROGRAM), server, str(folder)],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=300,
        )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


@pytest.mark.connect
def test_a_warehouse_on_a_connect_server_of_apache_spark(tmp_path: Path) -> None:
    outcome = run("spark", tmp_path)
    assert outcome["engine"] == "spark"
    assert outcome["verified"] and outcome["recovered"]
    assert set(outcome["strategies"]) == {"incremental", "affected", "none"}
    assert outcome["settings_kept"]


@pytest.mark.sail
def test_a_warehouse_on_sail(tmp_path: Path) -> None:
    outcome = run("sail", tmp_path)
    assert outcome["engine"] == "spark-connect-protocol"
    assert outcome["verified"] and outcome["recovered"]
    assert set(outcome["strategies"]) == {"incremental", "affected", "none"}
