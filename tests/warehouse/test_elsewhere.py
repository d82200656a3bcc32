"""A warehouse whose root has a scheme: nothing takes it for a path, and nothing is left there. About 10 seconds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from strandline import Warehouse
from strandline.engine import places
from strandline.engine.session import Engine
from strandline.project.folder import Project
from strandline.upkeep.leftovers import leftovers
from tests.warehouse.shop import VIEWS, Shop, assert_verified, create_views

pytestmark = pytest.mark.spark


def test_a_root_with_a_scheme(tmp_path: Path, engine: Engine, shop: Shop) -> None:
    root = f"file://{tmp_path}/elsewhere"
    Project.create(tmp_path / "project")
    file = tmp_path / "project" / "strandline.yml"
    file.write_text(file.read_text().replace("\nwarehouse: warehouse\n", f"\nwarehouse: {root}\n"))
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        warehouse.add_source("shop", kind="delta", path=f"file://{shop.folder}/shop")
        warehouse.add_source("lake", kind="delta", path=f"file://{shop.folder}/lake")
        create_views(warehouse, {name: VIEWS[name] for name in ("big_orders", "by_product")})
        shop.place_orders()
        shop.reprice()
        assert {view.strategy for view in warehouse.refresh().views.values()} == {"incremental"}
        assert_verified(warehouse)
        assert places.folders(f"{root}/deltas") == []
        places.write_text(f"{root}/views/half_made-0000", "part-0.parquet", "1234")
        later = datetime.now(UTC) + timedelta(days=2)
        found = leftovers(warehouse._catalog, root, later, timedelta(days=7))
        assert [(left.path, left.bytes) for left in found] == [(f"{root}/views/half_made-0000", 4)]
        assert warehouse.maintain().ok
    assert not (tmp_path / "project" / "warehouse").exists()
