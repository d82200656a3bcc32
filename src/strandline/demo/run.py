"""The demonstration from start to end."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from rich.console import Console

from strandline.demo.rounds import SCRIPT, Compared, Money, Outcome, Pulse, Pulses, Refreshed, Round
from strandline.demo.scene import Scene, kept_scene, new_scene
from strandline.demo.shop import Sizes
from strandline.demo.story import Story, everything
from strandline.errors import ProjectError
from strandline.project.folder import Project
from strandline.propagate.progress import Event, Watcher
from strandline.propagate.report import RefreshReport
from strandline.propagate.verify import Verification
from strandline.sql import ddl
from strandline.sql.statements import CreateView
from strandline.warehouse import Warehouse

T = TypeVar("T")

Progress = Callable[[str], AbstractContextManager[Watcher]]
"""Given what is about to happen, shows how it goes to whatever is watched within."""

Opened = Callable[[Path], AbstractContextManager[Warehouse]]
"""Opens the warehouse of a project folder."""

TOTAL = "total"
"""The view that must never change."""

ASKED_THERE = (TOTAL, "balances")
"""Views over the shop alone: PostgreSQL can be asked the same."""

DELIVERY_SECONDS = 5
"""How often a kept demonstration that is served gets the lines of the orders that were taken meanwhile."""


def run(
    console: Console,
    progress: Progress,
    opened: Opened,
    *,
    folder: Path | None = None,
    keep: bool = False,
    sizes: Sizes | None = None,
    script: Sequence[Round | Pulses] = SCRIPT,
) -> Outcome:
    """Run the demonstration, in *folder*, which stays, or in a temporary one, which goes unless *keep* is set."""
    began = time.monotonic()
    story = Story(console)
    story.introduction()
    with _place(folder, keep) as place:
        shutil.copytree(Path(__file__).parent / "project", place / "project")
        # What is started last is stopped first: the writers, the server, Spark.
        with opened(place / "project") as warehouse, ExitStack() as stack:
            with progress("starting PostgreSQL, and filling the shop and the lake"):
                scene = stack.enter_context(new_scene(place, sizes or Sizes()))
            outcome = _Demo(warehouse, scene, story, progress, place).outcome(script)
        story.summary(outcome, time.monotonic() - began)
        story.next_steps(place if keep or folder is not None else None)
    return outcome


def serve(console: Console, folder: Path) -> bool:
    """Start the PostgreSQL and the writers of a kept demonstration again, until Ctrl-C; whether it came to that."""
    place = folder.resolve()
    if not (place / "postgres" / "data").is_dir() or not (place / "project").is_dir():
        raise ProjectError(
            "NOT_A_PROJECT",
            f"{folder} holds no demonstration that was kept; `strandline demo --folder` with a new folder makes one.",
        )
    story = Story(console)
    try:
        with kept_scene(place) as scene:
            story.serving(place, scene)
            while scene.writers.problem is None:
                time.sleep(DELIVERY_SECONDS)
                scene.lake.sell(scene.writers.placed())
            story.show("", scene.writers.problem)
            return False
    except KeyboardInterrupt:
        story.show("", "The writers and PostgreSQL are stopped.")
        return True


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
    """The sources and the warehouse over them."""

    def __init__(self, warehouse: Warehouse, scene: Scene, story: Story, progress: Progress, place: Path) -> None:
        self._warehouse = warehouse
        self._scene = scene
        self._story = story
        self._progress = progress
        self._scratch = place / "recomputed"
        self._views = _views(place / "project")

    def outcome(self, script: Sequence[Round | Pulses]) -> Outcome:
        """Fill the views, change the sources as the script says, check everything."""
        self._story.opening(self._scene)
        first = self._first()
        rounds: list[Refreshed] = []
        pulses: list[Pulse] = []
        for part in script:
            if isinstance(part, Round):
                rounds.append(self._round(part))
            else:
                pulses += self._pulses(part.count)
        outcome = Outcome(
            first,
            tuple(rounds),
            tuple(pulses),
            self._verified(),
            self._compared(),
            everything(self._scene),
            self._states(),
            self._scene.writers.committed,
            self._scene.writers.rolled_back,
            self._scene.writers.problem,
        )
        self._story.checked(outcome)
        shutil.rmtree(self._scratch, ignore_errors=True)
        return outcome

    def _first(self) -> RefreshReport:
        self._story.filling(len(self._views))
        copied: dict[str, float] = {}
        began = time.monotonic()
        with self._progress("starting Spark") as watcher:

            def watch(event: Event) -> None:
                if (event.what, event.step) == ("done", "load"):
                    copied[event.subject] = event.seconds
                watcher(event)

            report = self._warehouse.refresh(watcher=watch)
        comments = {name: view.comment or "" for name, view in self._views.items()}
        self._story.filled(report, comments, copied, time.monotonic() - began)
        return report

    def _round(self, round: Round) -> Refreshed:
        self._story.chapter(round.title, round.change(self._scene))
        report, seconds = self._refresh()
        moved = [name for name, view in report.views.items() if view.strategy != "none"]
        refreshed = Refreshed(round.title, report, seconds, self._recomputed(moved))
        self._story.refreshed(refreshed)
        return refreshed

    def _pulses(self, count: int) -> list[Pulse]:
        self._story.pulsing(count)
        pulses = []
        for _ in range(count):
            report, seconds = self._refresh(TOTAL)
            pulses.append(Pulse(report, seconds, self._money()))
        self._story.pulsed(pulses)
        return pulses

    def _refresh(self, *names: str) -> tuple[RefreshReport, float]:
        began = time.monotonic()
        with self._progress("capturing what was committed") as watcher:
            report = self._warehouse.refresh(*names, watcher=watcher)
        return report, time.monotonic() - began

    def _recomputed(self, names: Sequence[str]) -> dict[str, float]:
        """Seconds for running each view's query, over what the newest state shows, and writing the result."""

        def recompute(name: str) -> float:
            began = time.monotonic()
            rows = self._warehouse.sql(self._views[name].query.sql)
            rows.write.format("delta").mode("overwrite").save(str(self._scratch / name))
            return time.monotonic() - began

        if names and not self._scratch.exists():
            with self._progress("recomputing once before it counts"):
                recompute(names[0])  # What Spark does for the first time takes longer.
        return self._each(names, "recompute", recompute) if names else {}

    def _verified(self) -> tuple[Verification, ...]:
        self._story.verifying()
        return tuple(self._each(list(self._views), "verify", self._warehouse.verify).values())

    def _compared(self) -> tuple[Compared, ...]:
        """Views over the shop alone, and what PostgreSQL answers to the same SQL."""
        found = []
        for name in ASKED_THERE:
            here = Counter(tuple(row) for row in self._warehouse.read(name).collect())
            there = Counter(self._scene.shop.rows(self._views[name].query.sql))
            found.append(Compared(name, here.total(), there.total(), here == there))
        return tuple(found)

    def _states(self) -> dict[int, Money]:
        """The total in every state that was published."""
        states = reversed(self._warehouse.states())
        return {state.number: self._money(state.number) for state in states if TOTAL in state.entries}

    def _money(self, state: int | None = None) -> Money:
        (row,) = self._warehouse.read(TOTAL, state=state).collect()
        return Money(row["accounts"], row["money"])

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


def _views(project: Path) -> dict[str, CreateView]:
    """The definition of each view, by name."""
    found = {}
    for file in Project.open(project).views():
        statement = ddl.parse(file.text, file.shown)
        assert isinstance(statement, CreateView)
        found[statement.name] = statement
    return found
