"""Which algorithm: the cheapest by the formulas of those that are possible, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from strandline.differential.arrow_reading import PROBE
from strandline.differential.cost import ALGORITHMS, COMPRESSED, SETS_ONLY, Algorithm, Work, io, possible, sorted_probes
from strandline.differential.kept import FORMS, Form
from strandline.differential.snapshot import Snapshot

BLOCK = 16_384
USUAL_CHANGE = 0.01
"""The share of changed rows that is assumed if no run before has told it."""
HASH_TABLE = 64
"""Bytes that a row of ``<K, b>`` takes in a hash table."""


@dataclass(frozen=True)
class Facts:
    """What is known before anything is read: sizes in bytes of files, rows, and what each algorithm depends on.

    *held* is what the larger snapshot would take in memory, *reach* what an aging buffer of Window holds of it. *here*
    says whether this process can read both, *in_order* whether both come in the order of the key. *kept* is the form in
    which the old one was kept, *keep* whether the new one is to be. *small* is the size of a key.
    """

    old: float
    new: float
    rows: int
    small: float
    held: float
    reach: float
    memory: int
    bag: bool
    here: bool
    in_order: bool
    kept: Form | None
    old_readable: bool
    keep: bool
    addresses: bool
    change: float = USUAL_CHANGE


@dataclass(frozen=True)
class Choice:
    """An algorithm and why it was taken, with the cost of all that were possible, in blocks."""

    algorithm: Algorithm
    reason: str
    costs: dict[Algorithm, float]


def choose(facts: Facts) -> Choice:
    """The cheapest algorithm."""
    costs = {algorithm: _cost(algorithm, facts) for algorithm in ALGORITHMS if impossible(algorithm, facts) is None}
    if not costs:
        return Choice("ph", "nothing else can be done with what there is", {})
    # Of two that cost the same, the later one in the list needs less memory or is exact.
    best = min(costs, key=lambda algorithm: (costs[algorithm], -ALGORITHMS.index(algorithm)))
    return Choice(best, f"{_why(best, facts)}; {_compared(best, costs)}", costs)


def impossible(algorithm: Algorithm, facts: Facts) -> str | None:
    """Why *algorithm* cannot be used, or would not do well; None if it would."""
    if facts.bag and algorithm in SETS_ONLY:
        return "it compares sets only: the old rows of a bag cannot be made of their hashes"
    if not facts.old_readable and not usable(algorithm, facts.kept):
        return "the old snapshot is neither there nor kept in the form that it needs"
    if facts.bag and algorithm in ("smc2", "phc2") and not facts.addresses:
        return "rows of these snapshots have no addresses to fetch them by"
    if algorithm == "window":
        if not facts.here:
            return "it streams the rows through this process, which can read Parquet, CSV and plain Delta tables only"
        if facts.reach <= 0:
            return "there is too little memory for it"
        if not facts.in_order and facts.held > facts.reach:
            return "rows may have moved farther than its memory reaches"
        return "it keeps nothing for the next run" if facts.keep else None
    if algorithm == "phc" and facts.rows * HASH_TABLE > facts.memory:
        return "the hashes of the old snapshot do not fit in memory"
    return None if possible(algorithm, _work(algorithm, facts)) else "there is too little memory for it"


def usable(algorithm: Algorithm, kept: Form | None) -> bool:
    """Whether what was kept serves *algorithm*: ``<K, b, p>`` has ``<K, b>`` in it."""
    form = FORMS.get(algorithm)
    return kept is not None and (form == kept or (form == "hashes" and kept == "pointers"))


def comes_in_order(snapshot: Snapshot, key: Sequence[str]) -> bool:
    """Whether Parquet files seem to have their rows in the order of the key: row groups by their statistics, one after
    the other, and the first rows by themselves.
    """
    if not snapshot.files or snapshot.format not in ("parquet", "delta") or not key:
        return snapshot.files == ()
    last = None
    for file in snapshot.files:
        footer = pq.read_metadata(file)
        for group in (footer.row_group(number) for number in range(footer.num_row_groups)):
            columns = {c.path_in_schema: c for c in (group.column(number) for number in range(group.num_columns))}
            stats = columns[key[0]].statistics if key[0] in columns else None
            if stats is None or not stats.has_min_max or (last is not None and stats.min < last):
                return False
            last = stats.max
    return _begins_in_order(snapshot.files[0], key[0])


def _begins_in_order(file: str, column: str) -> bool:
    with pq.ParquetFile(file) as stored:
        first = next(stored.iter_batches(PROBE, columns=[column]), None)
    values = pa.array([]) if first is None else first.column(0)
    return len(values) < 2 or bool(pc.all(pc.less_equal(values[:-1], values[1:])).as_py())


def key_bytes(schema: pa.Schema, key: Sequence[str]) -> float:
    """About how many bytes the key of a row has."""
    kinds = [schema.field(name).type for name in key]
    return float(sum(kind.bit_width / 8 if pa.types.is_primitive(kind) else 16 for kind in kinds))


def _work(algorithm: Algorithm, facts: Facts) -> Work:
    rows = max(1, facts.rows)
    record = max(1.0, facts.new / rows)
    u1, u2 = (max(1.0, record / (facts.small + extra)) for extra in (8.0, 18.0))
    work = Work(facts.old / BLOCK, facts.new / BLOCK, u1=u1, u2=u2, memory=facts.memory / BLOCK)
    return replace(
        work,
        probes=sorted_probes(work.new, facts.change, BLOCK / record),
        kept=usable(algorithm, facts.kept),
    )


def _cost(algorithm: Algorithm, facts: Facts) -> float:
    """By the formulas; a compressed algorithm fetches old rows too, where the old snapshot is to give them."""
    work = _work(algorithm, facts)
    fetched = sorted_probes(work.old, facts.change, BLOCK / max(1.0, facts.old / max(1, facts.rows)))
    return io(algorithm, work) + (fetched if algorithm in COMPRESSED and facts.old_readable else 0.0)


def _why(algorithm: Algorithm, facts: Facts) -> str:
    state = "what was kept of the old snapshot" if usable(algorithm, facts.kept) else "the old snapshot"
    match algorithm:
        case "window" if facts.held <= facts.reach:
            return "both snapshots fit in memory, so one pass over both finds every row wherever it has moved"
        case "window":
            return "both snapshots come in the order of their key, so one pass over both is enough"
        case "phc":
            return f"the hashes of {state} fit in memory, so the new one is read without being sorted or partitioned"
        case "smc2" | "phc2":
            return f"only hashes of {state} and of the new one are moved, and changed rows are fetched"
        case "smc1" | "phc1":
            return f"{state} is compared by hashes with the rows of the new one"
        case "sm" | "ph":
            return f"{state} and the new one are joined row by row"


def _compared(best: Algorithm, costs: dict[Algorithm, float]) -> str:
    if costs[best] < 1:
        return f"less than a block of {BLOCK // 1024} KB to read"
    others = sorted((cost, algorithm) for algorithm, cost in costs.items() if algorithm != best)
    own = f"{costs[best]:,.0f} blocks of {BLOCK // 1024} KB to read and write"
    return f"{own}, against {others[0][0]:,.0f} for {others[0][1]}" if others else own
