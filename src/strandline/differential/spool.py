"""The working file of Window, and the second pass over it: useless pairs become updates, or nothing (2.1.1).

Deletes and inserts from the first one that fell out of an aging buffer on may belong together. They are written down
apart; at the end they are paired as the snapshots were, part by part if they are too many for memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from strandline.differential.matching import Pass, match_all
from strandline.differential.report import ReportFile


class Spool:
    """Deletes and inserts that wait for the second pass."""

    def __init__(self, folder: Path, schema: pa.Schema) -> None:
        self._folder, self._schema = folder, schema
        self._writers: dict[str, pa.RecordBatchFileWriter] = {}
        self._bytes = 0

    @property
    def used(self) -> bool:
        """Whether there is anything to settle."""
        return bool(self._writers)

    def deletes(self, rows: pa.Table) -> None:
        """Rows that went, or only moved."""
        self._write("deletes", rows)

    def inserts(self, rows: pa.Table) -> None:
        """Rows that came, or only moved."""
        self._write("inserts", rows)

    def settle(self, report: ReportFile, passes: Sequence[Pass], memory: int) -> int:
        """Report what is left of the deletes and inserts; the number of useless pairs among them."""
        parts = max(1, math.ceil(self._bytes / max(memory, 1)))
        self._close()
        # Equal rows have equal keys of the last pass: the key, or the identification attributes.
        if parts > 1:
            for name in ("deletes", "inserts"):
                self._split(name, parts, passes[-1].key)
        pairs = 0
        for part in range(parts):
            names = [f"{name}-{part}" if parts > 1 else name for name in ("deletes", "inserts")]
            old, new = (pa.Table.from_batches(self._read(name), self._schema) for name in names)
            left1, left2 = match_all(passes, old, new, report)
            pairs += old.num_rows - left1.num_rows
            report.deletes(left1)
            report.inserts(left2)
        return pairs

    def _write(self, name: str, rows: pa.Table) -> None:
        if rows.num_rows:
            if name not in self._writers:
                self._writers[name] = pa.ipc.new_file(self._folder / name, self._schema)
            self._writers[name].write_table(rows)
            self._bytes += rows.nbytes

    def _read(self, name: str) -> Iterator[pa.RecordBatch]:
        if (self._folder / name).exists():
            with pa.memory_map(str(self._folder / name)) as source, pa.ipc.open_file(source) as file:
                for number in range(file.num_record_batches):
                    yield file.get_batch(number)

    def _split(self, name: str, parts: int, key: Callable[[pa.Table], pa.Array]) -> None:
        for batch in self._read(name):
            rows = pa.Table.from_batches([batch])
            numbers = _hashed(key(rows)) % np.uint64(parts)
            for part in np.unique(numbers):
                self._write(f"{name}-{part}", rows.filter(pa.array(numbers == part)))
        self._close()

    def _close(self) -> None:
        for writer in self._writers.values():
            writer.close()
        self._writers = {}


def _hashed(keys: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Equal keys have equal numbers."""
    from pandas.util import hash_array

    numbers: np.ndarray[tuple[int], np.dtype[np.uint64]] = hash_array(keys.cast(pa.string()).to_numpy(False))
    return numbers
