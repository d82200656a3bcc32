"""A refresh that is killed with SIGKILL is finished by the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.bank import money_held
from tests.campaign.graph import Death, Graph
from tests.campaign.kill_child import BEFORE


@pytest.mark.spark
@pytest.mark.postgres
@pytest.mark.kill
def test_four_kills_of_a_graph_end_as_if_there_had_been_none(tmp_path: Path, engine: Engine) -> None:
    """Refreshes of twelve views, killed four times: while sources are captured and PostgreSQL is written to, in the
    resumed one at a step, where new rows are appended and old ones not marked yet, and its Spark alone. Nothing is
    lost, and nothing done twice.

    ``make campaign-graph`` kills at every event, ``make campaign-kill`` many times while writers write.
    """
    graph = Graph(tmp_path, engine, seed=5)
    graph.change()
    with graph.bank:
        assert graph.kill(Death(-1, 1.0, "python")) is not None
    for death in (Death(17), Death(0, mark=BEFORE), Death(3, 0.0, "spark")):
        assert graph.kill(death) is not None
    graph.finish()
    with graph.open() as warehouse:
        assert money_held(warehouse, graph.bank) >= 2
    graph.make("twin")
    graph.assert_equal("twin")
    graph.clean()
    graph.close()
