"""A warehouse belongs to the engine that wrote it; another one may open it if it can handle every table."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.catalog import Catalog
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.engine.vectors import SWITCH
from strandline.errors import EngineError
from strandline.store.node import Node

_ENGINE = "engine"


def check_same_engine(catalog: Catalog, engine: Engine, nodes: Iterable[Node]) -> None:
    """Note the engine of a new warehouse; raise EngineError for another one that cannot write its tables."""
    wrote = catalog.settings.get(_ENGINE)
    here = engine.capabilities.engine
    if wrote is None:
        catalog.settings.put(_ENGINE, here)
        return
    if wrote == here or engine.capabilities.deletion_vectors:
        return
    for node in nodes:
        log = DeltaLog(node.path, engine.storage_options)
        if log.exists() and log.configuration().get(SWITCH) == "true":
            raise EngineError(
                "ENGINE_DIFFERS",
                f"this warehouse was written by {wrote}, and {node.name} uses deletion vectors, which the connected "
                f"engine ({here}) does not write; connect to Apache Spark.",
            )
