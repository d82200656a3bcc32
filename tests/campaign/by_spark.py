"""Nothing is computed over columns here: all of it is left to Spark, as over much data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from strandline.propagate.here import Here


@contextmanager
def everything() -> Iterator[None]:
    """Within, it is."""
    with mock.patch.object(Here, "rows", lambda *args, **told: None):
        yield
