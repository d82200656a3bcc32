"""Which views are due: a pure matter of what was seen when. Times are seconds of any clock that only goes forward.

A view with a schedule is due by its interval. The others follow changes. After a quiet time they do so at once; under
steady writes they wait for one another, as long as the bound on lag allows: with a refresh that begins so long before
the bound is reached that it ends in time, few states are published and none comes late.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

SAFETY = 1.5
"""A refresh is taken to last this many times as long as those before it."""

RESERVE = 0.2
"""The share of the lag that is kept for what nobody expects, such as a server that is restarted."""

FORGETTING = 0.3
"""How much a refresh that was quicker than expected counts against those before it."""

IDLE_SECONDS = 60.0
"""How long the log of a source may go on before it is taken in, though no view is refreshed."""

TRY_UPKEEP_AGAIN = 3_600.0


@dataclass(frozen=True)
class Pace:
    """How often sources are looked at, how old changes may get, and how long to wait at most after failures."""

    poll: float = 5.0
    max_lag: float = 30.0
    longest_wait: float = 300.0
    maintain_every: float | None = 86_400.0

    def after_failures(self, count: int) -> float:
        """How long to wait before another try: twice as long each time, up to a limit."""
        return min(self.longest_wait, self.poll * 2.0 ** min(count - 1, 30))


@dataclass(frozen=True)
class Seen:
    """What a look found of a view: its interval, whether changes wait and for how many seconds, if that is known.

    One that is *blocked* cannot be refreshed now. *idle* is how long ago its last refresh was.
    """

    every: float | None = None
    changed: bool = False
    waiting: float | None = None
    blocked: bool = False
    idle: float | None = None


@dataclass
class _View:
    every: float | None = None
    blocked: bool = False
    next_due: float = 0.0
    changed_at: float | None = None
    failures: int = 0
    not_before: float = float("-inf")


@dataclass
class Scheduler:
    """What is known of each view, and what follows from it."""

    pace: Pace
    _views: dict[str, _View] = field(default_factory=dict)
    _began: float = float("-inf")
    _expected: float = 0.0
    _captured: dict[str, float] = field(default_factory=dict)
    _no_upkeep_before: float = float("-inf")

    # What is seen and done

    def look(self, now: float, seen: Mapping[str, Seen]) -> None:
        """Take in what a look found; views that are not in it are forgotten."""
        self._views = {name: self._views.get(name, _View()) for name in seen}
        for name, found in seen.items():
            view = self._views[name]
            if found.every is not None and found.every != view.every:
                view.next_due = now if found.idle is None else now + found.every - found.idle
            view.every, view.blocked = found.every, found.blocked
            if not found.changed:
                view.changed_at = None
                if view.every is None:
                    view.failures, view.not_before = 0, float("-inf")
            elif view.changed_at is None:
                view.changed_at = now - max(found.waiting or 0.0, 0.0)

    def refreshed(
        self, began: float, ended: float, names: Collection[str], failed: Collection[str], sources: Iterable[str] = ()
    ) -> None:
        """A refresh of *names* was made, and took in the logs of *sources*; *failed* views wait before another try."""
        self._began = began
        self._captured.update(dict.fromkeys(sources, began))
        lasted = ended - began
        longer = lasted >= self._expected
        self._expected = lasted if longer else self._expected + FORGETTING * (lasted - self._expected)
        for name in names:
            view = self._views.setdefault(name, _View())
            if view.every is not None and began >= view.next_due:
                missed = view.next_due + view.every <= began
                view.next_due = began + view.every if missed else view.next_due + view.every
            if name in failed:
                view.failures += 1
                view.not_before = ended + self.pace.after_failures(view.failures)
            else:
                view.failures, view.not_before, view.changed_at = 0, float("-inf"), None

    # What follows

    def due(self, now: float) -> list[str]:
        """The views to be refreshed now, all together; none if there is time."""
        able = {name: v for name, v in self._views.items() if not v.blocked and now >= v.not_before}
        scheduled = [name for name, v in able.items() if v.every is not None and (now >= v.next_due or v.failures)]
        following = [name for name, v in able.items() if v.every is None and v.changed_at is not None]
        if scheduled or now >= self._began + self.spacing:
            return [name for name in self._views if name in scheduled or name in following]
        return []

    @property
    def failing(self) -> frozenset[str]:
        """The views that failed when they were last tried, and are to be tried again."""
        return frozenset(name for name, view in self._views.items() if view.failures)

    @property
    def spacing(self) -> float:
        """Seconds from the beginning of one refresh to that of the next, under steady writes.

        What comes just after a refresh has begun waits for the next one, up to a look longer, and for its end.
        """
        return max(0.0, (1 - RESERVE) * self.pace.max_lag - self.pace.poll - SAFETY * self._expected)

    def retry_in(self, now: float, name: str) -> float:
        """How long a view that failed has to wait."""
        return max(0.0, self._views[name].not_before - now) if name in self._views else 0.0

    def waited(self, now: float, name: str) -> float | None:
        """How long changes of a view have been waiting, by when they were noticed."""
        view = self._views.get(name)
        return None if view is None or view.changed_at is None else now - view.changed_at

    # Sources and upkeep

    def capture_due(self, now: float, ahead: Collection[str]) -> bool:
        """Whether the log of one of the sources that went on was not taken in for long."""
        self._captured = {name: self._captured.get(name, now) for name in ahead}
        return any(now - since >= IDLE_SECONDS for since in self._captured.values())

    def captured(self) -> None:
        """The logs of all sources were taken in."""
        self._captured = {}

    def upkeep_wanted(self, age: float | None) -> bool:
        """Whether upkeep is to be done, which somebody last did *age* seconds ago; None if nobody ever did."""
        every = self.pace.maintain_every
        return every is not None and (age is None or age >= every)

    def upkeep_due(self, now: float, age: float | None) -> bool:
        """Whether that is to be now."""
        return self.upkeep_wanted(age) and now >= self._no_upkeep_before

    def upkeep_done(self, now: float, *, ok: bool) -> None:
        """Upkeep was done, or failed and is tried again."""
        every = self.pace.maintain_every or 0.0
        self._no_upkeep_before = now + (every if ok else min(every, TRY_UPKEEP_AGAIN))


def intervals(own: Mapping[str, float | None], over: Mapping[str, Sequence[str]]) -> dict[str, float | None]:
    """The interval of each view, given its *own* and the views that it is computed from.

    A view over a scheduled one cannot move without it, so, unless it has a schedule itself, it takes on the shortest of
    those below it; else each change would refresh what was to wait.
    """
    below = {name: [every for each in over[name] if (every := own.get(each)) is not None] for name in own}
    return {name: every if every is not None else min(below[name], default=None) for name, every in own.items()}
