"""What all tests share: the one Spark session of the process, and bags to compare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from strandline.algebra.bag import SignedBag, canonical
from strandline.engine.session import Engine


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """The one Spark session of the test process; it starts when it is first used."""
    engine = Engine(settings={"spark.driver.memory": "2g", "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1"})
    yield engine
    engine.close()


def bag(rows: Iterable[Sequence[Any]]) -> SignedBag:
    """*rows* as a bag, under Spark's grouping equality: what two results are compared as."""
    return SignedBag.of(tuple(_hashable(value) for value in row) for row in rows)


def _hashable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return tuple(_hashable(item) for item in value)
    if isinstance(value, Mapping):
        return frozenset((_hashable(key), _hashable(item)) for key, item in value.items())
    if isinstance(value, bytearray):
        return bytes(value)
    return canonical(value)
