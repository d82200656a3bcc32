"""One project on a standalone cluster, reached in every way there is, while workers and drivers die.

A driver refreshes again and again; each time a worker is killed at another moment and replaced. Then the same warehouse
is refreshed through a Spark Connect server that runs on the cluster, and by ``spark-submit``. Last, a driver that
belongs to another machine (a process namespace of its own, which needs the rights of root) is killed while it holds the
lock, and a driver here takes it over when its heart has been still for long enough.

``python -m tests.campaign.cluster [KILLS]``
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from strandline.catalog import Catalog
from strandline.demo.server import PostgresServer
from strandline.engine.jars import jar_paths
from tests.cluster.drivers import ROOT, Driver, driver
from tests.cluster.project import SOME_VIEWS, catalog_url, clustered
from tests.cluster.standalone import EXECUTORS, HOST, Cluster, environment, free_port, kill_tree, spark_home, standalone
from tests.conftest import LITTLE_DATA, new_database
from tests.engines.servers import SETTINGS
from tests.warehouse.shop import VIEWS, Shop

ELSEWHERE = ("unshare", "--pid", "--fork", "--mount-proc", "--kill-child")
"""Starts a process that sees no process of this machine, and is seen by none as what it takes itself for."""


def main(kills: int) -> None:
    with tempfile.TemporaryDirectory(prefix="strandline-cluster-") as name, contextlib.ExitStack() as stack:
        folder = Path(name)
        shop = Shop(folder / "lakes")
        shop.create()
        server = stack.enter_context(PostgresServer.start(folder / "postgres"))
        catalog = catalog_url(stack.enter_context(new_database(server)))
        cluster, workers = stack.enter_context(standalone(folder))
        project = clustered(folder / "project", cluster.url, catalog)
        kill_workers(folder, project, cluster, workers, shop, kills)
        through_connect(folder, project, cluster, shop)
        by_spark_submit(folder, project, cluster, shop)
        from_another_machine(folder, project, shop)
        with Catalog.open(catalog) as opened:
            assert opened.refreshes.unfinished() is None
            numbers = [state.number for state in opened.states.all()]
            assert numbers == list(range(len(numbers), 0, -1))
            said(f"{len(numbers)} states, each after the one before")


def kill_workers(
    folder: Path,
    project: Path,
    cluster: Cluster,
    workers: list[subprocess.Popen[bytes]],
    shop: Shop,
    kills: int,
) -> None:
    """A worker dies in the middle of each refresh, at another moment each time."""
    with driver(project, folder / "first.log") as first:
        first.ask("create", lakes=str(shop.folder), views=SOME_VIEWS | {"revenue": VIEWS["revenue"]})
        for number in range(kills):
            change(shop)
            dying = workers[number % 2]
            report = first.ask("refresh", kill=dying.pid, after=0.2 + 0.5 * (number % 5))
            if dying.poll() is None:
                kill_tree(dying.pid)
            dying.wait()
            assert report["ok"], report
            checked(first)
            workers[number % 2] = cluster.add_worker(f"replacement-{number}")
            cluster.wait_for_workers(2)
            said(f"refresh {number + 1} of {kills}: a worker was killed; state {report['state']}")


@contextlib.contextmanager
def connect_server(folder: Path, cluster: Cluster) -> Iterator[str]:
    """A Spark Connect server whose executors are those of the cluster; its address."""
    port = free_port()
    settings = {**SETTINGS, **EXECUTORS, "spark.jars": ",".join(jar_paths()), "spark.driver.memory": "1g"}
    settings |= {"spark.connect.grpc.binding.port": str(port), "spark.connect.grpc.binding.address": HOST}
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url]
    for setting, value in settings.items():
        command += ["--conf", f"{setting}={value}"]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
    with (folder / "connect.log").open("wb") as log:
        server = subprocess.Popen(command, env=environment(folder, {}), stdout=log, stderr=subprocess.STDOUT)
    try:
        deadline = time.monotonic() + 120
        while "Spark Connect server started" not in (folder / "connect.log").read_text():
            assert server.poll() is None and time.monotonic() < deadline, (folder / "connect.log").read_text()[-2000:]
            time.sleep(0.3)
        yield f"sc://{HOST}:{port}"
    finally:
        kill_tree(server.pid)
        server.wait()


def through_connect(folder: Path, project: Path, cluster: Cluster, shop: Shop) -> None:
    """The warehouse that a classic session made is refreshed through a Connect server on the same cluster."""
    with connect_server(folder, cluster) as address, driver(project, folder / "remote.log", remote=address) as remote:
        for _ in range(2):
            change(shop)
            report = remote.ask("refresh")
            assert report["ok"], report
            checked(remote)
        used = sum(application["cores"] for application in cluster.state()["activeapps"])
        assert used == 2, "the server works on the cluster"
        said(f"through {address}, on {used} cores of the cluster; state {report['state']}")


def by_spark_submit(folder: Path, project: Path, cluster: Cluster, shop: Shop) -> None:
    """``spark-submit`` names the cluster; the project does not."""
    change(shop)
    text = (project / "strandline.yml").read_text()
    (project / "strandline.yml").write_text(text.replace(f"spark.master: {cluster.url}", "spark.app.name: submitted"))
    command = [str(spark_home() / "bin" / "spark-submit"), "--master", cluster.url, "--jars", ",".join(jar_paths())]
    for setting, value in {**EXECUTORS, **LITTLE_DATA, "spark.driver.memory": "1g"}.items():
        command += ["--conf", f"{setting}={value}"]
    command += [str(ROOT / "src" / "strandline" / "__main__.py"), "--project", str(project), "refresh"]
    variables = {"PYSPARK_PYTHON": sys.executable, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *sys.path])}
    done = subprocess.run(command, env=environment(folder, variables), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    finished = [application["name"] for application in cluster.state()["completedapps"]]
    assert "submitted" in finished, f"it ran elsewhere than on the cluster, which knows {finished}"
    (project / "strandline.yml").write_text(text)
    with driver(project, folder / "after.log") as after:
        checked(after)
    said("by spark-submit")


def from_another_machine(folder: Path, project: Path, shop: Shop) -> None:
    """A holder whose process cannot be seen is believed for a minute; then its lock is taken over."""
    change(shop)
    with driver(project, folder / "other.log", prefix=ELSEWHERE) as other, driver(project, folder / "here.log") as here:
        if not other.alive():
            said("no process namespaces here: a takeover from another machine was not tried")
            return
        other.tell("refresh", hold=True)
        assert "holds" in other.answer()
        assert "WAREHOUSE_BUSY" in here.ask("refresh")["error"]
        kill_tree(other.process.pid)
        other.process.wait()
        began = time.monotonic()
        assert "WAREHOUSE_BUSY" in here.ask("refresh")["error"], "its machine cannot be seen, so it may be alive"
        report = here.ask("refresh", wait=120)
        assert report["ok"] and report["resumed"], report
        checked(here)
        said(f"the lock of another machine was taken over, and its refresh finished, {time.monotonic() - began:.0f} s")


def change(shop: Shop) -> None:
    shop.place_orders(3)
    shop.change()


def checked(by: Driver) -> None:
    """Every view equals its recomputation."""
    assert by.ask("verify") == {"different": []}


def said(what: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {what}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6)
