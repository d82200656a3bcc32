"""A refresh as a terminal shows it while it runs: what ended last, a bar, what runs now, and what is still to come."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.spinner import Spinner
from rich.text import Text

if TYPE_CHECKING:
    from strandline.propagate.progress import Event

RECENT = 4
"""How many of the steps that ended are shown."""

COMING = 6
"""How many of the views that are still to come are named."""


class LiveSteps:
    """What is known of the steps, from the events so far; another thread draws it meanwhile."""

    def __init__(self, title: str, line_of: Callable[[Event], str], doing: Callable[[Event], str]) -> None:
        self._line_of = line_of
        self._doing = doing
        self._bar = Progress(
            BarColumn(bar_width=24), MofNCompleteColumn(), TimeElapsedColumn(), TextColumn("{task.description}")
        )
        self._task = self._bar.add_task(title, total=None)
        self._running: dict[tuple[str, str], tuple[Spinner, str, float]] = {}
        self._ended: list[Text] = []
        self._coming: list[tuple[str, str]] = []

    def take(self, event: Event) -> None:
        """Note what happened."""
        step = (event.step, event.subject)
        match event.what:
            case "planned":
                self._coming = list(event.steps)
                self._running.clear()
            case "started":
                self._running[step] = (Spinner("dots"), self._doing(event), time.monotonic())
                if step in self._coming:
                    self._coming.remove(step)
            case "done" | "failed" | "skipped":
                self._running.pop(step, None)
                if step in self._coming:
                    self._coming.remove(step)
                if event.what == "done":
                    self._ended.append(Text(self._line_of(event), "dim"))
            case "retried":
                pass
        completed = event.place + (event.what in ("done", "failed", "skipped"))
        self._bar.update(self._task, total=event.total, completed=completed, description="")
        del self._ended[:-RECENT]

    def __rich__(self) -> RenderableType:
        return Group(*self._lines())

    def _lines(self) -> Iterator[RenderableType]:
        yield from self._ended
        yield self._bar
        for spinner, text, since in list(self._running.values()):
            spinner.update(text=Text(f"{text}, {time.monotonic() - since:.0f} s"))
            yield spinner
        subjects = list(dict.fromkeys(subject for _, subject in self._coming if subject))
        if subjects:
            more = f" and {len(subjects) - COMING} more" if len(subjects) > COMING else ""
            yield Text(f"  then {', '.join(subjects[:COMING])}{more}", "dim")
