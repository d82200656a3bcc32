"""The whole corpus through random changes: ``python -m tests.campaign.corpus [SEEDS] [NAME ...] [FLAG]``.

A seed is a lake, a warehouse with all views, and rounds of changes. Names, or sections, choose some of the views. With
``--sought`` rows are sought and inner deltas stored as if the tables were large; with ``--marked`` rows that go are
marked as in large ones; with ``--by-spark`` nothing is done without Spark.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from strandline.engine.session import Engine
from tests.campaign import by_spark, marked, sought
from tests.campaign.corpus.definitions import Definition, definitions, graph
from tests.campaign.corpus.following import Following

FLAGS = {"--sought": sought.everywhere, "--marked": marked.everywhere, "--by-spark": by_spark.everything}


def main(seeds: Sequence[int], views: Sequence[Definition]) -> None:
    """Follow *views* once for each seed."""
    engine = Engine(settings={"spark.driver.memory": "3g"})
    began = time.monotonic()

    def said(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    for seed in seeds:
        with (
            tempfile.TemporaryDirectory(prefix="strandline-corpus-") as folder,
            Following(Path(folder), engine, seed, views) as following,
        ):
            said(f"seed {seed}: {len(views)} views are created")
            following.fill()
            said("filled")
            lake = following.lake
            rounds = [lake.change, lake.change, lake.rewrite, lake.change, lake.empty, lake.refill, lake.change]
            for number, change in enumerate(rounds, 1):
                report = following.round(change)
                taken = [view.strategy for view in report.views.values()]
                counts = ", ".join(f"{taken.count(kind)} {kind}" for kind in sorted(set(taken)))
                said(f"round {number} ({change.__name__}): {counts}; each equals its recomputation")
    engine.close()


if __name__ == "__main__":
    wanted = {*sys.argv[2:]} - FLAGS.keys()
    chosen = [view for view in (*definitions(), *graph()) if not wanted or wanted & {view.name, view.section}]
    with ExitStack() as stack:
        for flag in FLAGS.keys() & {*sys.argv}:
            stack.enter_context(FLAGS[flag]())
        main(range(1, 1 + (int(sys.argv[1]) if len(sys.argv) > 1 else 3)), chosen)
