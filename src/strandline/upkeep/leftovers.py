"""Leftovers: folders below the root that no row of the catalog names.

Tables of views that were dropped and forgotten, tables and deltas that a crash left half made, logs of sources that are
gone, histories of purged states. Whoever removes them holds the lock, and no refresh is unfinished; still they must
have been left alone for a while, because somebody may be reading them.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from strandline.catalog import Catalog
from strandline.errors import StoreError
from strandline.ingest.uncopied import HISTORY
from strandline.store import layout
from strandline.store.node import node_of

SAFE_AGE = timedelta(days=1)


@dataclass(frozen=True)
class Leftover:
    """A folder that nobody needs."""

    path: str
    bytes: int


def leftovers(catalog: Catalog, root: str, now: datetime, keep: timedelta) -> list[Leftover]:
    """The folders below *root* that can go, if it is a local one and no other warehouse has tables there."""
    if "://" in root or not Path(root).is_dir():
        return []
    others = [user for user in layout.note_user(root, catalog.warehouse_id) if user != catalog.warehouse_id]
    if others:
        raise StoreError(
            "ROOT_SHARED",
            f"several warehouses keep tables below {root}, so what this one does not know may be another's; it is left "
            f"alone. Give each its own `warehouse` in strandline.yml, or, if the others are gone, remove "
            f"{root}/.strandline.",
        )
    before = (now - min(SAFE_AGE, keep)).timestamp()
    named = _named(catalog, root)
    folders = [folder for pattern in _PLACES for folder in Path(root).glob(pattern) if folder.is_dir()]
    unnamed = [folder for folder in folders if folder.relative_to(root).as_posix() not in named]
    old = [folder for folder in unnamed if layout.last_change(folder) <= before]
    return [Leftover(str(folder), layout.bytes_below(folder)) for folder in sorted(old)]


def remove(found: Leftover) -> None:
    """Remove a leftover; one that is gone by now is no matter."""
    shutil.rmtree(found.path, ignore_errors=True)


_PLACES = ("views/*", "blocks/*", "copies/*", "logs/*", "histories/*/*", "deltas/*")


def _named(catalog: Catalog, root: str) -> set[str]:
    """All folders that the catalog names, as seen from the root: it may lie elsewhere than when they were noted."""
    named = set()
    for view in catalog.views.ever():
        named.add(view.location)
        node = node_of(view, root)
        if node.copied and view.dropped_at is None:
            named.add(_end(node.log_path, 2))
        for version in catalog.versions.all(view.id):
            history = version.inputs.get(HISTORY)
            if isinstance(history, dict):
                named.add(_end(str(history["path"]), 3))
    for source in catalog.sources.all():
        record = catalog.captures.get(source.name)
        named |= {_end(logged.path, 2) for logged in record.tables.values()} if record is not None else set()
    return named


def _end(path: str, parts: int) -> str:
    return "/".join(path.split("/")[-parts:])
