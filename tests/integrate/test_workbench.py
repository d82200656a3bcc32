"""Signed rows that are stored for the steps of a refresh, and read again."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.schema import Column
from strandline.integrate.workbench import loaded, store

COLUMNS = tuple(
    Column(f"c{number}", type_)
    for number, type_ in enumerate(
        ("int", "string", "decimal(6,2)", "double", "timestamp", "timestamp_ntz", "date", "binary", "array<bigint>")
    )
)
NOON = datetime(2024, 2, 29, 12, 0, 0, 123456)
ROW = (1, "ä", Decimal("1.50"), float("nan"), NOON.replace(tzinfo=UTC), NOON, date(1, 1, 1), b"\0", (1, None))


@pytest.mark.parametrize("prefix", ["", "file://"], ids=["a folder", "an object store"])
def test_stored_rows_are_read_as_they_were(tmp_path: Path, prefix: str) -> None:
    rows = SignedBag([(ROW, 2), ((None,) * len(COLUMNS), -3)])
    path = f"{prefix}{tmp_path}/rows"
    (tmp_path / "rows").mkdir()
    store(rows, COLUMNS, path, {})
    assert loaded(path, {}) == rows
    assert any((tmp_path / "rows").glob("*.parquet"))
