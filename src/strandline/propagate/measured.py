"""Prediction and measurement of a step, as they are stored with it: the history that costs are calibrated from."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from strandline.catalog import Catalog
from strandline.cost.calibration import CONSIDERED, SETTING, calibrated
from strandline.cost.model import CostModel
from strandline.engine.metrics import Metrics
from strandline.propagate.plan import Step

COUNTED = (
    "jobs", "tasks", "executor_seconds", "processor_seconds", "rows_read", "files_read", "bytes_read", "shuffle_bytes",
    "bytes_written",
)  # fmt: skip
"""What is stored of what the engine counted."""


def measured(step: Step, metrics: Metrics, *, resumed: bool) -> dict[str, Any]:
    """What a step's result says of its prediction and of what the engine counted; None is what it cannot tell.

    The first step of a fresh engine (``cold``) and a *resumed* one took time that says nothing of others.
    """
    counted = {name: getattr(metrics, name) for name in COUNTED}
    found: dict[str, Any] = {
        "predicted": step.predicted,
        "charges": dict(step.charges),
        "mode": step.mode,
        "measured": counted,
    }
    return found | ({"cold": True} if metrics.first else {}) | ({"resumed": True} if resumed else {})


def calibrate(catalog: Catalog, prior: CostModel) -> None:
    """Fit the constants to the newest steps, and keep them for the plans to come.

    A history that no constants can be fitted to is no reason to fail: what was refreshed is published by now.
    """
    found = None
    with suppress(ArithmeticError, LookupError, TypeError, ValueError):
        found = calibrated(catalog.refreshes.measured(CONSIDERED), prior, catalog.clock())
    if found is not None:
        catalog.settings.put(SETTING, found.to_text())
