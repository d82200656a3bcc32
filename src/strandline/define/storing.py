"""How a new view is stored: what its properties ask for, or what the cost model says of what is known at CREATE.

The choice is part of the definition. It is taken once and noted; only another definition changes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from strandline.algebra.representation import counted, may_count, representation
from strandline.cost.model import CostModel
from strandline.errors import SqlError
from strandline.integrate.algorithms import ON_REAL_SOURCES
from strandline.sql.compile import Compiled
from strandline.sql.names import choices
from strandline.sql.statements import CreateView

SETTINGS: Mapping[str, tuple[str, ...]] = {
    "strandline.representation": ("auto", "dup", "count"),
    "strandline.aggregates": ("auto", "explicit", "summary", "affected"),
    "strandline.exact_floats": ("false", "true"),
    "strandline.hidden": ("auto", "stored", "in place"),
    "strandline.algorithm": ("auto", *ON_REAL_SOURCES),
}
"""Properties of a view that say how its table is kept."""

CLEARLY = 0.5
"""Counts must be that much cheaper: most views have few duplicates, and insertions are the commonest change."""


@dataclass(frozen=True)
class Multiplicity:
    """How many rows the view would have now, and about how many of them are different."""

    rows: int
    distinct: int


@dataclass(frozen=True)
class Stored:
    """A compiled view as it is stored, and why so; the reason is empty where there is no choice."""

    compiled: Compiled
    chosen: str
    why: str


Measure = Callable[[], Multiplicity | None]


def check_settings(create: CreateView) -> dict[str, str]:
    """The settings of a view, by their names in lower case. Raises SqlError for one that does not exist."""
    found: dict[str, str] = {}
    for name, value in create.properties:
        if not name.lower().startswith("strandline."):
            continue
        allowed = SETTINGS.get(name.lower())
        if allowed is None or value.lower() not in allowed:
            known = choices(SETTINGS, name) if allowed is None else ", ".join(allowed)
            what = f"property {name}" if allowed is None else f"{name} = {value}"
            raise SqlError("UNKNOWN_PROPERTY", f"there is no {what}; there are: {known}.", origin=create.origin)
        found[name.lower()] = value.lower()
    return found


def stored(
    create: CreateView, compiled: Compiled, kept: tuple[str, str] | None, measure: Measure, cost: CostModel
) -> Stored:
    """*compiled* in the representation that is declared, was *kept* so far for some reason, or is clearly cheaper."""
    asked = check_settings(create).get("strandline.representation", "auto")
    if not compiled.blocks:
        return Stored(compiled, "", "")
    own = compiled.blocks[-1]
    if not may_count(own):
        if asked == "count":
            raise SqlError(
                "NOTHING_TO_COUNT",
                f"view {create.name} is declared with 'strandline.representation' = 'count', and its rows are stored "
                f"as {representation(own)}: only rows that may be duplicates are counted; leave the property out.",
                origin=create.origin,
            )
        return Stored(compiled, representation(own), "")
    chosen, why = (asked, "as declared") if asked != "auto" else _chosen(kept, measure, cost)
    if chosen == "dup":
        return Stored(compiled, "dup", why)
    return Stored(replace(compiled, blocks=(*compiled.blocks[:-1], counted(own))), "count", why)


def _chosen(kept: tuple[str, str] | None, measure: Measure, cost: CostModel) -> tuple[str, str]:
    if kept is not None:
        return kept
    found = measure()
    if found is None:
        return "dup", "its duplicates were not counted"
    rows, counts = cost.as_rows(found.rows), cost.as_counts(found.rows, found.distinct)
    said = f"{found.rows} rows, about {found.distinct} different: estimated {rows:.2f} as rows, {counts:.2f} as counts"
    return ("count" if counts < CLEARLY * rows else "dup"), said
