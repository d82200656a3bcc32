"""A process that changes a warehouse and is killed, with SIGKILL, at an event of the refresh or soon after.

``python -m tests.campaign.kill_child PROJECT EVENT DELAY WHO [STATEMENT]``: EVENT counts events of the refresh from 0,
DELAY is seconds after it; a negative EVENT is the start, when sources are captured. WHO dies: ``python``, ``both`` it
and its Spark, or ``spark`` alone. It refreshes everything, or carries out STATEMENT.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from unittest import mock

import psutil

from strandline import StrandlineError, Warehouse
from strandline.propagate import planner
from strandline.propagate.progress import Event

LOOK_AHEAD = "CAMPAIGN_LOOK_AHEAD"
"""Set in the environment, changes are taken in before they are planned with, however little there is."""


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

    def watch(happened: Event) -> None:
        nonlocal seen
        if happened.what == "planned":
            return
        with counting:
            now, seen = seen == event, seen + 1
        if now:
            print(f"killed {delay:.2f} s after {happened.what} {happened.step} {happened.subject}", flush=True)
            if delay:
                threading.Thread(target=die, args=(delay, who), daemon=True).start()
            else:
                die(0, who)

    with Warehouse.open(project) as warehouse:
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
