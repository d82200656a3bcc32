"""Driver processes as a test sees them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.cluster.standalone import kill_tree

ROOT = Path(__file__).parents[2]


class Driver:
    """A process that drives a warehouse; it is told what to do, and answers when that is done."""

    def __init__(self, project: Path, log: Path, prefix: Sequence[str], remote: str | None) -> None:
        self._log = log
        with log.open("w") as file:
            self.process = subprocess.Popen(
                [*prefix, sys.executable, "-m", "tests.cluster.driver", str(project), *([remote] if remote else [])],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])},
            )

    def tell(self, do: str, **arguments: Any) -> None:
        """Ask for something; :meth:`answer` has what came of it."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self.process.stdin.flush()

    def answer(self, patience: float = 150) -> dict[str, Any]:
        """What the driver says next, if it does within *patience* seconds."""
        assert self.process.stdout is not None
        heard, _, _ = select.select([self.process.stdout], [], [], patience)
        assert heard, f"the driver says nothing; see {self._log}"
        line = self.process.stdout.readline()
        assert line, f"the driver is gone: {self._log.read_text()[-3000:]}"
        return dict(json.loads(line))

    def alive(self) -> bool:
        """Whether it is still there a second later."""
        try:
            self.process.wait(1)
        except subprocess.TimeoutExpired:
            return True
        return False

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Have something done."""
        self.tell(do, **arguments)
        return self.answer()


@contextmanager
def driver(project: Path, log: Path, prefix: Sequence[str] = (), remote: str | None = None) -> Iterator[Driver]:
    """A driver, and all that it started, for as long as the context; *prefix* is a command that starts it."""
    started = Driver(project, log, prefix, remote)
    try:
        yield started
    finally:
        kill_tree(started.process.pid)
        started.process.communicate()
