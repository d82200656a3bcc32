"""What there is to pay if there is nothing to do: an empty query that is stored, an empty commit, an empty job."""

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
        engine.write_delta(rows, table, "overwrite", "made")
        term = median(lambda: engine.write_parquet(rows, files))
        commit = median(lambda: engine.write_delta(rows, table, "append", "empty"))
    return term, commit


def empty_job(engine: Engine) -> float:
    """The median of several tries, in seconds."""
    with engine.step("floor", "job", small=True):
        return median(lambda: engine.rows("SELECT count(*) FROM range(1)"))


def median(action: Callable[[], object], tries: int = 7) -> float:
    """The median of the seconds that *action* takes."""
    seconds = []
    for _ in range(tries):
        began = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
