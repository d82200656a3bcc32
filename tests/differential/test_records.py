"""The algorithms record by record: worked examples, and random snapshots."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.differential.records import partitioned_hash, sort_merge
from strandline.differential.records.compressed import Compressed, Pointed, compressed, pointed
from strandline.differential.records.distance import displacements, distance
from strandline.differential.records.match import match, monus
from strandline.differential.records.reports import (
    Delete,
    Insert,
    Record,
    Report,
    Update,
    applied_to_bag,
    applied_to_set,
    fewest_reports,
    rank,
)
from strandline.differential.records.second_pass import without_insert_delete_pairs
from strandline.differential.records.window import first_pass, window, window_bag

Snapshot = Sequence[Record]
Differential = Callable[[Snapshot, Snapshot], Iterable[Report]]


def records(text: str) -> list[Record]:
    """``1a 2b``: key and rest in a character each."""
    return [Record(int(part[0]), part[1]) for part in text.split()]


def bag(text: str) -> list[Record]:
    """``I1B1 I1B1``."""
    return [Record(part[:2], part[2:]) for part in text.split()]


def plain(reports: Iterable[Report]) -> list[Report]:
    """Reports as sets have them, without the old rest."""
    stripped: list[Report] = []
    for report in reports:
        match report:
            case Update(key, new):
                stripped.append(Update(key, new))
            case Delete(key):
                stripped.append(Delete(key))
            case Insert():
                stripped.append(report)
    return stripped


def injective(rest: Hashable) -> Hashable:
    return ("b", rest)


def nowhere(record: object) -> None:
    """Save nothing."""


def by_key(record: Record | Compressed | Pointed) -> Any:
    return rank(record.key)


def by_sm(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    return sort_merge.sm(sorted(old, key=by_key), new, nowhere, run=3)


def by_ph(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    return partitioned_hash.ph(partitioned_hash.partition(old, 3), partitioned_hash.partition(new, 3))


def by_smc1(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    f1 = sorted((compressed(record, injective) for record in old), key=by_key)
    return sort_merge.smc1(f1, new, injective, nowhere, run=3)


def by_smc2(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    return sort_merge.smc2(sorted(pointed(old, injective), key=by_key), new, injective, nowhere, run=3)


def by_phc1(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    f1 = partitioned_hash.partition([compressed(record, injective) for record in old], 3)
    return partitioned_hash.phc1(f1, partitioned_hash.partition(new, 3), injective, nowhere)


def by_phc2(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    f1, f2 = (partitioned_hash.f2_buckets(side, injective, 3) for side in (old, new))
    return partitioned_hash.phc2(f1, f2, new.__getitem__)


def by_phc(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    f1 = [compressed(record, injective) for record in old]
    return partitioned_hash.phc_in_memory(f1, new, injective, nowhere)


def by_window(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    return window(old, new, block=2, aging=3)


SET: dict[str, Differential] = {
    "SM": by_sm, "PH": by_ph, "SMC1": by_smc1, "SMC2": by_smc2, "PHC1": by_phc1, "PHC2": by_phc2, "PHC": by_phc
}  # fmt: skip


def by_sm_bag(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    return sort_merge.sm_bag(sorted(old, key=by_key), new, nowhere, run=3)


def by_ph_bag(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    return partitioned_hash.ph_bag(partitioned_hash.partition(old, 3), partitioned_hash.partition(new, 3))


def by_smc2_bag(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    f1 = sorted(pointed(old, injective), key=by_key)
    return sort_merge.smc2_bag(f1, old.__getitem__, new, injective, nowhere, run=3)


def by_phc2_bag(old: Snapshot, new: Snapshot) -> Iterator[Report]:
    f1, f2 = (partitioned_hash.f2_buckets(side, injective, 3) for side in (old, new))
    return partitioned_hash.phc2_bag(f1, f2, old.__getitem__, new.__getitem__)


BAG: dict[str, Differential] = {
    "Match": match, "SM": by_sm_bag, "PH": by_ph_bag, "SMC2": by_smc2_bag, "PHC2": by_phc2_bag
}  # fmt: skip

F1, F2 = records("1a 2b 3c 4d 5e 6f 7g 8h"), records("8h 2b 3C 5e 4d 9i 7g 1a")
FOUND = [Update(3, "C"), Delete(6), Insert(9, "i")]


@pytest.mark.parametrize("name", SET)
def test_every_algorithm_finds_the_changes_of_the_example(name: str) -> None:
    assert Counter(plain(SET[name](F1, F2))) == Counter(FOUND)


@pytest.mark.parametrize("name", ["SM", "SMC1", "SMC2"])
def test_sort_merge_reports_in_the_order_of_keys(name: str) -> None:
    assert plain(SET[name](F1, F2)) == FOUND


def test_sort_merge_saves_the_new_snapshot_sorted() -> None:
    saved: list[Record] = []
    list(sort_merge.sm(F1, F2, saved.append, run=3))
    assert saved == records("1a 2b 3C 4d 5e 7g 8h 9i")
    small: list[Compressed] = []
    list(sort_merge.smc1([compressed(r, injective) for r in F1], F2, injective, small.append, run=3))
    assert small == [compressed(record, injective) for record in saved]


def test_partitioned_hash_reports_bucket_by_bucket() -> None:
    buckets = [partitioned_hash.partition(side, 2, hashed=lambda key: int(str(key))) for side in (F1, F2)]
    assert plain(partitioned_hash.ph(*buckets)) == [Delete(6), Update(3, "C"), Insert(9, "i")]


def test_the_tail_of_the_longer_snapshot_is_reported() -> None:
    for name, algorithm in SET.items():
        assert plain(algorithm(records("1a 5e"), records("1a"))) == [Delete(5)], name
        assert plain(algorithm(records("1a"), records("1a 5e"))) == [Insert(5, "e")], name
    assert plain(by_window(records("1a 5e"), records("1a"))) == [Delete(5)]


@pytest.mark.parametrize(("bits", "found"), [(2, False), (5, False), (6, True), (7, True)])
def test_a_change_is_missed_if_both_rests_compress_to_the_same(bits: int, found: bool) -> None:
    def compress(rest: Hashable) -> int:
        return int(ord(str(rest)) % 2**bits)

    f1 = sorted((compressed(record, compress) for record in F1), key=by_key)
    expected = FOUND if found else FOUND[1:]
    assert plain(sort_merge.smc1(f1, F2, compress, nowhere)) == expected
    assert Counter(plain(partitioned_hash.phc_in_memory(f1, F2, compress, nowhere))) == Counter(expected)


def test_window_needs_less_than_the_largest_displacement_here() -> None:
    assert max(displacements([r.key for r in F1], [r.key for r in F2])) == 7
    assert plain(first_pass(F1, F2, block=2, aging=2)) == FOUND


def test_window_with_a_short_aging_buffer_reports_useless_pairs() -> None:
    reports = list(first_pass(F1, F2, block=2, aging=1))
    assert plain(reports) == [
        Update(3, "C"), Delete(1), Insert(8, "h"), Delete(6), Insert(9, "i"), Delete(8), Insert(1, "a")
    ]  # fmt: skip
    assert 8 not in applied_to_set(F1, reports), "an insert-delete pair loses a record"
    second = list(without_insert_delete_pairs(reports))
    assert plain(second) == [Update(3, "C"), Delete(1), Delete(6), Insert(9, "i"), Insert(1, "a")]
    assert applied_to_set(F1, second) == dict(F2)


def test_an_insert_delete_pair_of_a_changed_record_becomes_an_update() -> None:
    pair: list[Report] = [Insert(1, "new"), Delete(2, "x"), Delete(1, "old")]
    assert list(without_insert_delete_pairs(pair)) == [Update(1, "new", "old"), Delete(2, "x")]


def test_bag_example_with_duplicates() -> None:
    old, new = bag("I1B1 I1B1 I1B10 I2B2 I2B20"), bag("I1B1 I1B10 I2B3 I2B20")
    for name, algorithm in BAG.items():
        assert set(algorithm(old, new)) == {Delete("I1", "B1"), Update("I2", "B3", "B2")}, name


def test_two_updated_duplicates_are_two_updates() -> None:
    for name, algorithm in BAG.items():
        assert list(algorithm(bag("I1B1 I1B1"), bag("I1B2 I1B2"))) == [Update("I1", "B2", "B1")] * 2, name


def test_no_update_is_unnecessary() -> None:
    old, new = bag("I1B1"), bag("I1B2 I1B1")
    for name, algorithm in BAG.items():
        assert list(algorithm(old, new)) == [Insert("I1", "B2")], name
    assert list(window_bag(old, new, block=2, aging=2)) == [Insert("I1", "B2")]


def test_window_avoids_unnecessary_updates_within_the_window_only() -> None:
    found = list(window_bag(bag("I1B1"), bag("I1B2 I1B1"), block=1, aging=2))
    assert found == [Update("I1", "B2", "B1"), Insert("I1", "B1")]


def test_match_takes_unchanged_records_out_first() -> None:
    old, new = bag("I1B1 I1B1"), bag("I1B2 I1B1 I1B3")
    assert monus(old, new) == bag("I1B1")
    assert Counter(monus(new, old)) == Counter(bag("I1B2 I1B3"))
    assert len(list(match(old, new))) == 2


def test_distance_of_the_example_and_of_reversals() -> None:
    assert distance([r.key for r in F1], [r.key for r in F2]) == 0.5
    for n, expected in ((8, 1.0), (3, 0.8889), (5, 0.96), (7, 0.9796)):
        assert distance(range(n), list(reversed(range(n)))) == pytest.approx(expected, abs=5e-5)
    assert distance([], []) == 0.0


rests = st.none() | st.integers(0, 2)


@st.composite
def sets(draw: st.DrawFn) -> list[Record]:
    """Records in any order; of one kind of keys, with NULL among them."""
    composed = draw(st.booleans())
    of = st.tuples(st.none() | st.integers(0, 2), st.integers(0, 4)) if composed else st.none() | st.integers(0, 14)
    return [Record(key, draw(rests)) for key in draw(st.lists(of, unique=True, max_size=14))]


@st.composite
def pairs(draw: st.DrawFn) -> tuple[list[Record], list[Record]]:
    of = st.none() | st.integers(0, 14)
    both = [[Record(key, draw(rests)) for key in draw(st.lists(of, unique=True, max_size=14))] for _ in range(2)]
    return both[0], both[1]


bags = st.lists(st.builds(Record, st.none() | st.integers(0, 4), rests), max_size=14)


@settings(max_examples=100)
@given(pairs())
def test_applying_the_reports_of_a_set_gives_the_new_snapshot(both: tuple[list[Record], list[Record]]) -> None:
    old, new = both
    for name, algorithm in SET.items():
        reports = list(algorithm(old, new))
        assert applied_to_set(old, reports) == dict(new), name
        assert len(reports) == fewest_reports(old, new), name


@settings(max_examples=100)
@given(sets())
def test_an_unchanged_snapshot_in_another_order_has_no_changes(old: list[Record]) -> None:
    new = sorted(old, key=lambda record: repr(record.rest))
    for name, algorithm in SET.items():
        assert list(algorithm(old, new)) == [], name


@settings(max_examples=100)
@given(bags, bags)
def test_applying_the_reports_of_a_bag_gives_the_new_snapshot(old: list[Record], new: list[Record]) -> None:
    for name, algorithm in BAG.items():
        reports = list(algorithm(old, new))
        assert applied_to_bag(old, reports) == Counter(new), name
        assert len(reports) == fewest_reports(old, new), name


@settings(max_examples=100)
@given(pairs(), bags, bags, st.integers(1, 4), st.integers(0, 4))
def test_window_is_right_whatever_its_buffers_hold(
    both: tuple[list[Record], list[Record]], bag1: list[Record], bag2: list[Record], block: int, aging: int
) -> None:
    assert applied_to_set(both[0], window(both[0], both[1], block=block, aging=aging)) == dict(both[1])
    assert applied_to_bag(bag1, window_bag(bag1, bag2, block=block, aging=aging)) == Counter(bag2)


@settings(max_examples=100)
@given(pairs(), st.integers(1, 4))
def test_window_has_no_extra_message_if_nothing_moved_farther_than_it_ages(
    both: tuple[list[Record], list[Record]], block: int
) -> None:
    old, new = both
    moved = displacements([r.key for r in old], [r.key for r in new])
    reports = list(first_pass(old, new, block=block, aging=max(moved, default=0)))
    assert len(reports) == fewest_reports(old, new)


def test_the_tolerable_displacement_depends_on_the_buffer_not_on_the_file() -> None:
    """Table 2.4 at 1:100: an aging buffer of 537 records; records swapped with one 0 to 2 * average places away."""

    def extra(count: int, average: int) -> tuple[float, int]:
        chance = random.Random(1)
        order = list(range(count))
        for place in range(count):
            other = place + chance.randint(0, 2 * average)
            if other < count:
                order[place], order[other] = order[other], order[place]
        old, new = [Record(key, 0) for key in range(count)], [Record(key, 0) for key in order]
        return distance(range(count), order), len(list(first_pass(old, new, block=10, aging=537)))

    for count, critical in ((3_250, 0.47), (4_875, 0.35), (6_500, 0.26)):
        for average in (100, 300, 500, 800, 1200, 1600):
            far, found = extra(count, average)
            if far < 0.75 * critical:
                assert found == 0, (count, far)
            if far > 1.25 * critical:
                assert found > 0, (count, far)
