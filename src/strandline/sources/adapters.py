"""Which adapter serves which kind of source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.delta import DeltaSource
from strandline.sources.protocol import Source


def adapter(name: str, config: Mapping[str, Any], engine: Engine, known_locations: Mapping[str, str]) -> Source:
    """The adapter for a declared source; *known_locations* spare a look into Spark's catalog."""
    if config["kind"] == "delta":
        keys = {table: tuple(key) for table, key in (config.get("keys") or {}).items()}
        return DeltaSource(
            name,
            engine,
            path=config.get("path"),
            tables=config.get("tables"),
            keys=keys,
            known_locations=known_locations,
        )
    raise SourceError("UNKNOWN_KIND", f"source {name} is of kind {config['kind']}; kinds are: delta.")
