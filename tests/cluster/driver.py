"""A driver: a process with a session of its own that does to a warehouse what it is told, each time a line of JSON.

``python -m tests.cluster.driver PROJECT [REMOTE]``
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path
from typing import Any

from strandline import StrandlineError, Warehouse
from strandline.propagate.progress import Event
from tests.campaign import by_spark
from tests.cluster.standalone import kill_tree
from tests.warehouse.shop import Shop, create_views


def create(warehouse: Warehouse, lakes: str, views: dict[str, str]) -> dict[str, Any]:
    """Declare the shop and make views over it."""
    Shop(Path(lakes)).declare(warehouse)
    create_views(warehouse, views)
    return {"views": warehouse.views()}


def refresh(
    warehouse: Warehouse, wait: float = 0, kill: int | None = None, after: float = 0.2, hold: bool = False
) -> dict[str, Any]:
    """Refresh everything. As its first step begins, *kill* a process so many seconds *after*, or *hold* on for good."""
    seen: list[Event] = []

    def watch(event: Event) -> None:
        if not seen and kill is not None:
            threading.Timer(after, kill_tree, [kill]).start()
        if not seen and hold:
            say({"holds": event.step})
            time.sleep(600)
        seen.append(event)

    report = warehouse.refresh(wait=wait, watcher=watch)
    return {"state": report.state, "ok": report.ok, "resumed": report.resumed, "told": report.to_dict()}


def verify(warehouse: Warehouse) -> dict[str, Any]:
    """Which views do not equal their recomputation."""
    return {"different": [name for name in warehouse.views() if not warehouse.verify(name).ok]}


def read(warehouse: Warehouse, view: str, state: int | None = None) -> dict[str, Any]:
    """The rows of a view, as text."""
    rows = warehouse.read(view, state=state).collect()
    return {"rows": sorted([str(value) for value in row] for row in rows)}


def executors(warehouse: Warehouse) -> dict[str, Any]:
    """Where the work is done, other than here; and which process the session is in."""
    spark: Any = warehouse._engine.spark
    found = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
    return {"master": spark.sparkContext.master, "count": found, "java": warehouse._engine.processes()}


COMMANDS = {command.__name__: command for command in (create, refresh, verify, read, executors)}


def say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer, default=str), flush=True)


def main(project: str, remote: str | None = None) -> None:
    # Of so few rows nothing would be left to the cluster.
    with by_spark.everything(), Warehouse.open(project, remote=remote) as warehouse:
        for line in sys.stdin:
            asked = json.loads(line)
            try:
                say(COMMANDS[asked.pop("do")](warehouse, **asked))
            except StrandlineError as error:
                say({"error": str(error)})


if __name__ == "__main__":
    main(*sys.argv[1:])
