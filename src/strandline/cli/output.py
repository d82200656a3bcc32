"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console

WIDE = 200
"""Columns of output that goes to no terminal: no cell is broken for lack of room."""


def console() -> Console:
    """Standard output as rich sees it; brackets in texts are no markup."""
    from rich.console import Console

    narrow = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if narrow else WIDE, markup=False, highlight=False, emoji=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[object]], *, title: str | None = None) -> None:
    """Print *rows* under *columns*; a column whose name ends in ``#`` holds numbers and stands to the right."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold", title_justify="left", title_style="")
    for name in columns:
        table.add_column(name.removesuffix("#"), justify="right" if name.endswith("#") else "left", overflow="fold")
    for row in rows:
        table.add_row(*(shown(value) for value in row))
    screen = console()
    if title is not None:
        screen.print(title)
    screen.print(table)


def shown(value: object) -> str:
    """A value as a cell: nothing for None, seconds with two digits."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.2f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)


def moment(text: str | None) -> str:
    """A time from a report, in UTC, to the second."""
    return "" if text is None else text[:19].replace("T", " ")


def print_json(value: Any) -> None:
    """Print one JSON value."""
    typer.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))
