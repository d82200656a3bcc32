"""How the rows of a table lie in its files: in ranges of its key, where changes are looked for in it."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline import Warehouse
from strandline.engine import step_settings
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.store import install
from tests.campaign import by_spark

pytestmark = pytest.mark.spark

ROWS = 400
QUERY = "SELECT k, j, count(*) AS n FROM lake.t GROUP BY k, j"


@pytest.fixture
def warehouse(tmp_path: Path, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Iterator[Warehouse]:
    """Over a table whose keys lie in no order."""
    keys = [(17 * number) % ROWS for number in range(ROWS)]
    rows = {"k": pa.array(keys, pa.int64()), "j": [ROWS - key for key in keys], "x": [0.5 * key for key in keys]}
    write_deltalake(str(tmp_path / "lake" / "t"), pa.table(rows))
    with by_spark.everything(), Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        # Little data would be written as one file: without Spark, or after Spark has put small parts together.
        monkeypatch.setattr("strandline.propagate.step_maker.SMALL_BYTES", 0)
        monkeypatch.setitem(step_settings._COMPILED, "spark.sql.adaptive.enabled", "false")
        warehouse.add_source("lake", kind="delta", path=str(tmp_path / "lake"))
        yield warehouse


def fill(warehouse: Warehouse, options: str = "", query: str = QUERY) -> DeltaLog:
    warehouse.sql(f"CREATE MATERIALIZED VIEW v {options} AS {query}")
    warehouse.refresh()
    return DeltaLog(warehouse._refreshing.node("v").path)


def ranges(log: DeltaLog, column: str) -> list[tuple[int, int]]:
    """Those of the files, in order."""
    files = log.files()
    found = files.spans(column, set(files.paths))
    assert found is not None
    return sorted(found[0])


def apart(found: list[tuple[int, int]]) -> bool:
    return all(high < low for (_, high), (low, _) in pairwise(found))


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """No table is tiny."""
    monkeypatch.setattr(install, "TINY_ROWS", 0)
    monkeypatch.setattr(install, "TINY_BYTES", 0)


def listened_to(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are run from here on."""
    found: list[str] = []
    frame = Engine._frame

    def noted(self: Engine, sql: str) -> Any:
        found.append(sql)
        return frame(self, sql)

    monkeypatch.setattr(Engine, "_frame", noted)
    return found


def test_a_keyed_table_lies_in_ranges_of_its_first_key_column(warehouse: Warehouse, large: None) -> None:
    log = fill(warehouse)
    found = ranges(log, "k")
    assert len(found) > 1 and log.size().rows == ROWS
    assert apart(found)
    assert warehouse.verify("v").ok
    # Also when it is filled anew.
    warehouse.refresh("v", full=True)
    assert len(ranges(log, "k")) > 1 and apart(ranges(log, "k"))
    assert warehouse.verify("v").ok


def test_a_tiny_table_is_filled_anew_as_it_comes(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(warehouse)
    statements = listened_to(monkeypatch)
    warehouse.refresh("v", full=True)
    assert any("count" in sql for sql in statements)
    assert not [sql for sql in statements if "REPARTITION_BY_RANGE" in sql]
    assert warehouse.verify("v").ok


def test_rows_are_laid_out_as_the_view_says(warehouse: Warehouse, large: None, monkeypatch: pytest.MonkeyPatch) -> None:
    statements = listened_to(monkeypatch)
    fill(warehouse, "CLUSTER BY (j)")
    assert [sql for sql in statements if sql.endswith("SORT BY `j`")]
    assert not [sql for sql in statements if "REPARTITION_BY_RANGE" in sql]
    assert warehouse.verify("v").ok


@pytest.mark.parametrize(
    "query",
    ["SELECT k, x FROM lake.t", "SELECT x, count(*) AS n FROM lake.t GROUP BY x"],
    ids=["no key", "no literals"],
)
def test_rows_without_a_key_that_files_are_skipped_by_lie_as_they_come(
    warehouse: Warehouse, large: None, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    statements = listened_to(monkeypatch)
    fill(warehouse, query=query)
    assert statements and not [sql for sql in statements if "REPARTITION_BY_RANGE" in sql]
    assert warehouse.verify("v").ok
