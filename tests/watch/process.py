"""``strandline watch`` in a process of its own: what it logs, and what its metrics say."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psutil
from prometheus_client.parser import text_string_to_metric_families

Told = dict[str, Any]


class WatchProcess:
    """A process that watches the project in *folder*, and what it told so far."""

    def __init__(self, folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "strandline", "--project", str(folder), "watch", "--json", *arguments]
        self._errors = (folder.parent / f"{folder.name}-errors.txt").open("w+", encoding="utf-8")
        self.process = subprocess.Popen(
            [*command, "--metrics-port", "0", "--metrics-host", "127.0.0.1"],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **(environment or {})},
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
        )
        self.told: list[Told] = []
        self._lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def until(self, wanted: Callable[[Told], bool], seconds: float) -> Told:
        """Wait for the next event that is wanted; an event is looked at once."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            try:
                event: Told = json.loads(self._lines.get(timeout=left))
            except queue.Empty:
                break
            self.told.append(event)
            if wanted(event):
                return event
        raise AssertionError(f"waited {seconds} s in vain; told: {self.told[-15:]}; {self.errors()}")

    def caught_up(self) -> list[Told]:
        """All that was told so far."""
        while not self._lines.empty():
            self.told.append(json.loads(self._lines.get()))
        return self.told

    def metrics(self) -> dict[str, dict[tuple[str, ...], float]]:
        """The samples that the process serves, by name and label values."""
        found: dict[str, dict[tuple[str, ...], float]] = {}
        for family in text_string_to_metric_families(self.get("/metrics")):
            for sample in family.samples:
                found.setdefault(sample.name, {})[tuple(sample.labels.values())] = sample.value
        return found

    def get(self, path: str) -> str:
        """What the process answers."""
        port = next(event["metrics_port"] for event in self.told if event["event"] == "started")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def memory(self) -> tuple[float, float]:
        """Its megabytes, without and with its children, Spark among them."""
        own = psutil.Process(self.process.pid)
        mine = own.memory_info().rss / 1e6
        return mine, mine + sum(child.memory_info().rss for child in own.children(recursive=True)) / 1e6

    def end(self, number: int, seconds: float) -> int:
        """Send a signal, and wait for the end: the exit status."""
        self.process.send_signal(number)
        status = self.process.wait(seconds)
        time.sleep(0.2)
        self.caught_up()
        return status

    def errors(self) -> str:
        """What it wrote to standard error."""
        self._errors.seek(0)
        return self._errors.read()[-2000:]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._errors.close()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line)


def published(event: Told) -> bool:
    """Whether an event tells of a new state in which nothing failed."""
    return bool(event["event"] == "published")


def moment(event: Told) -> float:
    """When an event was told, in seconds since the epoch."""
    return datetime.fromisoformat(event["time"]).timestamp()
