"""Some definitions of the corpus through two rounds of changes; ``make campaign-sql`` follows all of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign import by_spark
from tests.campaign.corpus.definitions import definitions
from tests.campaign.corpus.following import Following


@pytest.mark.spark
@pytest.mark.parametrize("computing", [nullcontext, by_spark.everything], ids=["over columns", "by Spark"])
def test_views_of_every_kind_equal_their_recomputation(
    tmp_path: Path, engine: Engine, computing: Callable[[], AbstractContextManager[None]]
) -> None:
    views = [view for view in definitions() if view.tested]
    with computing(), Following(tmp_path, engine, seed=5, views=views) as following:
        following.fill()
        for change in (following.lake.change, following.lake.empty):
            following.round(change)
