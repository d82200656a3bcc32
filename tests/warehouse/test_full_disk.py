"""A disk without space: a clear outcome, views keep their last state, and with space again nothing was lost."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline import StrandlineError, Warehouse
from strandline.engine.session import Engine
from strandline.propagate.report import RefreshReport
from tests.conftest import bag, rows_shown

pytestmark = pytest.mark.spark

Full = Callable[[], AbstractContextManager[None]]

LIMIT = 1 << 20
"""More than the catalog has, less than the change that is to be taken in."""


@contextmanager
def no_large_files() -> Iterator[None]:
    """Within, no file of this process grows beyond a megabyte: the limit that every machine has."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@contextmanager
def little_space(folder: Path) -> Iterator[None]:
    """Within, the disk that is mounted at *folder* has hardly any space."""
    filler = folder / "filler"
    with filler.open("wb") as file:
        try:
            for size in (1 << 20, 1 << 14, 1 << 10):
                while file.write(b"x" * size):
                    file.flush()
        except OSError:
            pass
    with filler.open("r+b") as file:
        file.truncate(max(0, filler.stat().st_size - (LIMIT >> 1)))
    try:
        yield
    finally:
        filler.unlink()


@pytest.fixture(params=["no file above a limit", "a small disk"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, Full]]:
    """A folder for a project, and how its disk is made full."""
    if request.param != "a small disk":
        yield tmp_path / "project", no_large_files
        return
    mount = tmp_path / "disk"
    mount.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", str(mount)]
    made = subprocess.run(command, check=False, capture_output=True)
    if made.returncode:
        pytest.skip("this user may not mount a disk; the other case has a limit that needs no right")
    yield mount / "project", lambda: little_space(mount)
    subprocess.run(["umount", "-l", str(mount)], check=True)


def append(folder: Path, table: str, count: int) -> None:
    """Rows of a kilobyte each: few are much to store, and little to compute with."""
    chance = np.random.default_rng(count)
    rows = pa.table({"a": [chance.bytes(500).hex() for _ in range(count)]})
    write_deltalake(str(folder / "lake" / table), rows, mode="append")


def test_a_full_disk_is_said_and_with_space_again_nothing_was_lost(
    place: tuple[Path, Full], tmp_path: Path, engine: Engine
) -> None:
    project, full = place
    for table in ("large", "little"):
        append(tmp_path, table, 10)
    with Warehouse.open(project, spark=engine.spark) as warehouse:
        warehouse.add_source("lake", kind="delta", path=str(tmp_path / "lake"))
        for table in ("large", "little"):
            text = f"CREATE MATERIALIZED VIEW {table} REFRESH POLICY INCREMENTAL AS SELECT a FROM lake.{table};"
            (project / "views" / f"{table}.sql").write_text(text)
        assert warehouse.refresh().ok
        before = {name: bag(rows_shown(warehouse, name)) for name in ("large", "little")}
        append(tmp_path, "large", 4_000)
        append(tmp_path, "little", 3)
        with full():
            outcome = refreshed(warehouse)
            if isinstance(outcome, RefreshReport):
                problem, root = str(outcome.views["large"].problem), warehouse._project.warehouse_root
                assert f"DISK_FULL: no space is left at {root}; make space there, and refresh again" in problem, problem
                # Steps run side by side: while the large one holds what is left of the disk, the little one finds none,
                # neither for its own delta nor for that of its input.
                other = outcome.views["little"].problem
                assert other is None or (
                    full is not no_large_files and f"DISK_FULL: no space is left at {root}" in other
                ), other
            else:
                assert outcome.code == "CATALOG_FULL", outcome
            for name, rows in before.items():
                assert bag(rows_shown(warehouse, name, 1)) == rows
            assert bag(rows_shown(warehouse, "large")) == before["large"]
        report = warehouse.refresh()
        assert report.ok, report.to_dict()
        assert warehouse.read("large").count() == 4_010
        assert warehouse.verify("large").ok and warehouse.verify("little").ok
        assert not list((Path(warehouse._project.warehouse_root) / "deltas").glob("*"))


def refreshed(warehouse: Warehouse) -> RefreshReport | StrandlineError:
    """What came of a refresh: a report, or an error of ours and no other."""
    try:
        return warehouse.refresh()
    except StrandlineError as error:
        return error
