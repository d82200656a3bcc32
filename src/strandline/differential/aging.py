"""The aging buffer of Window: rows that wait for their match, oldest first, up to a bound."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from strandline.differential.matching import Buffer, Pass


class Aging(Buffer):
    """A buffer with a queue through it: rows come in at the tail, and fall out at the head when it is full."""

    def __init__(self, schema: pa.Schema, passes: Sequence[Pass], most_bytes: int, most_rows: int | None) -> None:
        super().__init__(schema.empty_table(), passes)
        self._most_bytes, self._most_rows = most_bytes, most_rows

    def enqueue(self, rows: pa.Table) -> pa.Table:
        """Put *rows* at the tail; those that fall out at the head."""
        self._compact(1 / 2)
        added = Buffer(rows, self._passes)
        for number in range(len(self._passes)):
            before = self._all_keys(number)
            self._keys[number] = pa.concat_arrays([before, added._all_keys(number)]) if len(before) else None
        # Filtering copies, and so lets go of the input buffer that the rows came in.
        self.rows = pa.concat_tables([self.rows, rows]) if self.rows.num_rows else rows
        self.alive = np.concatenate([self.alive, added.alive])
        return self._fallen()

    def drain(self) -> pa.Table:
        """Everything left, oldest first."""
        return self.left()

    def _fallen(self) -> pa.Table:
        over = 0
        if self._most_rows is not None:
            over = self.live - self._most_rows
        elif self.rows.nbytes > self._most_bytes:
            self._compact(0.0)
            each = self.rows.nbytes / max(1, self.live)
            over = math.ceil((self.rows.nbytes - self._most_bytes) / each)
        heads = np.flatnonzero(self.alive)[: max(0, over)]
        fallen = self.at(heads) if len(heads) else self.rows.slice(0, 0)
        self.remove(heads)
        return fallen

    def _compact(self, share: float) -> None:
        """Let go of the rows that found their match, if they are more than *share* of all."""
        dead = len(self.alive) - self.live
        if dead > share * len(self.alive):
            chosen = pa.array(self.alive)
            self._keys = [None if keys is None else keys.filter(chosen) for keys in self._keys]
            self.rows = self.rows.filter(chosen).combine_chunks()
            self.alive = np.ones(self.rows.num_rows, bool)
