"""Where the demonstration plays: PostgreSQL with the shop, the lake, and the writers; all end with the context."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from strandline.demo.lake import Lake
from strandline.demo.server import PostgresServer
from strandline.demo.shop import Shop, Sizes, dsn_of
from strandline.demo.writers import Writers

DSN_VARIABLE = "SHOP_DSN"
"""What project/sources/shop.yml names."""

DSN_FILE = "shop.dsn"
"""Holds what the variable is to be set to; it is there while the server runs."""


@dataclass(frozen=True)
class Scene:
    """The sources, and those who write to them."""

    server: PostgresServer
    shop: Shop
    lake: Lake
    writers: Writers


@contextmanager
def new_scene(place: Path, sizes: Sizes) -> Iterator[Scene]:
    """A new shop and a new lake in the folder *place*."""
    lake = Lake.new(place / "data" / "lake", sizes.products, sizes.orders)
    with _server(place) as server, closing(Shop.new(server, sizes)) as shop, Writers(shop) as writers:
        yield Scene(server, shop, lake, writers)


@contextmanager
def kept_scene(place: Path) -> Iterator[Scene]:
    """The shop and the lake that are in the folder *place*."""
    lake = Lake(place / "data" / "lake")
    with _server(place) as server, closing(Shop(dsn_of(server))) as shop, Writers(shop) as writers:
        yield Scene(server, shop, lake, writers)


@contextmanager
def _server(place: Path) -> Iterator[PostgresServer]:
    """PostgreSQL, with the shop's address in the environment and in a file."""
    with PostgresServer.start(place / "postgres") as server:
        before, file = os.environ.get(DSN_VARIABLE), place / DSN_FILE
        file.touch(mode=0o600)
        file.write_text(dsn_of(server) + "\n")
        os.environ[DSN_VARIABLE] = dsn_of(server)
        try:
            yield server
        finally:
            file.unlink(missing_ok=True)
            if before is None:
                del os.environ[DSN_VARIABLE]
            else:
                os.environ[DSN_VARIABLE] = before
