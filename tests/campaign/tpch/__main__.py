"""All 22 queries through cycles of changes: ``python -m tests.campaign.tpch [SCALE] [CYCLES] [QUERY ...]``."""

from __future__ import annotations

import argparse
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from strandline.engine.session import Engine
from tests.campaign import by_spark, marked, sought
from tests.campaign.tpch.following import follow, queries, recomputed, strategy_of


def main(scale: float, cycles: int, names: list[str], policy: str, one_in: int | None) -> None:
    """Follow the queries, and print how each is maintained."""
    engine = Engine(settings={"spark.driver.memory": "3g"})
    began = time.monotonic()

    def said(text: str) -> None:
        print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True)

    views = [view for view in queries() if not names or view.name in names]
    with tempfile.TemporaryDirectory(prefix="strandline-tpch-") as folder:
        reports = follow(Path(folder), engine, views, scale, cycles, said, policy=policy, one_in=one_in)
        for view in views:
            seconds = max(report.views[view.name].seconds for report in reports)
            print(f"{view.name:4} {strategy_of(view, reports):12} {seconds:6.1f} s at most")
        for number, report in enumerate(reports, 1):
            for name, reason in recomputed(report).items():
                print(f"cycle {number}: {name} was recomputed: {reason}")
    engine.close()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.tpch", description=__doc__)
    parser.add_argument("scale", type=float, nargs="?", default=0.1, help="the scale factor of TPC-H")
    parser.add_argument("cycles", type=int, nargs="?", default=4, help="how often the tables change")
    parser.add_argument("queries", nargs="*", help="q1, q2, ...; all 22 if none is named")
    parser.add_argument("--policy", default="incremental strict", help="how views are declared: auto, full, ...")
    parser.add_argument(
        "--one-in", type=int, help="change one row in so many of the large tables with each statement, and no other"
    )
    parser.add_argument("--sought", action="store_true", help="seek rows in tables of any size, by any number of keys")
    parser.add_argument("--marked", action="store_true", help="mark rows that go in tables of any size")
    parser.add_argument("--by-spark", action="store_true", help="compute nothing without Spark")
    return parser.parse_args()


if __name__ == "__main__":
    asked = _arguments()
    with ExitStack() as stack:
        if asked.by_spark:
            stack.enter_context(by_spark.everything())
        marks = stack.enter_context(marked.everywhere()) if asked.marked else None
        tables = stack.enter_context(sought.everywhere()) if asked.sought else []
        main(asked.scale, asked.cycles, asked.queries, asked.policy.upper(), asked.one_in)
        print(f"rows were sought {len(tables)} times, and marked {marks.call_count if marks else 0} times")
