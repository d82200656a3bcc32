"""Steady writes to sources that are not copied, and a refresh that is killed: every state is what it says it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine.session import Engine
from tests.campaign.asked import Campaign

pytestmark = [pytest.mark.postgres, pytest.mark.spark]


def test_states_are_what_their_positions_say_though_a_refresh_is_killed(tmp_path: Path, engine: Engine) -> None:
    campaign = Campaign(tmp_path, engine, seed=3)
    try:
        with campaign.sources.written_to():
            campaign.refresh_for(1, kill=True)
            campaign.refresh_here(2)
        assert campaign.check() >= 4
        asked = [told for report in campaign.reports for told in report["asked"].values()]
        assert all(told["fetched_rows"] < 5_000 for told in asked)
        steady = campaign.reports[-1]["at"] - campaign.reports[-2]["at"]
        assert steady < 30, f"a state was published after {steady:.0f} s"
    finally:
        campaign.close()
