"""Where things lie below the warehouse's root."""

from __future__ import annotations

import json
import uuid

from strandline.engine import places

_BASE = "base-"

_AHEAD = "ahead-"

_USERS = ".strandline"


def new_location(name: str, kind: str) -> str:
    """A place for the table of a new view, block or copy; never one that was used before."""
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in name.lower())
    folder = {"block": "blocks", "base": "blocks", "copy": "copies"}.get(kind, "views")
    return f"{folder}/{plain}-{uuid.uuid4().hex[:8]}"


def delta_path(root: str, refresh_id: str, step_id: str) -> str:
    """Where a step of a refresh stores its delta."""
    return f"{_deltas(root)}/{refresh_id}/{step_id}"


def drop_deltas(root: str, refresh_id: str, options: places.Options) -> None:
    """Remove the stored deltas of a refresh that is over."""
    places.remove(f"{_deltas(root)}/{refresh_id}", options)


def integration_path(root: str, name: str) -> str:
    """Where the deltas of base views are stored from one phase of a refresh to the next."""
    return f"{_deltas(root)}/{_BASE}{name}"


def ahead_path(root: str, warehouse_id: str, number: int) -> str:
    """A place for changes that a warehouse takes in before it plans with them; never one that was used before."""
    return f"{_deltas(root)}/{_AHEAD}{warehouse_id}-{uuid.uuid4().hex}/{number:03d}"


def drop_ahead(root: str, warehouse_id: str, options: places.Options) -> None:
    """Remove such changes; no refresh of the warehouse may be under way."""
    for name in places.folders(_deltas(root), options):
        if name.startswith(f"{_AHEAD}{warehouse_id}-"):
            places.remove(f"{_deltas(root)}/{name}", options)


def history_path(root: str, location: str) -> str:
    """A place for what single updates did to the table at *location*; never one that was used before."""
    return f"{root.rstrip('/')}/histories/{location.rpartition('/')[2]}/{uuid.uuid4().hex}"


def drop_integrations(root: str, options: places.Options) -> None:
    """Remove such deltas; no refresh may be under way."""
    for name in places.folders(_deltas(root), options):
        if name.startswith(_BASE):
            places.remove(f"{_deltas(root)}/{name}", options)


def note_user(root: str, warehouse_id: str, options: places.Options = None) -> tuple[str, ...]:
    """Note that a warehouse keeps tables below *root*; all warehouses that do."""
    users: list[str] = json.loads(places.read_text(root, _USERS, options) or "[]")
    if warehouse_id not in users:
        users.append(warehouse_id)
        places.write_text(root, _USERS, json.dumps(users), options)
    return tuple(users)


def kept_path(root: str) -> str:
    """Where the engine keeps what makes rows quick to find, and can do without."""
    return f"{root.rstrip('/')}/kept"


def scratch_path(root: str, purpose: str) -> str:
    """A place for rows that are needed for a while; never one that was used before."""
    return f"{_deltas(root)}/{purpose}-{uuid.uuid4().hex}"


def _deltas(root: str) -> str:
    return f"{root.rstrip('/')}/deltas"
