"""What the notes of a step say of what it read, and what they leave open."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import write_deltalake

from strandline.engine.metrics import Metrics, Scanned
from strandline.propagate.plan import Step
from strandline.propagate.recorder import Recorder
from strandline.stopwatch import Stopwatch

INSTALL = Step("1", "install", "v")


class Notes:
    """The notes of an install into a view of two files, keys 0 to 9 and 10 to 19, which read both."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.table = str(folder / "v")
        for first in (0, 10):
            keys = pa.table({"k": pa.array(range(first, first + 10), pa.int64())})
            write_deltalake(self.table, keys, mode="append")
        node = SimpleNamespace(name="v", key=("k",), path=self.table, block=None)
        context: Any = SimpleNamespace(
            vdag=SimpleNamespace(nodes={"v": node}),
            engine=SimpleNamespace(storage_options={}),
            catalog=SimpleNamespace(leaves=SimpleNamespace(all=tuple)),
        )
        self.recorder = Recorder(context, Stopwatch("steps"))

    def stored(self, *keys: int) -> None:
        """A delta of the view with these keys was stored."""
        path = self.folder / "delta"
        if keys:
            path.mkdir()
            pq.write_table(pa.table({"k": pa.array(keys, pa.int64())}), path / "part-0.parquet")
        self.recorder.made(Step("0", "compute", "v"), {"path": str(path), "inserted": len(keys), "deleted": 0})

    def profile(self, metrics: Metrics) -> dict[str, Any]:
        return self.recorder.of_step(INSTALL, metrics, {"install": "none"}, Stopwatch("step"))

    def read(self) -> dict[str, Any]:
        """What is told of the table."""
        scan = Scanned(self.table, 2, 1000, 20)
        (told,) = self.profile(Metrics(files_read=2, scans=(scan,), tables=((self.table, 1),)))["read"]
        assert (told["table"], told["files"], told["of_files"]) == ("v", 2, 2)
        return dict(told)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path)


def test_files_with_touched_keys_are_counted(notes: Notes) -> None:
    notes.stored(12)
    told = notes.read()
    assert told["holding"] == 1 and 0 < told["holding_bytes"] < told["of_bytes"]


def test_no_file_holds_the_keys_of_a_delta_without_rows(notes: Notes) -> None:
    notes.stored()
    told = notes.read()
    assert (told["holding"], told["holding_bytes"]) == (0, 0)


def test_keys_of_changes_that_were_not_stored_are_not_known(notes: Notes) -> None:
    told = notes.read()
    assert "holding" not in told and "holding_bytes" not in told


def test_nothing_read_is_told_apart_from_nothing_known(notes: Notes) -> None:
    assert notes.profile(Metrics(files_read=0))["read"] == []
    assert "read" not in notes.profile(Metrics()), "a server that tells of no scans"
    lost = Metrics(files_read=2, tables=((str(notes.folder / "gone"), 1),))
    assert "read" not in notes.profile(lost), "a log that cannot be read"
