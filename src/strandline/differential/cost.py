"""What each algorithm reads and writes, in blocks (Table 2.2); writing the report is left out of all of them.

|F| is the size of a snapshot, |f| = |F|/u that of a compressed one, X the largest intermediate file.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import Literal, get_args

Algorithm = Literal["sm", "ph", "smc1", "smc2", "phc1", "phc2", "phc", "window"]
"""``phc`` is PHC1 and PHC2 in memory: the compressed old snapshot as a hash table, one pass over the new one."""

ALGORITHMS: tuple[Algorithm, ...] = get_args(Algorithm)

COMPRESSED: frozenset[Algorithm] = frozenset({"smc1", "smc2", "phc1", "phc2", "phc"})
"""They compare hashes, so they can miss a change."""

SETS_ONLY: frozenset[Algorithm] = frozenset({"smc1", "phc1", "phc"})
"""The old row cannot be made of its hash, and a bag's deletes and updates need it."""

MEGABYTE = 2**20


@dataclass(frozen=True)
class Work:
    """Two snapshots to be compared, sizes in blocks; the defaults are those of Table 2.1.

    *u1* and *u2* are how many times larger a record is than ``<K, b>`` and ``<K, b, p>``. *probes* is the number of
    records fetched by their address, *share* that number as a share of all. *kept* says whether the old snapshot is
    there in the form that the algorithm keeps between runs.
    """

    old: float
    new: float
    probes: float = 0.0
    u1: float = 15.0
    u2: float = 10.0
    memory: float = 2048.0
    kept: bool = True


def blocks(size: float, block: int = 16_384) -> float:
    """*size* bytes in blocks."""
    return size / block


def io(algorithm: Algorithm, work: Work) -> float:
    """Blocks read and written by one run."""
    old, new = work.old, work.new
    old1, new1, old2, new2 = old / work.u1, new / work.u1, old / work.u2, new / work.u2
    match algorithm:
        case "sm":
            return (old if work.kept else 3 * old) + 4 * new
        case "ph":
            return (old if work.kept else 3 * old) + 3 * new
        case "smc1" | "phc1":
            return (old1 if work.kept else old + 2 * old1) + 3 * new + new1
        case "smc2":
            return (old2 if work.kept else old + 2 * old2) + new + 3 * new2 + work.probes
        case "phc2":
            return (old2 if work.kept else old + 2 * old2) + new + 2 * new2 + work.probes
        case "phc":
            return (old1 if work.kept else old) + new + new1
        case "window":
            return old + new


def intermediate(algorithm: Algorithm, work: Work) -> float:
    """X: blocks of intermediate files."""
    match algorithm:
        case "sm" | "ph" | "smc1" | "phc1":
            return work.new
        case "smc2" | "phc2":
            return work.new / work.u2
        case "phc" | "window":
            return 0.0


def possible(algorithm: Algorithm, work: Work) -> bool:
    """Whether there is memory enough: for two passes of a sort, for a bucket, for all of f1."""
    match algorithm:
        case "sm" | "smc1":
            return work.memory > sqrt(work.new)
        case "smc2":
            return work.memory > sqrt(work.new / work.u2)
        case "ph" | "phc1" | "phc2":
            return work.memory > sqrt(min(work.old, work.new))
        case "phc":
            return work.old / work.u1 <= work.memory
        case "window":
            return True


def sorted_probes(new: float, share: float, records_per_block: float) -> float:
    """Blocks touched by fetching *share* of the records, evenly spread, in the order of their addresses."""
    return new * float(1 - (1 - share) ** records_per_block)


def window_is_cheaper_above(algorithm: Algorithm, u2: float, record: float, block: float = 16_384.0) -> float:
    """The share of changed records above which Window reads less than SMC2 or PHC2 with unsorted probes."""
    written = {"smc2": 4.0, "phc2": 3.0}[algorithm]
    return record / block * (2 - (1 + written / u2))


def c1_is_cheaper_above(kind: Literal["sm", "ph"], u1: float, u2: float, record: float, block: float) -> float:
    """The share of changed records above which SMC1 (PHC1) reads less than SMC2 (PHC2) with unsorted probes."""
    written = {"sm": 4.0, "ph": 3.0}[kind]
    return record / block * (2 + 2 / u1 - written / u2)


def outer_join_is_cheaper_above(kind: Literal["sm", "ph"], u2: float, record: float, block: float) -> float:
    """The share of changed records above which SM (PH) reads less than SMC2 (PHC2) with unsorted probes."""
    passes, written = {"sm": (5.0, 4.0), "ph": (4.0, 3.0)}[kind]
    return record / block * (passes - (1 + written / u2))
