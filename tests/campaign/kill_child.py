"""A process that changes a warehouse and is killed, with SIGKILL, at an event of the refresh or soon after.

``python -m tests.campaign.kill_child PROJECT EVENT DELAY WHO [STATEMENT]``: EVENT counts events of the refresh from 0,
DELAY is seconds after it; a negative EVENT is the start, when sources are captured. WHO dies: ``python``, ``both`` it
and its Spark, or ``spark`` alone. It refreshes everything, or carries out STATEMENT. With ``MARK`` in the environment
rows are marked in tables of any size, and EVENT counts the commits that mark some.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import nullcontext
from unittest import mock

import psutil

from strandline import StrandlineError, Warehouse
from strandline.engine.vectors import Marks
from strandline.propagate import planner
from strandline.propagate.progress import Event
from tests.campaign import marked

LOOK_AHEAD = "CAMPAIGN_LOOK_AHEAD"
"""Set in the environment, changes are taken in before they are planned with, however little there is."""

MARK = "CAMPAIGN_MARK"
"""Set there, rows are marked; to BEFORE or AFTER, the end comes at a commit that marks some."""

BEFORE, AFTER = "before", "after"


def die(delay: float, who: str) -> None:
    time.sleep(delay)
    if who != "python":
        for child in psutil.Process().children(recursive=True):
            child.kill()
    if who != "spark":
        os.kill(os.getpid(), signal.SIGKILL)


def main(project: str, event: int, delay: float, who: str, statement: str | None) -> None:
    if os.environ.get(LOOK_AHEAD):
        mock.patch.object(planner, "LITTLE_ROWS", -1).start()
    seen = 0
    counting = threading.Lock()
    mark, commit = os.environ.get(MARK), Marks.commit

    def happens(what: Callable[[], str]) -> None:
        """One of those that are counted."""
        nonlocal seen
        with counting:
            now, seen = seen == event, seen + 1
        if now:
            print(f"killed {delay:.2f} s {what()}", flush=True)
            if delay:
                threading.Thread(target=die, args=(delay, who), daemon=True).start()
            else:
                die(0, who)

    def watch(happened: Event) -> None:
        if happened.what != "planned" and mark not in (BEFORE, AFTER):
            happens(lambda: f"after {happened.what} {happened.step} {happened.subject}")

    def marking(marks: Marks, version: int, said: str) -> None:
        if mark == BEFORE:
            happens(lambda: f"before rows of {marks.folder.name} were marked")
        commit(marks, version, said)
        if mark == AFTER:
            happens(lambda: f"after rows of {marks.folder.name} were marked")

    with (
        marked.everywhere() if mark else nullcontext(),
        mock.patch.object(Marks, "commit", marking),
        Warehouse.open(project) as warehouse,
    ):
        if event < 0:
            print(f"killed {delay:.2f} s after its start", flush=True)
            threading.Thread(target=die, args=(delay, who), daemon=True).start()
        if statement is None:
            warehouse.refresh(watcher=watch)
        else:
            warehouse.sql(statement, watcher=watch)
    print("finished", flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4], sys.argv[5] if len(sys.argv) > 5 else None)
    except StrandlineError as error:
        print(f"failed: {error}", flush=True)
