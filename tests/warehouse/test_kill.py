"""A refresh that is killed with SIGKILL is finished by the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.graph import Death, Graph
from tests.campaign.kill import Campaign
from tests.conftest import new_project


@pytest.mark.spark
@pytest.mark.kill
def test_a_kill_loses_nothing_and_does_nothing_twice(tmp_path: Path, engine: Engine) -> None:
    """While sources are captured; ``make campaign-kill`` kills many more times, and elsewhere."""
    new_project(tmp_path / "project")
    campaign = Campaign(tmp_path, engine, seed=7)
    assert campaign.kill_once(-1) is not None
    campaign.close()


@pytest.mark.spark
@pytest.mark.kill
def test_three_kills_of_a_graph_end_as_if_there_had_been_none(tmp_path: Path, engine: Engine) -> None:
    """One refresh of twelve views, killed three times: at a step, in the resumed one, and its Spark alone.

    It takes about a minute; ``make campaign-graph`` kills at every event.
    """
    graph = Graph(tmp_path, engine, seed=5)
    graph.change()
    for death in (Death(17), Death(6, 0.2, "python"), Death(3, 0.0, "spark")):
        assert graph.kill(death) is not None
    graph.finish()
    graph.make("twin")
    graph.assert_equal("twin")
    graph.clean()
    graph.close()
