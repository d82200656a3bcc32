"""All 22 queries through cycles of changes: ``python -m tests.campaign.tpch [SCALE] [CYCLES] [QUERY ...]``."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from strandline.engine.session import Engine
from tests.campaign.tpch.following import follow, queries, strategy_of


def main(scale: float, cycles: int, names: list[str]) -> None:
    """Follow the queries, and print how each is maintained."""
    engine = Engine(settings={"spark.driver.memory": "3g"})
    began = time.monotonic()
    views = [view for view in queries() if not names or view.name in names]
    with tempfile.TemporaryDirectory(prefix="strandline-tpch-") as folder:
        reports = follow(
            Path(folder),
            engine,
            views,
            scale,
            cycles,
            lambda text: print(f"{time.monotonic() - began:6.0f} s  {text}", flush=True),
        )
        for view in views:
            seconds = max(report.views[view.name].seconds for report in reports)
            print(f"{view.name:4} {strategy_of(view, reports):12} {seconds:6.1f} s at most")
    engine.close()


if __name__ == "__main__":
    main(
        float(sys.argv[1]) if len(sys.argv) > 1 else 0.1,
        int(sys.argv[2]) if len(sys.argv) > 2 else 4,
        sys.argv[3:],
    )
