"""Views over views over views, with diamonds, through a round of changes; ``make campaign-sql`` has many."""

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
        following.round(following.lake.change)
