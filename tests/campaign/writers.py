"""Writers on several tables of PostgreSQL during first copy, capture and refresh: everything arrives, once, and whole.

``python -m tests.campaign.writers [SECONDS] [SEED]``
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path

from strandline import Warehouse
from strandline.engine.session import Engine
from tests.campaign.bank import VIEWS, Bank, money_held


def follow(folder: Path, engine: Engine, seconds: float, seed: int = 1) -> str:
    """Write for so long while a warehouse follows, then check everything; what was seen, in a line."""
    bank = Bank(folder / "postgres", seed, writers=3)
    os.environ["BANK_DSN"] = bank.dsn
    try:
        with Warehouse.open(folder / "project", spark=engine.spark) as warehouse:
            return _follow(warehouse, bank, seconds)
    finally:
        bank.close()


def _follow(warehouse: Warehouse, bank: Bank, seconds: float) -> str:
    with bank:
        warehouse.add_source("bank", **bank.declaration)
        for name, query in VIEWS.items():
            warehouse.sql(f"CREATE MATERIALIZED VIEW {name} AS {query}")
    assert warehouse.refresh().ok
    written, captured, refreshes = bank.transfers, 0, 0
    deadline = time.monotonic() + seconds
    with bank:
        while time.monotonic() < deadline:
            report = warehouse.refresh()
            assert report.ok, report.to_dict()
            captured += _rows(report)
            refreshes += 1
    last = warehouse.refresh()
    captured += _rows(last)
    # A transfer is a row, and changes two accounts.
    assert captured == 3 * (bank.transfers - written), (captured, bank.transfers - written)
    states = money_held(warehouse, bank)
    return (
        f"{refreshes} refreshes in {seconds:.0f} s, {captured:,} rows captured of {captured:,} written, "
        f"the total held in {states} states, views and copies equal PostgreSQL's own answers"
    )


def _rows(report: object) -> int:
    captured = getattr(report, "captured", {})
    return sum(n for source in captured.values() for counts in source.rows.values() for n in counts.values())


if __name__ == "__main__":
    engine = Engine(settings={"spark.driver.memory": "2g"})
    with tempfile.TemporaryDirectory(prefix="strandline-writers-") as found:
        arguments = [float(sys.argv[1]) if len(sys.argv) > 1 else 120.0, int(sys.argv[2]) if len(sys.argv) > 2 else 1]
        print(follow(Path(found), engine, arguments[0], int(arguments[1])))
    engine.close()
