"""A process that refreshes a warehouse and kills itself, with SIGKILL, at an event of the refresh or soon after.

``python -m tests.campaign.kill_child PROJECT EVENT DELAY WITH_SPARK``: EVENT counts events of the refresh from 0, DELAY
is seconds after it; a negative EVENT is the start of the refresh, when sources are captured. WITH_SPARK=1 kills its
Spark first.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

import psutil

from strandline import Warehouse
from strandline.propagate.progress import Event


def die(delay: float, with_spark: bool) -> None:
    time.sleep(delay)
    if with_spark:
        for child in psutil.Process().children(recursive=True):
            child.kill()
    os.kill(os.getpid(), signal.SIGKILL)


def main(project: str, event: int, delay: float, with_spark: bool) -> None:
    seen = 0

    def watch(happened: Event) -> None:
        nonlocal seen
        if happened.what == "planned":
            return
        if seen == event:
            print(f"killed {delay:.2f} s after {happened.what} {happened.step} {happened.subject}", flush=True)
            if delay:
                threading.Thread(target=die, args=(delay, with_spark), daemon=True).start()
            else:
                die(0, with_spark)
        seen += 1

    with Warehouse.open(project) as warehouse:
        if event < 0:
            print(f"killed {delay:.2f} s after its start", flush=True)
            threading.Thread(target=die, args=(delay, with_spark), daemon=True).start()
        warehouse.refresh(watcher=watch)
    print("finished", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), sys.argv[4] == "1")
