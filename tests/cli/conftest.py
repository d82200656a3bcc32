"""The command line, run in this process or in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from strandline.cli.app import app
from strandline.cli.context import Context

Invoke = Callable[..., Result]


@pytest.fixture
def invoke() -> Invoke:
    """Runs a command line, in a project if one is given."""

    def run(*arguments: str | Path, project: Path | None = None, context: Context | None = None) -> Result:
        where = [] if project is None else ["--project", str(project)]
        return CliRunner().invoke(app, [*where, *map(str, arguments)], obj=context)

    return run


@pytest.fixture
def empty(tmp_path: Path, invoke: Invoke) -> Path:
    """A project without sources and views."""
    folder = tmp_path / "shop"
    assert invoke("init", folder).exit_code == 0
    return folder


def without_java(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """A command line in a process of its own, which would fail if it looked for a Java."""
    environment = {**os.environ, "JAVA_HOME": "/nonexistent", "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", "strandline", *map(str, arguments)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def parsed(result: Result) -> Any:
    """What a command printed, which must be one JSON value and nothing else."""
    assert result.stderr == ""
    return json.loads(result.stdout)


@pytest.fixture(autouse=True)
def _no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs the tests may have told child processes the width of a terminal."""
    monkeypatch.delenv("COLUMNS", raising=False)
