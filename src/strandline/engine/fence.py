"""The fence of recovery: before a crashed refresh is taken up, what it had running must have ended.

A Spark process outlives its Python process for a moment, and may still commit in that moment. Only processes of this
machine can be seen and ended; those of another are left to the lock, which is taken over only when its holder has been
silent for so long that it has given up by itself.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping
from typing import Any

import psutil

from strandline.catalog.process import ProcessIdentity, is_dead


def fence(processes: Iterable[Mapping[str, Any]], patience: float = 20.0) -> None:
    """Wait until *processes* of a dead refresh have ended; end those that do not within *patience* seconds."""
    left = [process for noted in processes if (process := _same(noted)) is not None]
    _, left = psutil.wait_procs(left, timeout=patience)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=patience)


def _same(noted: Mapping[str, Any]) -> psutil.Process | None:
    """The process that was noted, if it lives on this machine: its number may belong to another one now."""
    identity = ProcessIdentity(**{name: noted.get(name, "") for name in ("host", "machine", "pid", "start")})
    try:
        return psutil.Process(identity.pid) if is_dead(identity) is False else None
    except psutil.NoSuchProcess:
        return None
