"""What happens in the demonstration, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from strandline.demo.shop import Shop
from strandline.propagate.report import RefreshReport
from strandline.propagate.verify import Verification


@dataclass(frozen=True)
class Round:
    """A change to the sources, to be followed by a refresh."""

    title: str
    change: Callable[[Shop], list[str]]


ROUNDS = (
    Round("New orders come in", Shop.take_orders),
    Round("The tables are compacted", Shop.compact),
    Round("Orders are cancelled, goods returned, prices raised", Shop.cancel_return_and_reprice),
    Round("Nothing happens", Shop.do_nothing),
    Round("Customers move", Shop.move_customers),
)


@dataclass(frozen=True)
class Refreshed:
    """A round that is over: the refresh, and the seconds that recomputing each refreshed view took beside it.

    *seconds* is what the whole refresh took, *ingest_seconds* the part for the sources' changes.
    """

    title: str
    report: RefreshReport
    seconds: float
    ingest_seconds: float = 0.0
    recomputed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The whole demonstration."""

    first: RefreshReport
    rounds: tuple[Refreshed, ...]
    verified: tuple[Verification, ...]

    @property
    def ok(self) -> bool:
        """Whether every view was refreshed in every round, and equals its recomputation."""
        refreshed = self.first.ok and all(one.report.ok for one in self.rounds)
        return refreshed and all(one.ok for one in self.verified)
