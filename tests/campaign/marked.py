"""Rows that go are marked as deleted in tables of any size, and no file is written anew: as over much data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from strandline.engine import vectors
from strandline.store import install, replacing


@contextmanager
def everywhere() -> Iterator[mock.Mock]:
    """Within, they are; what is yielded knows how often."""
    with (
        mock.patch.multiple(install, TINY_ROWS=0, TINY_BYTES=0),
        mock.patch.multiple(replacing, FEW_BYTES=0, REWRITTEN=0, REWRITTEN_BESIDE_MARKS=0),
        mock.patch.object(vectors, "marks", wraps=vectors.marks) as marks,
    ):
        yield marks
