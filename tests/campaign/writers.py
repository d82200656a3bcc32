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
from tests.campaign.bank import ACCOUNTS, TOTAL, VIEWS, Bank
from tests.conftest import bag


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
    for name in VIEWS:
        assert bag(tuple(row) for row in warehouse.read(name).collect()) == bag(bank.answer(name)), name
        assert warehouse.verify(name).ok, name
    for table in warehouse.copies():
        assert warehouse.verify_source(table).ok, table
    states = [state.number for state in warehouse.states() if "total" in state.entries]
    for number in states:
        found = [tuple(row) for row in warehouse.read("total", state=number).collect()]
        assert found == [(TOTAL, ACCOUNTS)], f"money was lost in state {number}: {found}"
    return (
        f"{refreshes} refreshes in {seconds:.0f} s, {captured:,} rows captured of {captured:,} written, "
        f"the total held in {len(states)} states, views and copies equal PostgreSQL's own answers"
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
