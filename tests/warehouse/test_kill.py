"""A refresh that is killed with SIGKILL is finished by the next one."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.kill import Campaign


@pytest.mark.spark
@pytest.mark.kill
def test_three_kills_lose_nothing_and_do_nothing_twice(tmp_path: Path, engine: Engine) -> None:
    campaign = Campaign(tmp_path, engine, seed=7)
    for event in (-1, 6, 13):
        assert campaign.kill_once(event) is not None
    campaign.close()
