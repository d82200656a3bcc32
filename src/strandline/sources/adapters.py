"""Which adapter serves which kind of source."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.delta import DeltaSource
from strandline.sources.protocol import CapturedSource, Source


def adapter(
    name: str, config: Mapping[str, Any], engine: Engine, known_locations: Mapping[str, str], owner: str
) -> Source | CapturedSource:
    """The adapter for a declared source.

    *known_locations* spare a look into Spark's catalog; *owner* names the warehouse to sources that others read too.
    """
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
    if config["kind"] == "postgres":
        return _postgres(name, config, owner)
    raise SourceError("UNKNOWN_KIND", f"source {name} is of kind {config['kind']}; kinds are: delta, postgres.")


def _postgres(name: str, config: Mapping[str, Any], owner: str) -> CapturedSource:
    try:
        import psycopg  # noqa: F401
    except ImportError as error:
        raise SourceError(
            "DRIVER_MISSING",
            f"source {name} is a PostgreSQL database, and its driver is not installed ({error}); "
            'run `pip install "strandline[postgres]"`.',
        ) from error
    from strandline.sources.postgres.address import Address
    from strandline.sources.postgres.source import PostgresSource

    given = {key: config[key] for key in ("schema", "tables", "types", "special_values", "slot") if key in config}
    given |= {key: config[key] for key in ("publication", "patience") if key in config}
    address = Address(config.get("dsn"), config.get("dsn_env"))
    return PostgresSource(name, address, owner=owner, max_retained_wal=config.get("max_retained_wal"), **given)
