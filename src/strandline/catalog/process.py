"""Which process this is, and whether another one still lives."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

import psutil  # type: ignore[import-untyped,unused-ignore]


@dataclass(frozen=True)
class ProcessIdentity:
    """A process: its pid means something on *machine*, *start* tells it from a later user of that pid."""

    host: str
    machine: str
    pid: int
    start: str

    def __str__(self) -> str:
        return f"process {self.pid} on host {self.host}"


def this_process() -> ProcessIdentity:
    """The identity of the running process."""
    return identified(os.getpid())


def identified(pid: int) -> ProcessIdentity:
    """The identity of a process of this machine."""
    return ProcessIdentity(socket.gethostname(), machine(), pid, _start(pid) or "")


def is_dead(process: ProcessIdentity) -> bool | None:
    """Whether *process* has ended; ``None`` if it cannot be seen from here."""
    if process.machine != machine():
        return None
    return _start(process.pid) != process.start


def machine() -> str:
    """What tells this machine, since it was started, from every other, and a container from its neighbours."""
    # A host name is no proof: two containers may share one, and see different processes under the same pid.
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _start(pid: int) -> str | None:
    """When the process *pid* started, ``None`` if there is none or only its exit code is left."""
    try:
        process = psutil.Process(pid)
        if process.status() in (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD):
            return None
        if sys.platform == "linux":
            return _ticks_since_boot(pid)
        return f"{process.create_time():.3f}"
    except (psutil.NoSuchProcess, OSError):
        return None


def _ticks_since_boot(pid: int) -> str:
    # psutil's create time on Linux is derived from the wall clock, and moves when that is adjusted.
    stat = Path(f"/proc/{pid}/stat").read_text()
    return stat.rpartition(")")[2].split()[19]
