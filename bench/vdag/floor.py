"""What a term and an install cost if there is nothing to do: an empty query that is stored, and an empty commit."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from pathlib import Path

from strandline.algebra.schema import Column
from strandline.engine.session import Engine
from strandline.sql.relations import empty_select

_COLUMNS = (Column("a", "bigint"),)


def floors(engine: Engine, folder: Path) -> tuple[float, float]:
    """The medians of several tries, in seconds: of a term, and of a commit."""
    rows = empty_select(_COLUMNS)
    table, files = str(folder / "empty"), str(folder / "nothing")
    with engine.step("floor", "empty", small=False):
        engine.write_delta(rows, table, "error", "made")
        term = _median(lambda: engine.write_parquet(rows, files))
        commit = _median(lambda: engine.write_delta(rows, table, "append", "empty"))
    return term, commit


def _median(action: Callable[[], object]) -> float:
    seconds = []
    for _ in range(7):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
