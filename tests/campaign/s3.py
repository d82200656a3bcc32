"""A warehouse in an object store: an S3 emulator of its own process, Spark through S3A, and delta-rs.

Views over Delta tables and dumps are followed through changes and compared with recomputation; nothing may be left
behind. Then it is tried what protects a commit: writers through delta-rs do not replace each other's, writers through
S3A can.

``python -m tests.campaign.s3 [ROUNDS] [SEED]``; the emulator (moto) and the jars of Hadoop's S3A connector, of which
that of Amazon's SDK has more than 600 MB, are fetched when they are first needed. ``STRANDLINE_S3_FETCHED`` names the
folder for them, by default one in the Python environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml
from deltalake import DeltaTable, write_deltalake
from deltalake.exceptions import DeltaError

from strandline import Warehouse
from strandline.engine import jars, places
from strandline.engine.session import Engine
from strandline.project.folder import Project
from strandline.upkeep.leftovers import leftovers
from tests.cluster.standalone import free_port
from tests.conftest import LITTLE_DATA
from tests.warehouse.shop import VIEWS, Shop, assert_verified, create_views

CONNECTOR = ("org.apache.hadoop:hadoop-aws:3.4.2",)
"""The version of the Hadoop client that PySpark brings."""

EMULATOR = "moto[server]==5.2.5"

BUCKET = "strandline"

ROOT = f"s3a://{BUCKET}/warehouse"


def fetched() -> Path:
    """Where what only this campaign needs is kept."""
    return Path(os.environ.get("STRANDLINE_S3_FETCHED") or jars.jar_folder().parent / "s3")


def storage_options(endpoint: str) -> dict[str, str]:
    """How delta-rs reaches the emulator."""
    return {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ALLOW_HTTP": "true",
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
    }


def spark_settings(endpoint: str) -> dict[str, str]:
    """How Spark reaches the emulator."""
    s3a = {
        "endpoint": endpoint,
        "endpoint.region": "us-east-1",
        "path.style.access": "true",
        "access.key": "someone",
        "secret.key": "secret",
        "connection.ssl.enabled": "false",
    }
    connector = jars.fetch(fetched() / "jars", CONNECTOR)
    return {
        **LITTLE_DATA,
        "spark.jars": ",".join(connector),
        **{f"spark.hadoop.fs.s3a.{name}": value for name, value in s3a.items()},
    }


SERVED = """
import sys
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), DomainDispatcherApplication(create_backend_app), threaded=False)
"""
"""One request after another: with threads the emulator looks whether a file is there before it writes it, not at once
with it, so that of two conditional requests both may be granted; S3 grants one."""


@contextmanager
def emulator(log: Path) -> Iterator[str]:
    """An S3 server with one bucket; its address."""
    environment = fetched() / "emulator"
    python = environment / "bin" / "python"
    if not (environment / "bin" / "moto_server").exists():
        uv = Path(sys.executable).with_name("uv")
        subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, environment], check=True)
        subprocess.run([uv, "pip", "install", "--quiet", "--python", python, EMULATOR], check=True)
    port = free_port()
    with log.open("w") as file:
        server = subprocess.Popen([python, "-c", SERVED, str(port)], stdout=file, stderr=subprocess.STDOUT)
    try:
        endpoint = f"http://127.0.0.1:{port}"
        for _ in range(300):
            try:
                urllib.request.urlopen(urllib.request.Request(f"{endpoint}/{BUCKET}", method="PUT"), timeout=5)
                break
            except OSError:
                time.sleep(0.1)
        yield endpoint
    finally:
        server.kill()
        server.wait()


class RemoteShop(Shop):
    """The shop, with its lakes in the object store."""

    def __init__(self, options: dict[str, str], seed: int) -> None:
        super().__init__(Path("unused"), seed)
        # What delta-rs is not told, it looks up in the environment.
        os.environ.update(options)

    def path(self, table: str) -> str:
        lake = "lake" if table == "lines" else "shop"
        return f"s3a://{BUCKET}/{lake}/{table}"

    def declare(self, warehouse: Warehouse) -> None:
        warehouse.add_source("shop", kind="delta", path=f"s3a://{BUCKET}/shop")
        warehouse.add_source("lake", kind="delta", path=f"s3a://{BUCKET}/lake")


def follow(folder: Path, engine: Engine, shop: RemoteShop, rounds: int) -> None:
    """Views over the shop, and over dumps, through changes; and upkeep."""
    dumps = folder / "dumps" / "stock"
    dumps.mkdir(parents=True)
    with Warehouse.open(folder / "project", spark=engine.spark) as warehouse:
        shop.declare(warehouse)
        dump(dumps, 0)
        keys = {"stock": ["product"]}
        warehouse.add_source("dumps", kind="files", path=str(dumps.parent), format="csv", keys=keys, settle=0)
        create_views(warehouse, VIEWS | {"stock": "SELECT product, pieces FROM dumps.stock WHERE pieces > 2"})
        for number in range(1, rounds + 1):
            changes = [shop.change() for _ in range(3)]
            dump(dumps, number)
            report = warehouse.refresh()
            assert report.ok, report.to_dict()
            told = ", ".join(f"{name} {view.strategy}" for name, view in report.views.items())
            print(f"round {number}: {', '.join(changes)}: {told}; {report.seconds:.1f} s", flush=True)
        assert_verified(warehouse)
    # S3A marks folders by empty files, and may leave them.
    left = [file for file in places.files(f"{ROOT}/deltas", engine.storage_options) if file.bytes]
    assert not left, f"stored deltas were left: {left}"


def dump(folder: Path, number: int) -> None:
    lines = [f"p{i},{(i * 7 + number * 3) % 11}" for i in range(8 + number % 3)]
    (folder / f"stock-{number:03d}.csv").write_text("\n".join(["product,pieces", *lines]) + "\n")


def keep_up(folder: Path, engine: Engine) -> None:
    """Upkeep of tables in the store, and of what a crash left there."""
    options = engine.storage_options
    places.write_text(f"{ROOT}/views/half_made-0000", "part-0.parquet", "x", options)
    with Warehouse.open(folder / "project", spark=engine.spark) as warehouse:
        report = warehouse.maintain()
        assert report.ok and not report.leftovers, report.to_dict()
        catalog, later = warehouse._catalog, datetime.now(UTC) + timedelta(days=2)
        found = [left.path for left in leftovers(catalog, ROOT, later, timedelta(days=7), options)]
        assert f"{ROOT}/views/half_made-0000" in found and len(found) == 1, found
        assert_verified(warehouse)
        warehouse.drop("overall")
    print(f"upkeep: {len(report.tables)} tables, {report.bytes_freed:,} bytes freed", flush=True)


def write_twice(engine: Engine) -> None:
    """What a commit of Spark's rests on: a file that is there is not replaced, but one that comes in between is.

    Nothing of this is ours. It is what the lock of a warehouse has to make up for; it may change with Hadoop or Delta.
    """
    assert second_writer(engine, "", at_once=False) == "refused"
    assert second_writer(engine, "", at_once=True) == "replaced"
    assert second_writer(engine, "create", at_once=False) == "replaced", "the flag is worse than none"
    print("of two writers through S3A the second is refused, unless both looked before either wrote", flush=True)


def second_writer(engine: Engine, flags: str, *, at_once: bool) -> str:
    """What becomes of the second of two writers of a file, who looked *at once* whether it is there or in turn."""
    spark: Any = engine.spark
    java = spark._jvm
    settings = java.org.apache.hadoop.conf.Configuration(spark.sparkContext._jsc.hadoopConfiguration())
    settings.set("fs.s3a.performance.flags", flags)
    path = java.org.apache.hadoop.fs.Path(f"s3a://{BUCKET}/twice/{flags}-{at_once}.json")
    with hadoop_files(java, path, settings) as files:
        first = files.create(path, False)
        second = files.create(path, False) if at_once else None
        first.write(bytearray(b"first"))
        first.close()
        try:
            second = second or files.create(path, False)
            second.write(bytearray(b"second"))
            second.close()
        except Exception:
            return "refused"
    return "replaced"


@contextmanager
def hadoop_files(java: Any, path: Any, settings: Any) -> Iterator[Any]:
    """Hadoop's view of the store, with settings of its own."""
    files = java.org.apache.hadoop.fs.FileSystem.newInstance(path.toUri(), settings)
    try:
        yield files
    finally:
        files.close()


