"""The tour of the README does what it says, and prints what it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from strandline.engine.session import Engine
from tests.docs.markdown import README, blocks
from tests.docs.tour import carry_out


@pytest.mark.spark
def test_the_tour_prints_what_the_readme_shows(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.spark is not None  # the tour's own session is then the one of the test process
    monkeypatch.setattr(Engine, "close", _let_go)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "tour"}
    steps = blocks(README, "python", "text")
    assert [step.language for step in steps].count("python") >= 7
    carry_out(steps, namespace)
    assert sorted(p.name for p in (tmp_path / "shop" / "views").iterdir()) == ["best.sql", "revenue.sql"]
    assert (tmp_path / "shop" / "sources" / "lake.yml").is_file()


def _let_go(engine: Engine) -> None:
    """Forget the session without stopping it: it belongs to the test process."""
    engine._own = engine._worker = None
