"""Errors that several parts of the catalog raise in the same words."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.errors import CatalogError

SHOWN = 10


def unknown(what: str, name: object, existing: Iterable[object]) -> CatalogError:
    """``<WHAT>_UNKNOWN``: nothing of that name is there."""
    return CatalogError(
        f"{what.upper()}_UNKNOWN",
        f"there is no {what} {name}; there {listing(what, existing)}; check the name.",
    )


def listing(what: str, existing: Iterable[object]) -> str:
    """``is no view`` or ``are the views a, b and 3 more``, for the middle of a message."""
    shown = [str(one) for one in existing]
    if not shown:
        return f"is no {what} yet"
    more = f" and {len(shown) - SHOWN} more" if len(shown) > SHOWN else ""
    plural = "leaves" if what == "leaf" else "refreshes" if what == "refresh" else f"{what}s"
    return f"are the {plural} {', '.join(shown[:SHOWN])}{more}"
