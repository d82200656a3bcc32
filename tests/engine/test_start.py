"""Spark is started, and Ctrl-C comes at the worst moment of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.spark

PROGRAM = """
import json, logging, os, signal, sys, threading

from strandline.engine.session import Engine
from tests.conftest import LITTLE_DATA

signal.signal(signal.SIGINT, signal.default_int_handler)
handler = signal.getsignal(signal.SIGINT)
engine = Engine(settings=LITTLE_DATA)
if sys.argv[1] == "interrupt":
    # What Python raises within this hook is dropped.
    os.register_at_fork(before=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    found = engine.rows("SELECT 1")
except KeyboardInterrupt:
    found = "interrupted"
waiting = threading.Thread(target=logging.getLogger, args=("some logger",), daemon=True)
waiting.start()
waiting.join(10)
seen = {"found": found, "logging hangs": waiting.is_alive()}
if found != "interrupted":
    seen["same handler"] = signal.getsignal(signal.SIGINT) is handler
print(json.dumps(seen), flush=True)
os._exit(0)
"""


@pytest.mark.parametrize(
    ("how", "seen"),
    [
        ("interrupt", {"found": "interrupted", "logging hangs": False}),
        ("nothing", {"found": [[1]], "logging hangs": False, "same handler": True}),
    ],
)
def test_ctrl_c_is_not_lost_while_java_is_started(how: str, seen: dict[str, object]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        timeout=120,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout) == seen
