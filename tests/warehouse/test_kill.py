"""A refresh that is killed with SIGKILL is finished by the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.kill import Campaign
from tests.conftest import new_project


@pytest.mark.spark
@pytest.mark.kill
def test_two_kills_lose_nothing_and_do_nothing_twice(tmp_path: Path, engine: Engine) -> None:
    """While sources are captured, and in the middle; ``make campaign-kill`` kills many more."""
    new_project(tmp_path / "project")
    campaign = Campaign(tmp_path, engine, seed=7)
    for event in (-1, 13):
        assert campaign.kill_once(event) is not None
    campaign.close()
