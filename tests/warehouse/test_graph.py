"""Views over views over views, with diamonds, through rounds of changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.corpus.definitions import graph
from tests.campaign.corpus.following import Following


@pytest.mark.spark
def test_views_four_deep_equal_their_recomputation(tmp_path: Path, engine: Engine) -> None:
    with Following(tmp_path, engine, seed=7, views=graph()) as following:
        following.fill()
        lake = following.lake
        for change in (lake.change, lake.empty):
            following.round(change)
