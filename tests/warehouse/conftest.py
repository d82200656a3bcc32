from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline import Warehouse
from strandline.engine.session import Engine
from tests.warehouse.shop import Shop


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """The two lakes, filled."""
    shop = Shop(tmp_path / "lakes")
    shop.create()
    return shop


@pytest.fixture
def warehouse(tmp_path: Path, engine: Engine, shop: Shop) -> Iterator[Warehouse]:
    """A warehouse over the shop, on the session of the test process."""
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        shop.declare(warehouse)
        yield warehouse
