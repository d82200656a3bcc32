"""Which adapter serves which kind of source."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.delta import DeltaSource
from strandline.sources.files.declared import FilesTable
from strandline.sources.files.source import FilesSource
from strandline.sources.jdbc import JdbcAddress, JdbcSource, JdbcTable
from strandline.sources.protocol import CapturedSource, Source
from strandline.sources.snapshots import SnapshotSource


def adapter(
    name: str, config: Mapping[str, Any], engine: Engine, known_locations: Mapping[str, str], owner: str
) -> Source | CapturedSource | SnapshotSource:
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
    if config["kind"] == "files":
        return _files(name, config)
    if config["kind"] == "jdbc":
        return _jdbc(name, config, engine)
    kinds = "delta, postgres, files, jdbc"
    raise SourceError("UNKNOWN_KIND", f"source {name} is of kind {config['kind']}; kinds are: {kinds}.")


def _files(name: str, config: Mapping[str, Any]) -> SnapshotSource:
    """A table's own settings count before those of its source; its path starts at that of its source."""
    root, keys = config.get("path"), config.get("keys") or {}
    shared = {key: config[key] for key in _OF_DUMPS if config.get(key) is not None}

    def declared(table: str, given: Mapping[str, Any], path: str) -> FilesTable:
        own = {key: given[key] for key in (*_OF_DUMPS, "columns") if given.get(key) is not None}
        options = {**shared.get("options", {}), **own.get("options", {})}
        key = tuple(given.get("key") or keys.get(table) or ())
        settings = {"format": "parquet", **shared, **own, "options": options}
        return FilesTable(path=path, whole=given.get("dumps") == "whole", key=key, **settings)

    tables = {
        table: declared(table, given, str(Path(root or "") / (given.get("path") or table)))
        for table, given in (config.get("tables") or {}).items()
    }
    each = (lambda table, path: declared(table, {}, path)) if root is not None else None
    return FilesSource(name, tables, path=root, each=each)


_OF_DUMPS = ("format", "options", "order", "marker", "settle", "shrink", "unreadable")


def _jdbc(name: str, config: Mapping[str, Any], engine: Engine) -> SnapshotSource:
    address = JdbcAddress(
        config.get("url"),
        config.get("url_env"),
        config.get("user"),
        config.get("password_env"),
        config.get("properties") or {},
    )
    tables = {
        table: JdbcTable(**{**given, "key": tuple(given.get("key") or ())}) for table, given in config["tables"].items()
    }
    return JdbcSource(name, engine, address, tables)


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
    given |= {key: config[key] for key in ("publication", "patience", "copies") if key in config}
    address = Address(config.get("dsn"), config.get("dsn_env"))
    return PostgresSource(name, address, owner=owner, max_retained_wal=config.get("max_retained_wal"), **given)
