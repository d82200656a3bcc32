"""Strandline: materialized views that stay fresh incrementally, on Apache Spark."""

from typing import TYPE_CHECKING, Any

from strandline.errors import StrandlineError

if TYPE_CHECKING:
    from strandline.warehouse import Warehouse

__all__ = ["StrandlineError", "Warehouse"]


def __getattr__(name: str) -> Any:
    """The warehouse is imported when it is first asked for: commands that need none start at once."""
    if name == "Warehouse":
        from strandline.warehouse import Warehouse

        return Warehouse
    raise AttributeError(f"module 'strandline' has no attribute {name!r}")
