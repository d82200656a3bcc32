"""Strandline: materialized views that stay fresh incrementally, on Apache Spark."""
