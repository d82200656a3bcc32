"""Two dozen random views through random changes; a hundred are a campaign (``make campaign-views``)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign import by_spark
from tests.campaign.views import run

Computing = Callable[[], AbstractContextManager[None]]


@pytest.mark.spark
@pytest.mark.parametrize("computing", [nullcontext, by_spark.everything], ids=["over columns", "by Spark"])
def test_random_views_equal_their_recomputation(tmp_path: Path, engine: Engine, computing: Computing) -> None:
    with computing():
        taken = run(tmp_path / "project", engine, seed=11, views=12, rounds=2)
    assert taken.get("incremental", 0) > 0
