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

_PROGRAM = Path(__file__).with_name("frames.py")

RECOMPUTED: set[str] = set()
"""Views whose query is not maintained incrementally."""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(_PROGRAM), str(tmp_path_factory.mktemp("frames"))],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return dict(json.loads(done.stdout.strip().splitlines()[-1]))


@pytest.mark.connect
def test_a_dataframe_and_its_query_have_the_same_columns_and_rows(outcome: dict[str, Any]) -> None:
    assert outcome["compared"] == dict.fromkeys(TRANSFORMATIONS, "same")


@pytest.mark.connect
def test_views_of_dataframes_are_maintained_incrementally(outcome: dict[str, Any]) -> None:
    recomputed = {name for name, strategies in outcome["maintained"].items() if "full" in strategies}
    assert recomputed == RECOMPUTED
    assert "incremental" in outcome["maintained"]["join_and_group"]
