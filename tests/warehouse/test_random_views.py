"""Two dozen random views through random changes; a hundred are a campaign (``make campaign-views``)."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.views import run


@pytest.mark.spark
@pytest.mark.parametrize("seed", [11])
def test_random_views_equal_their_recomputation(tmp_path: Path, engine: Engine, seed: int) -> None:
    taken = run(tmp_path / "project", engine, seed, views=12, rounds=2)
    assert taken.get("incremental", 0) > 0
