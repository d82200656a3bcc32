"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
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


def problems(found: Mapping[str, str | None]) -> list[str]:
    """A line for each problem, with all views that it holds back."""
    return [
        f"{', '.join(names)} {'keeps its' if len(names) == 1 else 'keep their'} last state: {problem}"
        for problem, names in _by_problem(found).items()
    ]


def grouped(found: Mapping[str, str | None]) -> list[str]:
    """A line for each thing that is told of views or tables, with all of these."""
    return [f"{', '.join(names)}: {problem}" for problem, names in _by_problem(found).items()]


def _by_problem(found: Mapping[str, str | None]) -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for name, problem in found.items():
        if problem is not None:
            names.setdefault(problem, []).append(name)
    return names
