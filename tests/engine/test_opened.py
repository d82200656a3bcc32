"""Tables that are opened are read once, as long as they are what they were."""

from __future__ import annotations

import gc
import shutil
import weakref
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.exceptions import TableNotFoundError
from deltalake.schema import PrimitiveType

from strandline.engine import opened as module
from strandline.engine.opened import opened


@pytest.fixture
def path(tmp_path: Path) -> str:
    add(str(tmp_path / "t"), 1, 2)
    return str(tmp_path / "t")


def add(path: str, *values: int) -> None:
    write_deltalake(path, pa.table({"a": list(values)}), mode="append")


def test_a_table_that_did_not_change_is_opened_once(path: str) -> None:
    first = opened(path)
    assert opened(path) is first
    assert opened(path, 0) is opened(path, 0)
    assert first.files is opened(path).files


def test_a_commit_is_seen_and_a_version_stays_what_it_is(path: str) -> None:
    assert opened(path).table.version() == 0
    add(path, 3)
    assert opened(path).table.version() == 1
    assert (opened(path).files.size.rows, opened(path, 0).files.size.rows) == (3, 2)


def test_a_table_in_the_place_of_another_is_seen(path: str) -> None:
    before = opened(path).table.metadata().id
    shutil.rmtree(path)
    with pytest.raises(TableNotFoundError):
        opened(path)
    add(path, 1, 2)
    assert opened(path).table.metadata().id == DeltaTable(path).metadata().id != before


def test_a_log_that_lost_a_commit_is_read_again(path: str) -> None:
    add(path, 3)
    assert opened(path).files.count == 2
    Path(path, "_delta_log", f"{0:020d}.json").unlink()
    with pytest.raises(Exception, match="log"):
        opened(path)


def test_only_so_many_are_kept(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "KEPT", 2)
    for value in range(4):
        add(path, value)
    first = opened(path, 0)
    for version in (1, 2, 3):
        opened(path, version)
    assert opened(path, 0) is not first
    assert len(module._kept) <= 2


def test_what_nobody_can_find_any_more_is_let_go(path: str) -> None:
    before = weakref.ref(opened(path)), weakref.ref(opened(path, 0))
    add(path, 3)
    opened(path)
    gc.collect()
    assert [table() for table in before] == [None, None]
    assert [version for kept, version in module._kept if kept == path] == [None]


def test_a_table_whose_texts_are_padded_is_not_read_by_its_files(tmp_path: Path) -> None:
    for number, (declared, plain) in enumerate((("varchar(5)", True), ("char(5)", False))):
        field = Field("a", PrimitiveType("string"), metadata={"__CHAR_VARCHAR_TYPE_STRING": declared})
        table = DeltaTable.create(str(tmp_path / str(number)), Schema([field]))
        assert opened(table.table_uri).plain is plain
