"""Constants fitted to measured steps.

Each constant is the fixed one times a factor. The factors minimise the squared relative errors of the predictions plus
a penalty for leaving 1, so that what the history does not tell stays as it was (ridge regression towards the fixed
constants), within bounds, so that no constant vanishes or turns negative. A large error counts by its size and not by
its square (Huber), because a pause of the machine says nothing; old steps count less than new ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from strandline.cost.charges import Amounts
from strandline.cost.model import LinearCosts

Array = npt.NDArray[np.float64]

HALF_LIFE = 150
"""After so many further steps, a step counts half."""

PRIOR = 0.1
"""How much leaving a fixed constant counts: doubling it, as much as one step whose prediction is a third off."""

LEAST, MOST = 0.25, 20.0
"""Bounds of the factors: a constant that others could stand for should not vanish."""

SHORT = 0.1
"""Seconds below which differences mean nothing."""

_USUAL = 0.3
"""A relative error up to which an observation counts in full."""

_ROUNDS = 20
_SWEEPS = 200


@dataclass(frozen=True)
class Observation:
    """What a step was charged for, and the seconds that it took."""

    amounts: Amounts
    seconds: float


@dataclass(frozen=True)
class Fit:
    """The constants, and the median relative error of their predictions and of those of the prior."""

    costs: LinearCosts
    error: float
    error_before: float


def fitted(observations: Sequence[Observation], prior: LinearCosts) -> Fit:
    """The constants for *observations*, which come newest first."""
    names = [field.name for field in fields(prior)]
    start = np.array([getattr(prior, name) for name in names])
    charged = np.array([[one.amounts.get(name, 0.0) for name in names] for one in observations])  # type: ignore[call-overload]
    seconds = np.array([one.seconds for one in observations])
    age = np.arange(len(observations))
    recent = 0.5 ** (age / HALF_LIFE)
    factors = np.ones(len(names))
    for _ in range(_ROUNDS):
        # Relative to both, so that a prediction that is twice too large errs as much as one that is half too small.
        scale = (seconds + charged @ (start * factors)) / 2 + SHORT
        predictors, wanted = charged * start / scale[:, None], seconds / scale
        errors = np.abs(predictors @ factors - wanted)
        weights = recent * np.minimum(1.0, _USUAL / np.maximum(errors, _USUAL))
        before, factors = factors, _descended(predictors, wanted, weights, factors)
        if np.allclose(before, factors, rtol=1e-2):
            break
    found = replace(prior, **{name: float(value) for name, value in zip(names, start * factors, strict=True)})
    off = (np.abs(charged @ (start * each) - seconds) / (seconds + SHORT) for each in (factors, np.ones(len(names))))
    return Fit(found, *(_median(errors, recent) for errors in off))


def _descended(predictors: Array, wanted: Array, weights: Array, factors: Array) -> Array:
    """The minimum within the bounds, one factor after the other until none moves."""
    size = len(factors)
    gram = predictors.T @ (predictors * weights[:, None]) + PRIOR * np.eye(size)
    target = predictors.T @ (wanted * weights) + PRIOR
    found = factors.copy()
    for _ in range(_SWEEPS):
        moved = 0.0
        for place in range(size):
            rest = target[place] - gram[place] @ found + gram[place, place] * found[place]
            value = min(max(rest / gram[place, place], LEAST), MOST)
            moved = max(moved, abs(value - found[place]))
            found[place] = value
        if moved < 1e-4:
            break
    return found


def _median(values: Array, weights: Array) -> float:
    order = np.argsort(values)
    reached = np.cumsum(weights[order])
    return float(values[order][np.searchsorted(reached, reached[-1] / 2)])
