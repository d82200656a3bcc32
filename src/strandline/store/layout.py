"""Where things lie below the warehouse's root."""

from __future__ import annotations

import json
import os
import shutil
import uuid
from pathlib import Path


def new_location(name: str, kind: str) -> str:
    """A place for the table of a new view, block or copy; never one that was used before."""
    plain = "".join(c if c.isalnum() or c == "_" else "_" for c in name.lower())
    folder = {"block": "blocks", "base": "blocks", "copy": "copies"}.get(kind, "views")
    return f"{folder}/{plain}-{uuid.uuid4().hex[:8]}"


def delta_path(root: str, refresh_id: str, step_id: str) -> str:
    """Where a step of a refresh stores its delta."""
    return f"{root.rstrip('/')}/deltas/{refresh_id}/{step_id}"


def drop_deltas(root: str, refresh_id: str) -> None:
    """Remove the stored deltas of a refresh that is over."""
    if "://" not in root:
        shutil.rmtree(Path(root) / "deltas" / refresh_id, ignore_errors=True)


def integration_path(root: str, name: str) -> str:
    """Where the deltas of base views are stored from one phase of a refresh to the next."""
    return f"{root.rstrip('/')}/deltas/base-{name}"


def history_path(root: str, location: str) -> str:
    """A place for what single updates did to the table at *location*; never one that was used before."""
    return f"{root.rstrip('/')}/histories/{location.rpartition('/')[2]}/{uuid.uuid4().hex}"


def drop_integrations(root: str) -> None:
    """Remove such deltas; no refresh may be under way."""
    if "://" not in root:
        for folder in Path(root, "deltas").glob("base-*"):
            shutil.rmtree(folder, ignore_errors=True)


def note_user(root: str, warehouse_id: str) -> tuple[str, ...]:
    """Note that a warehouse keeps tables below *root*; all warehouses that do. A remote place is not noted."""
    if "://" in root:
        return ()
    file = Path(root, ".strandline")
    users: list[str] = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else []
    if warehouse_id not in users:
        users.append(warehouse_id)
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_suffix(".new")
        fresh.write_text(json.dumps(users), encoding="utf-8")
        fresh.replace(file)
    return tuple(users)


def bytes_below(path: str | Path) -> int:
    """How many bytes the files below a local folder have; 0 if it is not there."""
    return sum(file.stat().st_size for file in files_below(path))


def last_change(path: str | Path) -> float:
    """When something below a local folder was last written, in seconds since the epoch."""
    return max((file.stat().st_mtime for file in files_below(path)), default=Path(path).stat().st_mtime)


def files_below(path: str | Path) -> list[Path]:
    """The files below a local folder."""
    return [Path(folder, name) for folder, _, names in os.walk(path) for name in names]
