"""How a refresh under way is shown: a bar in a terminal, log lines elsewhere, nothing beside JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import typer

from strandline.cli.interrupt import restore_handler

if TYPE_CHECKING:
    from strandline.propagate.progress import Event, Watcher

DOING = {
    "capture": "capturing",
    "load": "copying",
    "ask for": "asking for",
    "ingest": "reading the changes of",
    "compute": "computing the changes of",
    "compare": "comparing versions of",
    "install": "installing the changes of",
    "recompute": "recomputing",
    "publish": "publishing the new state",
    "verify": "verifying",
    "purge": "purging old states",
    "trim": "trimming the log of",
    "compact": "compacting",
    "vacuum": "vacuuming",
    "clear": "clearing leftovers",
}

Progress = Callable[[str], "AbstractContextManager[Watcher]"]
"""Given what is about to happen, shows how it goes to whatever is watched within."""


def progress(*, as_json: bool = False) -> Progress:
    """The way of showing progress that fits standard error."""
    if as_json:
        return lambda title: nullcontext(nothing)
    if sys.stderr.isatty():
        return bar
    return lambda title: nullcontext(log_line)


@contextmanager
def bar(title: str) -> Iterator[Watcher]:
    """A bar with what is running now; it vanishes at the end."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    # A copy of standard error: while Spark starts, the descriptor itself leads elsewhere.
    with open(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding) as terminal:
        columns = (
            SpinnerColumn(),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}", markup=False),
        )
        screen = Console(file=terminal, force_terminal=True)
        with Progress(*columns, console=screen, transient=True, redirect_stdout=False, redirect_stderr=False) as shown:
            task = shown.add_task(title, total=None)

            def watch(event: Event) -> None:
                restore_handler()
                ended = event.what != "started"
                text = _doing(event) if not ended else None
                shown.update(task, total=event.total, completed=event.place + ended, description=text)
                if event.what in ("failed", "skipped"):
                    shown.console.print(line_of(event), markup=False, highlight=False)

            yield watch


def log_line(event: Event) -> None:
    """One line on standard error for each step that ended."""
    restore_handler()
    if event.what != "started":
        typer.echo(line_of(event), err=True)


def line_of(event: Event) -> str:
    """A step that ended, as a line."""
    line = f"{event.place + 1}/{event.total} {_doing(event)}: {event.what}"
    if event.what in ("done", "failed"):
        line += f" in {event.seconds:.2f} s"
    return f"{line}; {event.detail}" if event.detail else line


def _doing(event: Event) -> str:
    return f"{DOING.get(event.step, event.step)} {event.subject}".rstrip()


def nothing(event: Event) -> None:
    """Show nothing."""
    restore_handler()
