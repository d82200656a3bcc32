"""A standalone Spark cluster of real processes on the loopback interface: a master, and workers that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pyspark

HOST = "127.0.0.1"

DAEMON_OPTIONS = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=64m"

EXECUTORS = {
    "spark.driver.host": HOST,
    "spark.driver.bindAddress": HOST,
    "spark.executor.memory": "512m",
    "spark.executor.cores": "1",
    "spark.cores.max": "2",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=128m",
}
"""Settings of an application that has to share a small machine."""


class Cluster:
    """A master and its workers; each worker could take in all executors of two small applications."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._web, port = free_port(), free_port()
        self.url = f"spark://{HOST}:{port}"
        self._processes: list[subprocess.Popen[bytes]] = []
        ports = ("--port", str(port), "--webui-port", str(self._web))
        self._start("master", "org.apache.spark.deploy.master.Master", "--host", HOST, *ports)

    def add_worker(self, name: str) -> subprocess.Popen[bytes]:
        """Start a worker."""
        offer = ("--cores", "4", "--memory", "2400m", "--webui-port", "0", "--work-dir", str(self._folder / name))
        return self._start(name, "org.apache.spark.deploy.worker.Worker", "--host", HOST, *offer, self.url)

    def state(self) -> dict[str, Any]:
        """What the master says of itself, its workers and applications."""
        with urllib.request.urlopen(f"http://{HOST}:{self._web}/json/", timeout=5) as answer:
            return dict(json.load(answer))

    def wait_for_workers(self, count: int, patience: float = 60) -> None:
        """Wait until so many workers are alive."""
        deadline = time.monotonic() + patience
        while True:
            with contextlib.suppress(OSError):
                if self.state()["aliveworkers"] == count:
                    return
            assert time.monotonic() < deadline, f"there are not {count} workers; see {self._folder}"
            time.sleep(0.1)

    def close(self) -> None:
        """End all processes."""
        for process in reversed(self._processes):
            kill_tree(process.pid)
            process.wait()

    def _start(self, name: str, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        extra = {"SPARK_DAEMON_MEMORY": "256m", "SPARK_DAEMON_JAVA_OPTS": DAEMON_OPTIONS}
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(spark_home() / "bin" / "spark-class"), main, *arguments],
                env=environment(self._folder, extra),
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self._processes.append(process)
        return process


@contextlib.contextmanager
def standalone(folder: Path, workers: int = 2) -> Iterator[tuple[Cluster, list[subprocess.Popen[bytes]]]]:
    """A cluster whose workers have registered."""
    cluster = Cluster(folder)
    try:
        started = [cluster.add_worker(f"worker-{number}") for number in range(workers)]
        cluster.wait_for_workers(workers)
        yield cluster, started
    finally:
        cluster.close()


def environment(folder: Path, extra: Mapping[str, str]) -> dict[str, str]:
    """What processes of the cluster find in their environment."""
    return {**os.environ, "SPARK_HOME": str(spark_home()), "SPARK_LOCAL_DIRS": str(folder / "local"), **extra}


def spark_home() -> Path:
    """The folder of the installed Spark."""
    return Path(pyspark.__file__).parent


def kill_tree(pid: int) -> None:
    """Kill a process and all that it started, as the end of its machine would."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        for each in [process, *process.children(recursive=True)]:
            with contextlib.suppress(psutil.NoSuchProcess):
                each.kill()


def free_port() -> int:
    """A port that nobody listens at."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
