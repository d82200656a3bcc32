"""The algorithms that run on Spark: right for any snapshots, reading and keeping what they say."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from pathlib import Path

import pytest

from strandline.differential.compare import compare
from strandline.differential.cost import Algorithm
from strandline.differential.kept import load
from strandline.differential.snapshot import snapshot
from strandline.engine.session import Engine
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


@pytest.mark.parametrize("algorithm", SETS)
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
