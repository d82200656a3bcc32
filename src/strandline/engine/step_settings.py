"""What a step of a refresh sets in its session before it begins."""

from __future__ import annotations

from collections.abc import Mapping

from strandline.engine.settings import OLD_VERSIONS

_PARTITIONS = "spark.sql.shuffle.partitions"

_ALWAYS = {
    # Spark describes each plan in words before it runs it, whether somebody looks or not.
    "spark.sql.ui.explainMode": "simple",
    # The scans in these descriptions are told apart by their locations.
    "spark.sql.maxMetadataStringLength": "400",
    # The default, INT96, is read by few, and not for all years.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Spark's planner would derive a number of constraints that is exponential in the aggregates of a summary delta.
    "spark.sql.constraintPropagation.enabled": "false",
    OLD_VERSIONS: "false",
}

# Files that are named one by one would be looked at in a task each.
_LISTING = {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "32"}

_COMPILED = {
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.adaptive.enabled": "true",
    _PARTITIONS: "8",
}

_INTERPRETED = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    _PARTITIONS: "2",
}
"""For steps over little data, where compiling costs more than it saves."""


def of_step(given: Mapping[str, str], *, compiled: bool, partitions: int | None) -> dict[str, str]:
    """The settings of a step that runs *compiled* or interpreted.

    *partitions* is into how many parts a compiled one shuffles rows. What is *given* for the warehouse goes before the
    settings of a compiled step, and what makes one run interpreted before that.
    """
    shuffled = {} if partitions is None else {_PARTITIONS: str(partitions)}
    usual = {**_LISTING, **_COMPILED, **shuffled}
    told = {name: given.get(name, value) for name, value in usual.items()}
    return {**_ALWAYS, **told, **({} if compiled else _INTERPRETED)}
