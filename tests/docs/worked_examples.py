"""The worked examples of the pages about operators, as text: statements, tables that change, outputs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from strandline.algebra.bag import SignedBag
from strandline.algebra.schema import Column, Schema
from tests.docs.markdown import ROOT

INDEX = ROOT / "docs" / "operators" / "README.md"
PAGES = sorted(page for page in INDEX.parent.glob("*.md") if page != INDEX)

_PART = re.compile(
    r"^```sql\n(?P<sql>CREATE .*?)^```$"
    r"|^```text\n(?P<explain>\w+ \(.*?)^```$"
    r"|^(?P<title>`[\w.]+`(?:, stored)?|Hidden block(?: \d)?, stored)\n\n(?P<table>(?:\|[^\n]*\n)+)"
    r"|reports `(?P<strategy>\w+)`, reason\s`(?P<reason>[A-Z_]+)`",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Table:
    """Rows as text: those without a mark are there before and after a change, ``-`` only before, ``+`` only after."""

    columns: tuple[str, ...]
    marked: tuple[tuple[str, tuple[str, ...]], ...]

    def rows(self, *marks: str) -> list[tuple[str, ...]]:
        return [row for mark, row in self.marked if mark in marks]

    @property
    def before(self) -> SignedBag:
        return SignedBag.of(self.rows("", "-"))

    @property
    def delta(self) -> SignedBag:
        return SignedBag.of(self.rows("+")) - SignedBag.of(self.rows("-"))


@dataclass
class Example:
    """A CREATE statement, the tables it reads, and what is said to become of it."""

    page: Path
    number: int
    sql: str
    sources: Mapping[str, Table]
    shown: dict[str, Table] = field(default_factory=dict)
    """What the view, its stored rows and its hidden blocks are said to hold, by the titles of the tables."""
    explain: str = ""
    strategy: str = ""
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.page.stem}-{self.number}"


def examples(page: Path) -> list[Example]:
    """The examples of a page. Tables of sources stand before the statement; the next example may use them again."""
    found: list[Example] = []
    sources: dict[str, Table] = {}
    for part in _PART.finditer(page.read_text(encoding="utf-8")):
        if part["sql"]:
            found.append(Example(page, len(found) + 1, part["sql"], dict(sources)))
        elif part["explain"]:
            found[-1].explain = part["explain"]
        elif part["strategy"]:
            found[-1].strategy, found[-1].reason = part["strategy"], part["reason"]
        elif part["title"].startswith("`lake."):
            sources[part["title"].strip("`")] = _table(part["table"])
        else:
            found[-1].shown[part["title"]] = _table(part["table"])
    return found


def _table(text: str) -> Table:
    header, _, *lines = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in text.splitlines()]
    return Table(tuple(header[1:]), tuple((mark, tuple(cells)) for mark, *cells in lines))


def source_columns() -> dict[str, Schema]:
    """The tables that the examples read, as the index lists them."""
    return dict(_listed(INDEX.read_text(encoding="utf-8")))


def _listed(text: str) -> Iterator[tuple[str, Schema]]:
    for name, listed in re.findall(r"^\| `(lake\.\w+)` \| `(.*)` \|$", text, re.MULTILINE):
        pairs = [column.split(" ", 1) for column in re.split(r", (?=\w+ )", listed)]
        yield name, tuple(Column(column, type_) for column, type_ in pairs)
