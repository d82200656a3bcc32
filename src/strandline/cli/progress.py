"""How a refresh under way is shown: live in a terminal, log lines elsewhere, nothing beside JSON."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from strandline.propagate.progress import Event, Watcher

DOING = {
    "capture": "capturing",
    "load": "copying",
    "ask for": "asking for",
    "ingest": "reading the changes of",
    "compute": "computing the changes of",
    "share": "sharing the changes of",
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
        return live
    return lambda title: nullcontext(log_line)


@contextmanager
def live(title: str) -> Iterator[Watcher]:
    """What runs now, above all; it vanishes at the end, and what went wrong stays."""
    from rich.console import Console
    from rich.live import Live

    from strandline.cli.live import LiveSteps

    # A copy of standard error: while Spark starts, the descriptor itself leads elsewhere.
    with open(os.dup(sys.stderr.fileno()), "w", encoding=sys.stderr.encoding) as terminal:
        screen = Console(file=terminal, force_terminal=True)
        steps = LiveSteps(title, line_of, _doing)
        with Live(steps, console=screen, transient=True, redirect_stdout=False, redirect_stderr=False) as shown:

            def watch(event: Event) -> None:
                steps.take(event)
                if event.what in ("retried", "failed", "skipped"):
                    shown.console.print(line_of(event), markup=False, highlight=False)

            yield watch


def log_line(event: Event) -> None:
    """One line on standard error for each step that ended or is tried again."""
    if event.what not in ("planned", "started"):
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
