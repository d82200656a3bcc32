"""What the files of a warehouse tell of its refreshes: which step committed how often, and what nobody needs."""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable

from strandline import Warehouse
from strandline.engine.vectors import vector_file
from strandline.upkeep.leftovers import leftovers

COMMITTED = "strandline:"
"""What the last commit of a step carries, before the step's id."""


def root_of(warehouse: Warehouse) -> Path:
    """The folder of the warehouse's tables."""
    return Path(warehouse._project.warehouse_root)


def tables_of(warehouse: Warehouse) -> list[Path]:
    """The Delta tables below it."""
    return sorted(log.parent for log in root_of(warehouse).rglob("_delta_log"))


def actions_of(table: Path) -> list[dict[str, dict[str, Any]]]:
    """All actions in a table's log."""
    files = sorted((table / "_delta_log").glob("*.json"))
    return [json.loads(line) for file in files for line in file.read_text().splitlines() if line.strip()]


def commits_by_step(warehouse: Warehouse) -> Counter[str]:
    """How many commits carry a step's id as their last."""
    found: Counter[str] = Counter()
    for table in tables_of(warehouse):
        for action in actions_of(table):
            noted = str(action.get("commitInfo", {}).get("userMetadata") or "")
            if noted.startswith(COMMITTED):
                found[noted.removeprefix(COMMITTED)] += 1
    return found


def assert_done_once(warehouse: Warehouse) -> int:
    """No step committed twice, and each that made a version did once; how many did."""
    commits = commits_by_step(warehouse)
    twice = {step: count for step, count in commits.items() if count > 1}
    assert not twice, f"steps were done twice: {twice}"
    for refresh in warehouse._catalog.refreshes.recent(1_000_000):
        for step in warehouse._catalog.refreshes.steps(refresh.id):
            made = step.result.get("install", "none") != "none"
            if step.status == "done" and step.kind in ("load", "install", "recompute") and made:
                assert commits[step.id] == 1, f"step {step.id} ({step.kind} {step.view}) is done without a commit"
    return len(commits)


def assert_nothing_left_over(warehouse: Warehouse) -> None:
    """No stored delta is left, and no folder that the catalog does not name."""
    root = root_of(warehouse)
    assert not list((root / "deltas").glob("*")), "stored deltas were left"
    later = datetime.now(UTC) + timedelta(days=30)
    found = leftovers(warehouse._catalog, str(root), later, timedelta(days=1))
    assert not found, f"folders were left: {[left.path for left in found]}"


def orphans(warehouse: Warehouse) -> list[Path]:
    """Files that belong to no version of their table: a writer was killed before it committed them."""
    found = []
    for table in tables_of(warehouse):
        added = [action["add"] for action in actions_of(table) if "add" in action]
        vectors = [vector_file(add["deletionVector"]) for add in added if add.get("deletionVector")]
        named = {unquote(str(add["path"])) for add in added} | {*vectors}
        files = (file for file in table.rglob("*") if file.is_file() and "_delta_log" not in file.parts)
        found += [
            file for file in files if file.name[0] not in "._" and file.relative_to(table).as_posix() not in named
        ]
    return found


def let_age(files: list[Path], days: int = 30) -> None:
    """Make files look as if they were written long ago."""
    moment = time.time() - days * 86400
    for file in files:
        os.utime(file, (moment, moment))


def stored_rows(path: str, version: int) -> str:
    """A digest of the rows that a version of a table holds, in whatever order."""
    rows = pa.table(DeltaTable(path, version=version).scan().read_all()).to_pylist()
    texts = sorted(repr(list(row.items())) for row in rows)
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()
