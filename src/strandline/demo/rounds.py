"""What happens in the demonstration, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from strandline.demo.scene import Scene
from strandline.demo.shop import BATCHES
from strandline.propagate.report import RefreshReport
from strandline.propagate.verify import Verification


@dataclass(frozen=True)
class Round:
    """A change to the sources, to be followed by a refresh."""

    title: str
    change: Callable[[Scene], list[str]]


def orders_come_in(scene: Scene) -> list[str]:
    """A reseller's orders, and lines for these and for those of the clerk."""
    bulk, single = scene.shop.take_orders(), scene.writers.placed()
    lines = scene.lake.sell([*bulk, *single])
    return [
        f"shop.orders: a reseller sends {len(bulk):,} orders in {BATCHES} transactions",
        f"lake.line_items: {lines:,} lines arrive, of these and of the {len(single)} orders that the clerk took so far",
    ]


def much_changes_and_the_writers_go(scene: Scene) -> list[str]:
    """Updates on all sides, and then the end of all writing."""
    cancelled, moved = scene.shop.cancel_orders(), scene.shop.move_customers()
    reclassified = scene.lake.reclassify()
    scene.writers.stop()
    single = scene.writers.placed()
    lines = scene.lake.sell(single)
    return [
        f"shop.orders: {cancelled:,} orders are cancelled in one transaction",
        f"shop.customers: {moved:,} customers move overseas",
        f"lake.products: {reclassified:,} products are no longer games, but toys",
        f"lake.line_items: {lines:,} lines arrive, of the {len(single)} orders that the clerk took since",
        f"the writers stop: they committed {scene.writers.committed:,} transactions and rolled back "
        f"{scene.writers.rolled_back:,}",
    ]


def the_lake_is_compacted(scene: Scene) -> list[str]:
    """New files, no new rows."""
    return [scene.lake.compact()]


@dataclass(frozen=True)
class Pulses:
    """Refreshes of the view ``total`` alone, one after the other, while the writers write."""

    count: int


SCRIPT = (
    Round("Orders come in, while the writers go on", orders_come_in),
    Pulses(5),
    Round("Much changes, and then the writers stop", much_changes_and_the_writers_go),
    Round("Nothing happens but housekeeping", the_lake_is_compacted),
)
"""What comes after the first refresh; whoever tells another story must stop the writers in it."""


@dataclass(frozen=True)
class Refreshed:
    """A round that is over: the refresh, and the seconds that recomputing each refreshed view took beside it."""

    title: str
    report: RefreshReport
    seconds: float
    recomputed: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Money:
    """What the view ``total`` shows."""

    accounts: int
    amount: Decimal


@dataclass(frozen=True)
class Pulse:
    """A refresh of the view ``total`` alone, and what it showed then."""

    report: RefreshReport
    seconds: float
    money: Money


@dataclass(frozen=True)
class Compared:
    """A view beside the answer that PostgreSQL itself gave to its query."""

    view: str
    rows: int
    there: int
    equal: bool


@dataclass(frozen=True)
class Outcome:
    """The whole demonstration."""

    first: RefreshReport
    rounds: tuple[Refreshed, ...]
    pulses: tuple[Pulse, ...]
    verified: tuple[Verification, ...]
    compared: tuple[Compared, ...]
    expected: Money
    states: Mapping[int, Money]
    """What the total was in each published state."""
    committed: int
    rolled_back: int
    """Transactions of the writers."""
    problem: str | None = None
    """Why a writer stopped before its time."""

    @property
    def reports(self) -> list[RefreshReport]:
        """All refreshes."""
        return [self.first, *(one.report for one in self.rounds), *(one.report for one in self.pulses)]

    @property
    def constant(self) -> bool:
        """Whether all money was there in every state."""
        return set(self.states.values()) == {self.expected}

    @property
    def ok(self) -> bool:
        """Whether everything was refreshed, verified, equal and constant."""
        checks = [one.ok for one in self.verified] + [one.equal for one in self.compared]
        return all(r.ok for r in self.reports) and all(checks) and self.constant and self.problem is None
