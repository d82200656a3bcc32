"""What upkeep did, or would do, for programs and for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class TableReport:
    """What became of one table: its small files before and after, and the bytes that were freed, where known."""

    files_before: int = 0
    files: int = 0
    bytes_freed: int | None = 0
    problem: str | None = None


@dataclass(frozen=True)
class MaintainReport:
    """The outcome of upkeep; with *dry_run*, what it would be."""

    id: str
    dry_run: bool
    tables: Mapping[str, TableReport]
    log_entries: Mapping[str, int]
    """Entries that were removed from the change log of each source table."""
    purged: Mapping[str, int]
    """How many states, versions and transactions were forgotten, and how many views that were dropped."""
    leftovers: tuple[str, ...] = ()
    """Folders that nobody needed."""
    bytes_freed: int = 0
    seconds: float = 0.0
    resumed: str | None = None
    """The id of the crashed refresh, or upkeep, that was finished first, if there was one."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """What could not be done, by step."""

    @property
    def ok(self) -> bool:
        """Whether everything was done."""
        return not self.problems

    def to_dict(self) -> dict[str, Any]:
        """As ``maintain --json`` prints it."""
        return {
            "maintenance": self.id,
            "dry_run": self.dry_run,
            "ok": self.ok,
            "seconds": round(self.seconds, 3),
            "resumed": self.resumed,
            "bytes_freed": self.bytes_freed,
            "tables": {name: table.__dict__ for name, table in self.tables.items()},
            "log_entries": dict(self.log_entries),
            "purged": dict(self.purged),
            "leftovers": list(self.leftovers),
            "problems": dict(self.problems),
        }
