"""Strandline: materialized views that stay fresh incrementally, on Apache Spark."""

from strandline.errors import StrandlineError
from strandline.warehouse import Warehouse

__all__ = ["StrandlineError", "Warehouse"]
