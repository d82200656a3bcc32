"""Costs calibrated from what this warehouse measured: the constants, how good they are, and when they are used.

The fixed constants rank the ways of doing a thing; they were measured on another machine. Each step of a refresh is
stored with what it was charged for and what it took, and from the last few hundred of these come constants of this
warehouse. They are used once there is enough to tell, and only if they predict better. Where they would choose
otherwise than the fixed ones, that has to be clearly cheaper: a choice should not flicker with its estimates.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, TypeVar

from strandline.cost.charges import Charges
from strandline.cost.model import CostModel, LinearCosts, Mode

ENOUGH = 20
"""With fewer measured steps the fixed constants are used."""

CONSIDERED = 400
"""So many steps are looked at, the newest."""

SWITCHING = 0.8
"""By calibrated costs, another choice than that of the fixed ones must cost no more than this share of it."""

SETTING = "costs"
"""The setting of the warehouse that holds the newest calibration."""

T = TypeVar("T")


@dataclass(frozen=True)
class Calibration:
    """The constants of a warehouse, from so many steps; errors are medians, relative to what was measured."""

    costs: LinearCosts
    steps: int
    error: float
    error_before: float
    at: str

    @property
    def better(self) -> bool:
        """Whether they predict the steps that they come from better than the fixed ones."""
        return self.error < self.error_before

    def to_text(self) -> str:
        """As the catalog keeps it."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Calibration:
        """The inverse; constants that there are no more are left out."""
        found: dict[str, Any] = json.loads(text)
        known = {field.name for field in fields(LinearCosts)}
        costs = LinearCosts(**{name: value for name, value in found["costs"].items() if name in known})
        return cls(**{**found, "costs": costs})


@dataclass(frozen=True)
class Prices:
    """The costs to plan with, and those that a choice has to answer to."""

    costs: CostModel
    usual: CostModel
    told: str = "fixed"
    calibration: Calibration | None = None

    def choose(self, chosen_by: Callable[[CostModel], T], cost_of: Callable[[CostModel, T], float]) -> T:
        """What the fixed costs choose, unless calibrated ones say that another choice is clearly cheaper."""
        usual = chosen_by(self.usual)
        if self.costs is self.usual:
            return usual
        found = chosen_by(self.costs)
        if found == usual or cost_of(self.costs, found) < SWITCHING * cost_of(self.costs, usual):
            return found
        return usual

    def mode(self, charged: Charges) -> Mode:
        """How a step is run, by the fixed costs: no step was measured both ways, so its own do not tell them apart."""
        return self.usual.mode(charged)

    def to_dict(self) -> dict[str, Any]:
        """As ``status --json`` shows it."""
        shown = None if self.calibration is None else asdict(self.calibration)
        return {"costs": self.told, "calibration": shown}


def prices(stored: str | None, usual: CostModel) -> Prices:
    """The costs of a warehouse with a *stored* calibration, if any."""
    if stored is None:
        return Prices(usual, usual)
    found = Calibration.from_text(stored)
    errors = f"median error {found.error:.0%}, of the fixed ones {found.error_before:.0%}"
    if not found.better:
        return Prices(usual, usual, f"fixed; {found.steps} steps give no better ones ({errors})", found)
    return Prices(found.costs, usual, f"calibrated from {found.steps} steps, {errors}", found)


def calibrated(
    measured: Iterable[tuple[Mapping[str, Any], float | None]], prior: CostModel, at: datetime
) -> Calibration | None:
    """The constants from the results and seconds of steps, newest first; None if these are too few to tell.

    Steps that started the engine, or were finished after a crash, took other time than their own.
    """
    from strandline.cost.fit import fitted

    if not isinstance(prior, LinearCosts):
        return None
    observations = _observations(measured)
    if len(observations) < ENOUGH:
        return None
    found = fitted(observations, prior)
    return Calibration(found.costs, len(observations), found.error, found.error_before, at.isoformat())


def _observations(measured: Iterable[tuple[Mapping[str, Any], float | None]]) -> Sequence[Any]:
    from strandline.cost.fit import Observation

    return [
        Observation(result["charges"], seconds)
        for result, seconds in measured
        if seconds is not None and result.get("charges") and not result.get("cold") and not result.get("resumed")
    ]
