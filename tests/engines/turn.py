"""A Connect server of Apache Spark listens at one port: tests of several processes take turns."""

from __future__ import annotations

import fcntl
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def turn() -> Iterator[None]:
    """Wait until no other test process has a Connect server."""
    with (Path(tempfile.gettempdir()) / "strandline-connect-server.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
