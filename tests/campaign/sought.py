"""Rows are sought in tables of any size, by any number of keys, and inner deltas stored: as over much data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from unittest import mock

import pyarrow as pa

from strandline.columnar import evaluate
from strandline.engine import seeking
from strandline.engine.seeking import Seeking
from strandline.propagate import inner_deltas


@contextmanager
def everywhere() -> Iterator[list[str]]:
    """Within, they are; the tables in which they were is what is yielded."""
    tables: list[str] = []
    usual, met = Seeking.rows, Seeking.meeting

    def rows(self: Seeking, path: str, version: int, told: Mapping[str, Any]) -> pa.Table | None:
        found = usual(self, path, version, told)
        tables.extend([path] if found is not None else [])
        return found

    def meeting(self: Seeking, path: str, *asked: Any) -> pa.Table | None:
        found = met(self, path, *asked)
        tables.extend([path] if found is not None else [])
        return found

    with (
        mock.patch.multiple(seeking, LEAST_ROWS=0, MOST_SHARE=1.0),
        mock.patch.multiple(inner_deltas, LEAST_ROWS=0, LEAST_KEYS=0),
        mock.patch.object(Seeking, "rows", rows),
        mock.patch.object(Seeking, "meeting", meeting),
        mock.patch.object(evaluate, "LARGE_ROWS", 0),
    ):
        yield tables
