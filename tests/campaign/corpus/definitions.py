"""The definitions of ``views/*.sql``: each a query below a header.

A header is lines of ``-- key: value``: ``name``; ``strategy``, which is ``incremental``, ``affected`` or ``full CODE``,
where CODE is the reason; ``compare: arrays sorted`` where the order inside arrays is Spark's own choice. ``-- tested``
marks what is followed through rounds of changes by ``make test`` too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_HEADER = re.compile(r"-- (name|strategy|compare|tested)(?:: (.*))?")


@dataclass(frozen=True)
class Definition:
    """A view, and how it is to be maintained."""

    name: str
    query: str
    strategy: str
    section: str
    arrays_sorted: bool = False
    tested: bool = False

    @property
    def full(self) -> bool:
        """Whether the view is refreshed in full."""
        return self.strategy.startswith("full")

    def __str__(self) -> str:
        return f"{self.section}: {self.name}"


def definitions() -> list[Definition]:
    """All definitions, file by file."""
    files = sorted((Path(__file__).parent / "views").glob("*.sql"))
    return [found for file in files for found in read_definitions(file)]


def graph() -> list[Definition]:
    """Views over views, each after those that it reads."""
    return read_definitions(Path(__file__).parent / "graph.sql")


def read_definitions(file: Path) -> list[Definition]:
    """The definitions of one file."""
    found = []
    for part in re.split(r"^(?=-- name: )", file.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        lines = part.strip().splitlines()
        header: dict[str, str] = {}
        while lines and (match := _HEADER.fullmatch(lines[0])):
            header[match[1]] = match[2] or ""
            lines.pop(0)
        found.append(
            Definition(
                header["name"],
                "\n".join(lines),
                header["strategy"],
                file.stem,
                header.get("compare") == "arrays sorted",
                "tested" in header,
            )
        )
    return found
