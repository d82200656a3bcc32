"""The tour of the README does what it says, and prints what it shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest

from strandline.engine.session import Engine
from tests.docs.markdown import README, blocks


def pattern(shown: str) -> str:
    """What an output must match: its text, with anything for ``...``; blank lines at the end do not count."""
    return r"\A" + ".*?".join(re.escape(part) for part in shown.strip().split("...")) + r"\s*\Z"


@pytest.mark.spark
def test_the_tour_prints_what_the_readme_shows(engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert engine.spark is not None  # the tour's own session is then the one of the test process
    monkeypatch.setattr(Engine, "close", _let_go)
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "tour"}
    printed = ""
    steps = blocks(README, "python", "text")
    assert [step.language for step in steps].count("python") >= 7
    for step in steps:
        if step.language == "python":
            assert printed == "", f"the README does not show what is printed before {step}"
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile(step.text, str(step), "exec"), namespace)
            printed = output.getvalue()
        else:
            assert re.search(pattern(step.text), printed, re.DOTALL), f"{step} shows something else than:\n{printed}"
            printed = ""
    assert sorted(p.name for p in (tmp_path / "shop" / "views").iterdir()) == ["best.sql", "revenue.sql"]
    assert (tmp_path / "shop" / "sources" / "lake.yml").is_file()


def _let_go(engine: Engine) -> None:
    """Forget the session without stopping it: it belongs to the test process."""
    engine._own = engine._worker = None
