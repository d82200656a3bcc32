"""Refreshes killed with SIGKILL at random points, and taken up again: nothing lost, nothing twice.

The sources are Delta tables and a PostgreSQL server that is written to all the time, and sometimes killed as well.

``python -m tests.campaign.kill [KILLS] [SEED]``
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from strandline import Warehouse
from strandline.engine.session import Engine
from tests.campaign.bank import ACCOUNTS, TOTAL, Bank
from tests.campaign.bank import VIEWS as BANK_VIEWS
from tests.conftest import bag, rows_shown
from tests.warehouse.shop import VIEWS, Shop, assert_verified, create_views

SOME_VIEWS = {
    "big_orders": VIEWS["big_orders"],
    "by_product": VIEWS["by_product"],
    "per_name": "SELECT name, count(*) AS n, max(total) AS most FROM big_orders GROUP BY name",
}
"""A join, an aggregate of another source, and a view on a view."""


class Campaign:
    """One warehouse whose refreshes are killed again and again."""

    def __init__(self, folder: Path, engine: Engine, seed: int) -> None:
        self.folder = folder
        self.engine = engine
        self.random = random.Random(seed)
        self.shop = Shop(folder / "lakes", seed)
        self.shop.create()
        self.bank = Bank(folder / "postgres", seed)
        os.environ["BANK_DSN"] = self.bank.dsn
        with self.bank, self.open() as warehouse:
            self.shop.declare(warehouse)
            warehouse.add_source("bank", **self.bank.declaration)
            create_views(warehouse, SOME_VIEWS | BANK_VIEWS)
        self.states: dict[tuple[int, str], Any] = {}
        self.remember()

    def close(self) -> None:
        """Stop what was started."""
        self.bank.close()

    def open(self) -> Warehouse:
        return Warehouse.open(self.folder / "project", spark=self.engine.spark)

    def remember(self) -> None:
        """What each published state shows, and that none has changed since it was first seen."""
        with self.open() as warehouse:
            for state in warehouse.states():
                for name, entry in state.entries.items():
                    if name.startswith("block "):
                        continue
                    key = (state.number, name)
                    if key not in self.states or self.random.random() < 0.1:
                        rows = bag(rows_shown(warehouse, name, state.number))
                        noted = (entry.version, dict(entry.positions), rows)
                        assert self.states.setdefault(key, noted) == noted, f"state {key} has changed"
                    assert self.states[key][:2] == (entry.version, dict(entry.positions))
                    if name == "total":
                        assert dict(self.states[key][2]) == {(TOTAL, ACCOUNTS): 1}, f"money was lost in state {key}"

    def kill_once(self) -> str | None:
        """Change the sources, kill a refresh in the middle, finish it, and check everything.

        Where it was killed; None if it was done before its end came.
        """
        self.shop.place_orders(3)
        for _ in range(2):
            self.shop.change()
        event = self.random.randrange(-10, 24)
        delay = self.random.choice([0.0, 0.0, self.random.random() * 1.5]) if event >= 0 else self.random.random() * 2
        with_spark = self.random.random() < 0.5
        command = [sys.executable, "-m", "tests.campaign.kill_child", str(self.folder / "project")]
        server_too = self.random.random() < 0.2
        with self.bank:
            time.sleep(0.3)
            child = subprocess.run(
                [*command, str(event), str(delay), "both" if with_spark else "python"],
                capture_output=True,
                text=True,
                check=False,
            )
            if server_too:
                self.bank.server.kill()
                self.bank.server.restart()
        said = child.stdout.strip().splitlines()
        assert child.returncode == -9 or said[-1:] == ["finished"], (
            child.returncode,
            child.stdout,
            child.stderr[-2000:],
        )
        with self.open() as warehouse:
            crashed = warehouse._catalog.refreshes.unfinished()
            report = warehouse.refresh()
            assert report.ok, report.to_dict()
            assert (report.resumed is not None) == (crashed is not None)
            assert warehouse._catalog.refreshes.unfinished() is None
            assert_verified(warehouse)
            for name in BANK_VIEWS:
                shown = bag(rows_shown(warehouse, name))
                assert shown == bag(self.bank.answer(name)), f"{name} is not what PostgreSQL says"
            leaves = [leaf.name for leaf in warehouse._catalog.leaves.all()]
            noted = [(leaf, str(t.position)) for leaf in leaves for t in self._log(warehouse, leaf)]
            assert len(noted) == len(set(noted)), "a transaction is in the unit-of-work log twice"
            assert not list((Path(warehouse._project.warehouse_root) / "deltas").glob("*")), "stored deltas were left"
            assert all(warehouse.verify_source(name).ok for name in warehouse.copies())
        self.remember()
        if child.returncode == 0:
            return None
        also = [", Spark too"] * with_spark + [", then PostgreSQL"] * server_too
        return f"{said[0] if said else 'killed before the first step'}{''.join(also)}"

    def _log(self, warehouse: Warehouse, leaf: str) -> Any:
        return warehouse._catalog.unit_of_work.since(leaf)


def main(kills: int, seed: int) -> None:
    engine = Engine(settings={"spark.driver.memory": "2g"})
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="strandline-kill-") as folder:
        campaign = Campaign(Path(folder), engine, seed)
        killed = 0
        while killed < kills:
            where = campaign.kill_once()
            killed += where is not None
            print(
                f"{killed}/{kills} {time.monotonic() - began:6.0f} s  {where or 'done before its end came'}", flush=True
            )
        campaign.close()
    engine.close()
    print(f"{kills} kills, {len(campaign.states)} published views checked: nothing lost, nothing twice")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 30, int(sys.argv[2]) if len(sys.argv) > 2 else 1)
