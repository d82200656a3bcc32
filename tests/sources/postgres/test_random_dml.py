"""A copy follows random changes of a table with a column of every type, row by row."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.postgres_types import run

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


def test_a_copy_holds_what_the_table_does(database: str, engine: Engine, tmp_path: Path) -> None:
    counts = run(database, tmp_path / "project", engine, rounds=3, chosen=1)
    assert counts[-1] > 10
