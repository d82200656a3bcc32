"""Twelve views in a graph with diamonds, whose refreshes are killed: at each of their events, and at random instants.

After each kill the refresh is taken up again, and the warehouse is compared with an undisturbed twin over the same
sources. Every published state is read again later; no step may have committed twice; nothing may be left over.

With ``--marked`` rows that go are marked as in large tables, and some of the ends come right before such a commit, when
new rows are appended already, or right after it.

``python -m tests.campaign.graph [REFRESHES] [SEED] [--marked]``
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from strandline import Warehouse
from strandline.algebra.bag import SignedBag
from strandline.engine.session import Engine
from strandline.sql.names import quoted_list
from tests.campaign import marked
from tests.campaign.bank import VIEWS as BANK_VIEWS
from tests.campaign.bank import Bank
from tests.campaign.evidence import assert_done_once, assert_nothing_left_over, let_age, orphans, stored_rows
from tests.campaign.kill_child import AFTER, BEFORE, LOOK_AHEAD, MARK
from tests.conftest import new_project
from tests.warehouse.shop import VIEWS as SHOP_VIEWS
from tests.warehouse.shop import Shop

VIEWS = {
    **{name: SHOP_VIEWS[name] for name in ("big_orders", "by_product", "busiest", "regions", "overall")},
    "revenue": "SELECT c.region, count(*) AS orders, sum(l.qty * l.price) AS revenue, min(o.day) AS first_day "
    "FROM shop.customers c JOIN shop.orders o ON c.c_id = o.c_id JOIN lake.lines l ON l.o_id = o.o_id "
    "GROUP BY c.region",
    "per_name": "SELECT name, count(*) AS n, max(total) AS most FROM big_orders GROUP BY name",
    **BANK_VIEWS,
    "rich_movers": "SELECT r.owner, m.transfers, count(*) AS accounts FROM rich r JOIN moved m ON m.owner = r.owner "
    "GROUP BY r.owner, m.transfers",
    "everything": "SELECT region AS label, big AS n FROM regions UNION ALL SELECT owner, transfers FROM rich_movers "
    "UNION ALL SELECT name, n FROM per_name",
}
"""Of a lake and of PostgreSQL: orders are below ``regions`` twice, accounts below ``rich_movers``, all below one."""

EXTRA = "CREATE OR REPLACE MATERIALIZED VIEW extra AS SELECT label, sum(n) AS n FROM everything GROUP BY label"


@dataclass(frozen=True)
class Death:
    """When and who: *event* of the refresh (negative: its start), *delay* seconds later, Python, its Spark, or both.

    With a *mark*, events are commits that mark rows, and the end comes before or after one.
    """

    event: int
    delay: float = 0.0
    who: str = "both"
    mark: str = ""


class Graph:
    """A warehouse whose refreshes are killed, over a lake and a PostgreSQL server of its own."""

    def __init__(self, folder: Path, engine: Engine, seed: int, *, marks: bool = False) -> None:
        """With *marks* processes that are killed mark rows in tables of any size."""
        self.folder = folder
        self.engine = engine
        self.random = random.Random(seed)
        self.marks = marks
        self.shop = Shop(folder / "lakes", seed)
        self.shop.create()
        self.bank = Bank(folder / "postgres", seed)
        os.environ["BANK_DSN"] = self.bank.dsn
        self.rows: dict[tuple[int, int], str] = {}
        self.states: dict[int, dict[str, tuple[int, int]]] = {}
        self.make("project")

    def close(self) -> None:
        """Stop what was started."""
        self.bank.close()

    def open(self, project: str = "project") -> Warehouse:
        return Warehouse.open(self.folder / project, spark=self.engine.spark)

    def make(self, project: str) -> None:
        """A warehouse over the sources, filled."""
        new_project(self.folder / project)
        with self.open(project) as warehouse:
            self.shop.declare(warehouse)
            warehouse.add_source("bank", **self.bank.declaration)
            for name, query in VIEWS.items():
                text = f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {query};"
                (self.folder / project / "views" / f"{name}.sql").write_text(text)
            assert warehouse.refresh().ok

    def change(self) -> None:
        """Change all sources."""
        self.shop.place_orders(3)
        for _ in range(2):
            self.shop.change()
        self.bank.transact(5)

    def kill(self, death: Death, statement: str | None = None, *, look_ahead: bool = False) -> str | None:
        """Begin a refresh, or *statement*, in a process that dies; where it was, None if it was done before.

        With *look_ahead* it takes changes in before it plans with them.
        """
        given = [str(self.folder / "project"), str(death.event), str(death.delay), death.who]
        asked = {LOOK_AHEAD: "1"} if look_ahead else {}
        asked |= {MARK: death.mark or "anywhere"} if self.marks or death.mark else {}
        child = subprocess.run(
            [sys.executable, "-m", "tests.campaign.kill_child", *given, *([statement] if statement else [])],
            capture_output=True,
            text=True,
            check=False,
            start_new_session=True,
            env={**os.environ, **asked},
        )
        said = child.stdout.strip().splitlines()
        told = bool(said) and said[-1].startswith(("finished", "failed"))
        assert child.returncode == -9 or (child.returncode == 0 and told), (
            child.returncode,
            said,
            child.stderr[-3000:],
        )
        if not any(line.startswith("killed") for line in said) or (child.returncode == 0 and death.who != "spark"):
            return None
        return f"{said[0]} ({death.who}){' in a definition' if statement else ''}"

    def finish(self) -> None:
        """Take the refresh up again, and check what can be checked without a twin."""
        with self.open() as warehouse:
            crashed = warehouse._catalog.refreshes.unfinished()
            report = warehouse.refresh()
            assert report.ok, report.to_dict()
            assert report.resumed == (crashed.id if crashed else None)
            assert warehouse._catalog.refreshes.unfinished() is None
            assert_done_once(warehouse)
            assert_nothing_left_over(warehouse)
            leaves = [leaf.name for leaf in warehouse._catalog.leaves.all()]
            noted = [(leaf, str(t.position)) for leaf in leaves for t in warehouse._catalog.unit_of_work.since(leaf)]
            assert len(noted) == len(set(noted)), "a transaction is in the unit-of-work log twice"
            self.remember(warehouse, 40)

    def remember(self, warehouse: Warehouse, again: int | None) -> None:
        """What each published state shows; *again* of what is known, or all of it, is read once more."""
        locations = {record.id: record.location for record in warehouse._catalog.views.ever()}
        for state in warehouse.states():
            shown = {name: (entry.view_id, entry.version) for name, entry in state.entries.items()}
            assert self.states.setdefault(state.number, shown) == shown, f"state {state.number} names other versions"
        known = list(self.rows)
        chosen = known if again is None else self.random.sample(known, min(again, len(known)))
        fresh = {key for shown in self.states.values() for key in shown.values() if key not in self.rows}
        for view, version in (*chosen, *sorted(fresh)):
            path = f"{warehouse._project.warehouse_root}/{locations[view]}"
            digest = stored_rows(path, version)
            assert self.rows.setdefault((view, version), digest) == digest, f"{path} at {version} has changed"

    def assert_equal(self, twin: str) -> None:
        """Every view holds the same bag of rows as in another warehouse over the same sources."""
        with self.open() as one, self.open(twin) as other:
            first, second = shown(one, list(VIEWS)), shown(other, list(VIEWS))
            assert {name: rows - second[name] for name, rows in first.items() if rows != second[name]} == {}

    def clean(self) -> int:
        """Let upkeep remove what killed writers left, and see that nothing else went; how many files there were."""
        with self.open() as warehouse:
            left = orphans(warehouse)
            let_age(left)
            report = warehouse.maintain()
            assert report.ok, report.problems
            assert not orphans(warehouse), "data files that belong to nothing were left"
            assert_nothing_left_over(warehouse)
            self.forget_renamed(warehouse)
            self.remember(warehouse, None)
            return len(left)

    def forget_renamed(self, warehouse: Warehouse) -> None:
        """A compacted table is named by a version that has the same rows: it must show what the one before did."""
        locations = {record.id: record.location for record in warehouse._catalog.views.ever()}
        for state in warehouse.states():
            for name, entry in state.entries.items():
                before, now = self.states[state.number][name], (entry.view_id, entry.version)
                if before != now:
                    path = f"{warehouse._project.warehouse_root}/{locations[entry.view_id]}"
                    assert stored_rows(path, entry.version) == self.rows[before], f"{name} in state {state.number}"
                    self.states[state.number][name] = now


def shown(warehouse: Warehouse, views: Sequence[str]) -> dict[str, SignedBag]:
    """The rows of views in the newest state, as texts, read by one query."""
    state, parts = warehouse._published.state(), []
    for name in views:
        entry = warehouse._entry(name, state)
        node = warehouse._published.node(entry)
        columns = quoted_list(f"c{number}" for number in range(len(node.visible)))
        rows = f"({node.select(entry.version)}) AS v({columns})"
        parts.append(f"SELECT '{name}' AS view, to_json(struct({columns})) AS row FROM {rows}")
    with warehouse._engine.step("campaign", "compare", small=True):
        found = warehouse._engine.rows(" UNION ALL ".join(parts))
    return {view: SignedBag.of((row,) for name, row in found if name == view) for view in views}


def main(refreshes: int, seed: int, *, marks: bool) -> None:
    engine = Engine(settings={"spark.driver.memory": "2g"})
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory(prefix="strandline-graph-") as folder,
        marked.everywhere() if marks else nullcontext() as counted,
    ):
        graph = Graph(Path(folder), engine, seed, marks=marks)
        graph.make("twin")
        chance, boundary, killed = random.Random(seed), 0, 0
        for number in range(1, refreshes + 1):
            graph.change()
            who = chance.choice(("python", "both", "both", "spark"))
            if number % 10 == 0:
                where = graph.kill(Death(chance.randrange(4), chance.random(), "both"), EXTRA)
            elif marks and number % 3 == 1:
                mark = Death(
                    chance.randrange(4), 0.0, chance.choice(("python", "both")), chance.choice((BEFORE, AFTER))
                )
                where = graph.kill(mark, look_ahead=chance.random() < 0.5)
            elif number % 3 == 0:
                where = graph.kill(Death(-1, chance.random() * 12, who), look_ahead=chance.random() < 0.5)
            else:
                where = graph.kill(Death(boundary, 0.0, who), look_ahead=chance.random() < 0.5)
                boundary = 0 if where is None else boundary + 1
            killed += where is not None
            if where is not None and chance.random() < 0.25:
                again = graph.kill(Death(chance.randrange(6), 0.0, "both"))
                killed += again is not None
                where += f", then {again or 'nothing more to kill'}"
            graph.finish()
            with graph.open("twin") as twin:
                assert twin.refresh().ok
            graph.assert_equal("twin")
            told = where or "done before its end came"
            print(f"{number}/{refreshes} {time.monotonic() - began:6.0f} s  {told}", flush=True)
        left = graph.clean()
        graph.close()
        states, versions = len(graph.states), len(graph.rows)
    engine.close()
    print(
        f"{refreshes} refreshes, {killed} kills: as if undisturbed; {states} states with {versions} table versions did "
        f"not change, no step was done twice, and {left} files of killed writers were cleared"
        + (f"; rows were marked {counted.call_count} times beside the killed processes" if counted else "")
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.graph")
    parser.add_argument("refreshes", type=int, nargs="?", default=100)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--marked", action="store_true", help="mark rows that go in tables of any size")
    asked = parser.parse_args()
    main(asked.refreshes, asked.seed, marks=asked.marked)
