"""The fence of recovery: before a crashed refresh is taken up, what it had running must have ended.

A Spark process outlives its Python process for a moment, and may still commit in that moment.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

import psutil


def fence(processes: Iterable[Mapping[str, float]], patience: float = 20.0) -> None:
    """Wait until *processes* of a dead refresh have ended; end those that do not within *patience* seconds."""
    left = [process for noted in processes if (process := _same(noted)) is not None]
    _, left = psutil.wait_procs(left, timeout=patience)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(left, timeout=patience)


def _same(noted: Mapping[str, float]) -> psutil.Process | None:
    """The process that was noted, unless its number now belongs to another one."""
    try:
        process = psutil.Process(int(noted["pid"]))
        return process if abs(process.create_time() - noted["created"]) < 1 else None
    except psutil.NoSuchProcess:
        return None
