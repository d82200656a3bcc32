"""The algorithms that run on Spark: right for any snapshots, reading and keeping what they say."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from strandline.differential.compare import compare
from strandline.differential.cost import Algorithm
from strandline.differential.kept import load
from strandline.differential.snapshot import snapshot
from strandline.engine.session import Engine
from strandline.errors import DifferentialError
from tests.differential.snapshots import (
    KEY,
    applied,
    applied_by_key,
    fewest,
    frozen,
    random_bag,
    random_set,
    reported,
    write,
)

pytestmark = pytest.mark.spark

SETS: tuple[Algorithm, ...] = ("sm", "ph", "smc1", "smc2", "phc1", "phc2", "phc")
BAGS: tuple[Algorithm, ...] = ("sm", "ph", "smc2", "phc2")


@pytest.mark.parametrize("algorithm", SETS)
def test_applying_the_changes_of_a_set_gives_the_new_snapshot(
    engine: Engine, tmp_path: Path, algorithm: Algorithm
) -> None:
    old, new = random_set(random.Random(algorithm), 200)
    paths = write(old, tmp_path / "old"), write(new, tmp_path / "new")
    found = compare(engine, *(snapshot(str(path)) for path in paths), key=KEY, algorithm=algorithm)
    changes = reported(found.report)
    assert applied(old, changes) == Counter(map(frozen, new))
    assert found.counts.total == fewest(old, new)
    assert found.rows == (len(old), len(new))
    found.close()
    assert not Path(found.report).exists()


@pytest.mark.parametrize("algorithm", BAGS)
def test_applying_the_changes_of_a_bag_gives_the_new_snapshot(
    engine: Engine, tmp_path: Path, algorithm: Algorithm
) -> None:
    old, new = random_bag(random.Random(algorithm), 120)
    paths = write(old, tmp_path / "old"), write(new, tmp_path / "new")
    found = compare(engine, *(snapshot(str(path)) for path in paths), key=KEY, bag=True, algorithm=algorithm)
    assert applied(old, reported(found.report)) == Counter(map(frozen, new))
    assert found.counts.total == fewest(old, new)
    found.close()


@pytest.mark.parametrize("algorithm", ["sm", "smc2", "phc"])
def test_what_was_kept_stands_in_for_the_old_snapshot(engine: Engine, tmp_path: Path, algorithm: Algorithm) -> None:
    chance = random.Random(algorithm)
    first, second = random_set(chance, 120, nulls=False)
    third = [row for row in random_set(chance, 120, nulls=False)[1]]
    paths = [write(rows, tmp_path / name) for name, rows in (("1", first), ("2", second), ("3", third))]
    kept = tmp_path / "kept"
    begun = compare(engine, snapshot(str(paths[0])), snapshot(str(paths[1])), key=KEY, algorithm=algorithm, kept=kept)
    assert applied(first, reported(begun.report)) == Counter(map(frozen, second))
    for path in paths[:2]:
        shutil.rmtree(path)
    found = compare(engine, None, snapshot(str(paths[2])), key=KEY, algorithm=algorithm, kept=kept)
    changes = reported(found.report)
    assert applied_by_key(second, changes) == Counter(map(frozen, third))
    assert found.old_rows_known == (algorithm in ("sm", "ph"))
    if found.old_rows_known:
        assert applied(second, changes) == Counter(map(frozen, third))
    assert {what for what, _ in found.reads} == {"kept", "new"}
    now = load(kept)
    assert now is not None and now == found.kept
    assert (now.rows, now.snapshot) == (len(third), str(paths[2]))
    assert [place.name for place in sorted(kept.iterdir())] == ["kept.json", now.data]


def test_a_bag_is_kept_in_whole_rows(engine: Engine, tmp_path: Path) -> None:
    first, second = random_bag(random.Random(2), 60)
    third = random_bag(random.Random(2), 60)[1][::-1][5:]
    paths = [write(rows, tmp_path / name) for name, rows in (("1", first), ("2", second), ("3", third))]
    kept = tmp_path / "kept"
    sides = [snapshot(str(path)) for path in paths]
    compare(engine, sides[0], sides[1], key=KEY, bag=True, algorithm="ph", kept=kept).close()
    shutil.rmtree(paths[1])
    found = compare(engine, None, sides[2], key=KEY, bag=True, algorithm="sm", kept=kept)
    assert applied(second, reported(found.report)) == Counter(map(frozen, third))
    assert {what for what, _ in found.reads} == {"kept", "new"}


def input_bytes(engine: Engine) -> int:
    """What Spark has read so far, by its own count."""
    executors = engine.spark.sparkContext._jsc.sc().statusStore().executorList(False)
    return int(executors.apply(0).totalInputBytes())


@pytest.mark.parametrize("algorithm", ["phc1", "phc2"])
def test_compressed_algorithms_read_and_keep_what_they_say(
    engine: Engine, tmp_path: Path, algorithm: Algorithm
) -> None:
    chance = random.Random(1)
    texts = [chance.randbytes(100).hex() for _ in range(5_000)]
    schema = pa.schema({"id": pa.int64(), "text": pa.string()})
    days = [
        [{"id": n, "text": text + ("!" if n % 100 == day else "")} for n, text in enumerate(texts)] for day in (1, 2, 3)
    ]
    sides = [snapshot(str(write(rows, tmp_path / str(n), schema))) for n, rows in enumerate(days)]
    kept = tmp_path / "kept"
    compare(engine, sides[0], sides[1], key=["id"], algorithm=algorithm, kept=kept).close()
    state = load(kept)
    assert state is not None
    # A key and a hash (and an address) instead of 200 letters.
    assert sides[1].bytes is not None
    assert state.bytes < sides[1].bytes / {"phc1": 8, "phc2": 6}[algorithm]
    shutil.rmtree(tmp_path / "0")
    shutil.rmtree(tmp_path / "1")
    before = input_bytes(engine)
    found = compare(engine, None, sides[2], key=["id"], algorithm=algorithm, kept=kept)
    assert (found.counts.updated, found.counts.total) == (100, 100)
    assert found.kept is not None
    passing = 200_000  # what was found, the report, footers
    assert input_bytes(engine) - before <= found.bytes_read + found.kept.bytes + passing
    assert dict(found.reads)["kept"] == state.bytes


def test_a_state_of_another_snapshot_is_passed_over_with_a_word(engine: Engine, tmp_path: Path) -> None:
    old, new = random_set(random.Random(3), 40, nulls=False)
    sides = [snapshot(str(write(rows, tmp_path / str(n)))) for n, rows in enumerate((old, new, old))]
    kept = tmp_path / "kept"
    compare(engine, sides[0], sides[1], key=KEY, algorithm="phc1", kept=kept, bits=128).close()
    found = compare(engine, sides[2], sides[1], key=KEY, algorithm="phc1", kept=kept, bits=128)
    assert "not the old snapshot" in found.reason
    assert applied(old, reported(found.report)) == Counter(map(frozen, new))
    assert 0 < found.error < 1e-30
    with pytest.raises(DifferentialError, match="OLD_NOT_KEPT"):
        compare(engine, None, sides[1], key=KEY, algorithm="phc1", kept=kept, bits=64)


def test_files_of_a_delta_table_may_be_older_than_a_column(engine: Engine, tmp_path: Path) -> None:
    path = str(tmp_path / "table")
    write_deltalake(path, pa.table({"id": [1, 2], "a": ["x", "y"]}))
    write_deltalake(path, pa.table({"id": [3], "a": ["z"], "b": [3]}), mode="append", schema_mode="merge")
    changed = pa.table({"id": [1, 2, 3], "a": ["x", "Y", "z"], "b": pa.array([None, None, 4], pa.int64())})
    write_deltalake(path, changed, mode="overwrite")
    found = compare(engine, snapshot(f"{path}@v1"), snapshot(path), key=["id"], algorithm="ph")
    new = {
        row["id"]: (row["a"], row["b"]) for row in reported(found.report) if row["_change_type"].endswith("postimage")
    }
    assert (new, found.counts.total) == ({2: ("Y", None), 3: ("z", 4)}, 2)


@pytest.mark.parametrize("algorithm", ["sm", "phc"])
def test_two_rows_with_one_key_are_an_error_that_names_it(engine: Engine, tmp_path: Path, algorithm: Algorithm) -> None:
    old = random_set(random.Random(3), 20, nulls=False)[0]
    paths = write(old, tmp_path / "old"), write([*old, old[3]], tmp_path / "new")
    sides = [snapshot(str(path)) for path in paths]
    named = rf"KEY_NOT_UNIQUE.*new snapshot.*id={old[3]['id']}, part='{old[3]['part']}'"
    with pytest.raises(DifferentialError, match=named):
        compare(engine, sides[0], sides[1], key=KEY, algorithm=algorithm)
