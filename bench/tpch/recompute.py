"""The same queries from scratch, each written to a Delta table: with Spark's own settings, and with ours."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from bench.processors import Stopwatch
from bench.tpch.lake import Lake
from strandline.engine.session import Engine
from tests.campaign.corpus.definitions import Definition

DEFAULTS = {
    "spark.sql.shuffle.partitions": "200",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.constraintPropagation.enabled": "true",
    "spark.sql.ui.explainMode": "formatted",
    "spark.sql.parquet.outputTimestampType": "INT96",
    "spark.databricks.delta.snapshotPartitions": "50",
}
"""What Spark and Delta do if nobody sets anything."""

_TABLE = re.compile(r"\btpch\.(\w+)")


def over(query: str, lake: Lake, versions: Mapping[str, int] | None = None) -> str:
    """*query* over the tables of the lake, as they are or at *versions*."""
    at = {table: f" VERSION AS OF {version}" for table, version in (versions or {}).items()}
    return _TABLE.sub(lambda found: f"delta.`{lake.path(found[1])}`{at.get(found[1], '')}", query)


class Recomputes:
    """Ways of recomputing, by name."""

    def __init__(self, spark: Any, lake: Lake, folder: str, *, classic: bool) -> None:
        self._lake = lake
        self._folder = folder
        self._engine = Engine(spark)
        self._plain = _with_defaults(spark.newSession()) if classic else None
        self.ways = ("ours", "defaults") if classic else ("ours",)

    def path(self, view: str) -> str:
        """Where the result that is compared with others is."""
        return f"{self._folder}/{view}"

    def all(self, views: Sequence[Definition], turn: int) -> dict[str, dict[str, Stopwatch]]:
        """What each way took for each view; the ways take turns."""
        found: dict[str, dict[str, Stopwatch]] = {way: {} for way in self.ways}
        for place, view in enumerate(views):
            for way in self.ways if (turn + place) % 2 == 0 else self.ways[::-1]:
                with Stopwatch() as watch:
                    self._one(way, view)
                found[way][view.name] = watch
        return found

    def _one(self, way: str, view: Definition) -> None:
        query = over(view.query, self._lake)
        if way == "ours":
            with self._engine.step(view.name, "recompute", small=False):
                self._engine.write_delta(query, self.path(view.name), "overwrite", "bench")
        else:
            assert self._plain is not None
            self._plain.sql(query).write.format("delta").mode("overwrite").save(f"{self.path(view.name)}-defaults")


def _with_defaults(session: Any) -> Any:
    for name, value in DEFAULTS.items():
        session.conf.set(name, value)
    return session
