"""Leftovers: folders below the root that no row of the catalog names.

Tables of views that were dropped and forgotten, tables and deltas that a crash left half made, logs of sources that are
gone, histories of purged states, and what was kept of data files that are gone. Whoever removes them holds the lock,
and no refresh is unfinished; still they must have been left alone for a while, because somebody may be reading them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from strandline.catalog import Catalog
from strandline.engine import places
from strandline.engine.arranged import Arranged
from strandline.engine.little import ARRANGED
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


def leftovers(
    catalog: Catalog, root: str, now: datetime, keep: timedelta, options: places.Options = None
) -> list[Leftover]:
    """The folders below *root* that can go, if no other warehouse has tables there."""
    users = layout.note_user(root, catalog.warehouse_id, options) if places.folders(root, options) else ()
    if any(user != catalog.warehouse_id for user in users):
        raise StoreError(
            "ROOT_SHARED",
            f"several warehouses keep tables below {root}, so what this one does not know may be another's; it is left "
            f"alone. Give each its own `warehouse` in strandline.yml, or, if the others are gone, remove "
            f"{root}/.strandline.",
        )
    before = (now - min(SAFE_AGE, keep)).timestamp()
    named, found = _named(catalog, root), []
    for folder in sorted(f for place, depth in _PLACES.items() for f in _below(root, place, depth, options)):
        path = f"{root.rstrip('/')}/{folder}"
        if folder not in named and _last_change(path, files := places.files(path, options)) <= before:
            found.append(Leftover(path, sum(file.bytes for file in files)))
    return found


def remove(found: Leftover, options: places.Options = None) -> None:
    """Remove a leftover; one that is gone by now is no matter."""
    places.remove(found.path, options)


def _below(root: str, folder: str, depth: int, options: places.Options) -> list[str]:
    """The folders so many levels below one, as seen from the root."""
    inner = [f"{folder}/{name}" for name in places.folders(f"{root.rstrip('/')}/{folder}", options)]
    return inner if depth == 1 else [below for name in inner for below in _below(root, name, depth - 1, options)]


def _last_change(folder: str, files: list[places.File]) -> float:
    """When something was last written there: in an empty folder never, unless it is on a disk and has a time itself."""
    here = places.on_disk(folder)
    itself = here.stat().st_mtime if here is not None and here.exists() else math.inf
    return max((file.modified for file in files), default=itself)


_PLACES = {"views": 1, "blocks": 1, "copies": 1, "logs": 1, "histories": 2, "deltas": 1, "kept": 2}
"""How deep below the root the folders are that hold one thing each."""


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
    return named | _of_files(layout.kept_path(root))


def _of_files(kept: str) -> set[str]:
    """The folders of what is kept of data files that are there."""
    here = places.on_disk(kept)
    return set() if here is None else {f"{here.name}/{ARRANGED}/{name}" for name in Arranged(here / ARRANGED).needed()}


def _end(path: str, parts: int) -> str:
    return "/".join(path.split("/")[-parts:])
