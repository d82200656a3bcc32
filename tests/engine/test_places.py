"""Folders are handled alike on a disk and behind a scheme."""

from __future__ import annotations

from pathlib import Path

import pytest

from strandline.engine import places


@pytest.fixture(params=["", "file://"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"{request.param}{tmp_path}/a place"


def test_what_is_not_there_is_empty(root: str) -> None:
    assert places.folders(root) == [] and places.files(root) == [] and places.read_text(root, "note") is None
    places.remove(root)


def test_files_and_folders_are_listed_and_removed(root: str) -> None:
    places.write_text(root, "note", "first")
    places.write_text(root, "note", "second")
    places.write_text(f"{root}/views/v-1", "part", "1234")
    assert places.read_text(root, "note") == "second"
    assert places.folders(root) == ["views"] and places.folders(f"{root}/views") == ["v-1"]
    assert {file.path: file.bytes for file in places.files(root)} == {"note": 6, "views/v-1/part": 4}
    places.remove(f"{root}/views/v-1")
    assert [file.path for file in places.files(root)] == ["note"]


def test_only_a_disk_has_a_path() -> None:
    assert places.on_disk("/data/wh") == places.on_disk("file:///data/wh") == Path("/data/wh")
    assert places.on_disk("s3a://bucket/wh") is None
