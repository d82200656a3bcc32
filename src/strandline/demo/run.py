"""The demonstration from start to end."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from strandline.demo.rounds import ROUNDS, Outcome, Refreshed, Round
from strandline.demo.shop import Shop, Sizes
from strandline.demo.story import Story
from strandline.errors import ProjectError
from strandline.project.folder import Project
from strandline.propagate.progress import Event, Watcher
from strandline.propagate.verify import Verification
from strandline.sql import ddl
from strandline.sql.statements import CreateView
from strandline.warehouse import Warehouse

T = TypeVar("T")

Progress = Callable[[str], AbstractContextManager[Watcher]]
"""Given what is about to happen, shows how it goes to whatever is watched within."""

Opened = Callable[[Path], AbstractContextManager[Warehouse]]
"""Opens the warehouse of a project folder."""


def run(
    console: Console,
    progress: Progress,
    opened: Opened,
    *,
    folder: Path | None = None,
    keep: bool = False,
    sizes: Sizes | None = None,
    rounds: Sequence[Round] = ROUNDS,
) -> Outcome:
    """Run the demonstration, in *folder*, which stays, or in a temporary one, which goes unless *keep* is set."""
    began = time.monotonic()
    story = Story(console)
    with _place(folder, keep) as place:
        shop = Shop(place / "data", sizes or Sizes())
        story.chapter("A shop opens: Delta tables in two lakes, written without Spark", shop.open_for_business())
        shutil.copytree(Path(__file__).parent / "project", place / "project")
        with opened(place / "project") as warehouse:
            outcome = _Demo(warehouse, shop, story, progress, place).outcome(rounds)
        story.totals(outcome, time.monotonic() - began)
        story.next_steps(place if keep or folder is not None else None)
    return outcome


@contextmanager
def _place(folder: Path | None, keep: bool) -> Iterator[Path]:
    """The folder that the demonstration works in; one of our own is removed at the end."""
    if folder is not None:
        if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
            raise ProjectError("FOLDER_NOT_EMPTY", f"{folder} holds other things; give an empty or a new folder.")
        folder.mkdir(parents=True, exist_ok=True)
        yield folder.resolve()
        return
    made = Path(tempfile.mkdtemp(prefix="strandline-demo-"))
    try:
        yield made
    finally:
        if not keep:
            shutil.rmtree(made, ignore_errors=True)


class _Demo:
    """A shop and the warehouse over it."""

    def __init__(self, warehouse: Warehouse, shop: Shop, story: Story, progress: Progress, place: Path) -> None:
        self._warehouse = warehouse
        self._shop = shop
        self._story = story
        self._progress = progress
        self._scratch = place / "recomputed"
        self._queries = _queries(place / "project")

    def outcome(self, rounds: Sequence[Round]) -> Outcome:
        """Fill the views, change the shop round by round, verify."""
        self._story.chapter(
            f"The first refresh fills {len(self._queries)} views, defined in project/views/*.sql over both lakes"
        )
        with self._progress("starting Spark") as watcher:
            first = self._warehouse.refresh(watcher=watcher)
        self._story.first_fill(first, len(self._queries))
        self._story.legend()
        done = []
        for one in rounds:
            self._story.chapter(one.title, one.change(self._shop))
            refreshed = self._refreshed(one.title)
            self._story.refreshed(refreshed)
            done.append(refreshed)
        self._story.chapter("Every view is compared, as a bag of rows, with its query run over the same state")
        verified = self._verified()
        self._story.verified(verified)
        shutil.rmtree(self._scratch, ignore_errors=True)
        return Outcome(first, tuple(done), verified)

    def _refreshed(self, title: str) -> Refreshed:
        ingested = 0.0
        began = time.monotonic()
        with self._progress("planning the refresh") as watcher:

            def watch(event: Event) -> None:
                nonlocal ingested
                ingested += event.seconds if event.step == "ingest" else 0.0
                watcher(event)

            report = self._warehouse.refresh(watcher=watch)
        seconds = time.monotonic() - began
        moved = [name for name, view in report.views.items() if view.strategy != "none"]
        return Refreshed(title, report, seconds, ingested, self._recomputed(moved))

    def _recomputed(self, names: Sequence[str]) -> dict[str, float]:
        """Seconds for running each view's query, over what the newest state shows, and writing the result."""

        def recompute(name: str) -> float:
            began = time.monotonic()
            rows = self._warehouse.sql(self._queries[name])
            rows.write.format("delta").mode("overwrite").save(str(self._scratch / name))
            return time.monotonic() - began

        return self._each(names, "recompute", recompute) if names else {}

    def _verified(self) -> tuple[Verification, ...]:
        return tuple(self._each(list(self._queries), "verify", self._warehouse.verify).values())

    def _each(self, names: Sequence[str], step: str, do: Callable[[str], T]) -> dict[str, T]:
        """What *do* gives for each view, with its progress shown."""
        done = {}
        with self._progress(f"about to {step}") as watcher:
            for place, name in enumerate(names):
                watcher(Event("started", step, name, place, len(names)))
                began = time.monotonic()
                done[name] = do(name)
                watcher(Event("done", step, name, place, len(names), time.monotonic() - began))
        return done


def _queries(project: Path) -> dict[str, str]:
    """The SELECT of each view, by name."""
    found = {}
    for file in Project.open(project).views():
        statement = ddl.parse(file.text, file.shown)
        assert isinstance(statement, CreateView)
        found[statement.name] = statement.query.sql
    return found