def race(engine: Engine, commits: int) -> None:
    """Several writers append to one table at the same time through delta-rs; what was committed is there, once."""
    path, options = f"s3a://{BUCKET}/raced", engine.storage_options
    write_deltalake(path, pa.table({"n": pa.array([0], pa.int64())}), storage_options=options)
    acknowledged: list[int] = [0]
    refused: list[str] = []

    def writer(first: int) -> None:
        for number in range(first, first + commits):
            row = pa.table({"n": pa.array([number], pa.int64())})
            try:
                write_deltalake(path, row, mode="append", storage_options=options)
            except DeltaError as error:
                refused.append(str(error))
            else:
                acknowledged.append(number)

    threads = [threading.Thread(target=writer, args=(1000 * k,)) for k in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    table = DeltaTable(path, storage_options=options)
    rows = table.to_pyarrow_table().column("n").to_pylist()
    assert sorted(rows) == sorted(acknowledged), (
        f"{len(acknowledged)} commits were acknowledged, and there are {len(rows)} rows; lost: "
        f"{sorted({*acknowledged} - {*rows})}, never acknowledged: {sorted({*rows} - {*acknowledged})}; {refused}"
    )
    told = f"{len(acknowledged)} commits through delta-rs, none lost, {len(refused)} refused"
    print(f"race: {told}, version {table.version()}", flush=True)


def main(rounds: int, seed: int) -> None:
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strandline-s3-") as name:
        folder = Path(name)
        with emulator(folder / "emulator.log") as endpoint:
            options, settings = storage_options(endpoint), spark_settings(endpoint)
            shop = RemoteShop(options, seed)
            shop.create()
            Project.create(folder / "project")
            lines = (folder / "project" / "strandline.yml").read_text().replace("\nwarehouse: warehouse\n", "\n")
            more = yaml.safe_dump({"warehouse": ROOT, "storage_options": options})
            (folder / "project" / "strandline.yml").write_text(lines + more)
            engine = Engine(settings=settings, storage_options=options)
            try:
                follow(folder, engine, shop, rounds)
                keep_up(folder, engine)
                write_twice(engine)
                race(engine, 15)
            finally:
                engine.close()
    print(f"{rounds} rounds in {time.monotonic() - began:.0f} s: every view equals its recomputation, nothing was left")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 6, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
