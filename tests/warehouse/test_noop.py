"""Nothing to do means nothing done: no write, no Spark job, no JVM."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from strandline import Warehouse
from tests.warehouse.shop import Shop

REFRESH = """
import json, sys
import psutil
from strandline import Warehouse
with Warehouse.open(sys.argv[1]) as warehouse:
    report = warehouse.refresh()
    plan = warehouse.plan()
    started = warehouse._engine.started
print(json.dumps({
    "strategies": sorted({view.strategy for view in report.views.values()}),
    "state": report.state,
    "empty": plan.empty,
    "started": started,
    "children": [p.name() for p in psutil.Process().children(recursive=True)],
    "pyspark": any(name.split(".")[0] == "pyspark" for name in sys.modules),
}))
"""


def everything_below(folder: Path) -> dict[str, tuple[int, bytes]]:
    files = [f for f in folder.rglob("*") if f.is_file() and not f.name.endswith(("-shm", "-wal"))]
    return {str(f): (f.stat().st_mtime_ns, f.read_bytes()) for f in files}


@pytest.mark.spark
def test_a_refresh_without_changes_writes_nothing_and_starts_no_jvm(
    warehouse: Warehouse, shop: Shop, tmp_path: Path
) -> None:
    warehouse.sql("CREATE MATERIALIZED VIEW v AS SELECT c_id, count(*) AS n FROM shop.orders GROUP BY c_id")
    warehouse.sql("CREATE MATERIALIZED VIEW w AS SELECT max(n) AS n FROM v")
    warehouse.close()
    before = everything_below(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", REFRESH, str(tmp_path / "project")], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == {
        "strategies": ["none"],
        "state": 2,
        "empty": True,
        "started": False,
        "children": [],
        "pyspark": False,
    }
    assert everything_below(tmp_path) == before
