from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from strandline import Warehouse
from strandline.engine.session import Engine
from strandline.sources.memory import MemorySource


@pytest.fixture
def wh(tmp_path: Path, engine: Engine, source: MemorySource) -> Iterator[Warehouse]:
    """A warehouse over the source of a test module, on the session of the test process."""
    with Warehouse.open(tmp_path / "project", spark=engine.spark) as warehouse:
        warehouse.attach(source)
        yield warehouse
