"""A warehouse follows a database that is written to all the time."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.writers import follow


@pytest.mark.spark
@pytest.mark.postgres
def test_everything_that_is_written_arrives_once_and_whole(tmp_path: Path, engine: Engine) -> None:
    assert "the total held" in follow(tmp_path, engine, seconds=6)
