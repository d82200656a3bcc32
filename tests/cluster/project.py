"""A project for a cluster: what its strandline.yml says."""

from __future__ import annotations

from pathlib import Path

import yaml
from psycopg.conninfo import conninfo_to_dict

from strandline.project.folder import Project
from tests.cluster.standalone import EXECUTORS
from tests.conftest import LITTLE_DATA
from tests.warehouse.shop import VIEWS

SOME_VIEWS = {name: VIEWS[name] for name in ("big_orders", "by_product")}


def clustered(folder: Path, master: str, catalog: str) -> Path:
    """A project whose session runs on a cluster."""
    Project.create(folder)
    settings = {**LITTLE_DATA, **EXECUTORS, "spark.master": master, "spark.driver.memory": "1g"}
    with (folder / "strandline.yml").open("a", encoding="utf-8") as file:
        yaml.safe_dump({"catalog": catalog, "spark": {"settings": settings}}, file)
    return folder


def catalog_url(dsn: str) -> str:
    """A database as the place of a catalog."""
    parts = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    place = f"{parts['host']}:{parts['port']}/{parts['dbname']}"
    return f"postgresql+psycopg://{parts['user']}:{parts['password']}@{place}"
