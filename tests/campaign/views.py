"""Random views through random changes on Spark: the incremental result equals recomputation.

``python -m tests.campaign.views [VIEWS] [SEED] [--by-spark]``; with the flag nothing is computed without Spark.
"""

from __future__ import annotations

import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path

from strandline import Warehouse
from strandline.engine.session import Engine
from tests.campaign import by_spark
from tests.campaign.random_sql import OPEN, Generator
from tests.campaign.together import different

BY_SPARK = "--by-spark"


def run(folder: Path, engine: Engine, seed: int, views: int, rounds: int) -> dict[str, int]:
    """Create *views* views, change the tables *rounds* times, verify each time; how often each strategy was taken."""
    generator = Generator(seed)
    source = generator.source()
    taken: dict[str, int] = {}
    queries: dict[str, str] = {}
    with Warehouse.open(folder, spark=engine.spark) as warehouse:
        warehouse.attach(source)
        for number in range(views):
            query = queries[f"v{number}"] = generator.view(f"v{number}")
            warehouse.sql(f"CREATE MATERIALIZED VIEW v{number} REFRESH POLICY INCREMENTAL AS {query}")
        for _ in range(rounds):
            generator.change(source)
            report = warehouse.refresh()
            assert report.ok, {
                name: (queries.get(name), view.problem) for name, view in report.views.items() if view.problem
            }
            for name, view in report.views.items():
                assert view.strategy != "full" or view.reason.code in OPEN, (name, queries[name], view.to_dict())
                taken[view.strategy] = taken.get(view.strategy, 0) + 1
            wrong = different(warehouse, list(queries))
            assert not wrong, {name: (queries[name], rows) for name, rows in wrong.items()}
    return taken


def main(views: int, seed: int) -> None:
    engine = Engine(settings={"spark.driver.memory": "2g"})
    began, batch = time.monotonic(), 8
    for number in range(0, views, batch):
        with tempfile.TemporaryDirectory(prefix="strandline-views-") as folder:
            taken = run(Path(folder) / "project", engine, seed + number, batch, rounds=2)
        print(f"{number + batch}/{views} views {time.monotonic() - began:6.0f} s  {taken}", flush=True)
    engine.close()
    print(f"{views} random views, 2 rounds of changes each: every one equals its recomputation")


if __name__ == "__main__":
    numbers = [int(each) for each in sys.argv[1:] if each != BY_SPARK]
    with by_spark.everything() if BY_SPARK in sys.argv else nullcontext():
        main(*[*numbers, *(100, 1)[len(numbers) :]])
