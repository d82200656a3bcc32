"""Some queries of TPC-H through changes of all tables, in which rows are sought as if they were large.

``make campaign-tpch`` follows all 22, over more rows; with ``ARGS="0.1 4 --sought"`` in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign import by_spark, sought
from tests.campaign.tpch.following import follow, queries, strategy_of


@pytest.mark.spark
@pytest.mark.parametrize("computing", [nullcontext, by_spark.everything], ids=["over columns", "by Spark"])
def test_queries_equal_their_recomputation_after_each_cycle(
    tmp_path: Path, engine: Engine, computing: Callable[[], AbstractContextManager[None]]
) -> None:
    views = [view for view in queries() if view.tested]
    with computing(), sought.everywhere() as tables:
        reports = follow(tmp_path, engine, views, scale=0.01, cycles=1)
    assert len(tables) > len(views)
    for view in views:
        assert strategy_of(view, reports) in ("incremental", "affected")
