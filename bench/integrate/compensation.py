"""Recomputation against eager compensation over one source (Zhuge et al., section 6).

RV is at its best when it recomputes once, after all updates. ECA is at its best when each answer comes before the next
update, and at its worst when all updates come before the first answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean

from bench.integrate.chains import Commit, by_relation, in_pairs, three_bags, three_relations
from bench.integrate.measured import PAD, Measured, Sources, measured
from bench.integrate.simulated import Counted, counted
from bench.integrate.study import Curve, Figures, Study, crossover
from strandline.integrate import costs
from strandline.integrate.algorithms import Options, create
from strandline.integrate.costs import Parameters

RV, BEST, WORST = "RV best", "ECA best", "ECA worst"
CASES = (RV, BEST, WORST)
ROUNDS_UPTO = 12
"""Up to here each relation comes first once, since updates of one cost more than those of another."""


@dataclass(frozen=True)
class Case:
    """One run: what the formulas say, what was counted, and what PostgreSQL did with indexes and without."""

    messages: float
    bytes: float
    indexed: float
    scanned: float
    counted: Sequence[Counted]
    with_indexes: Measured | None
    without: Measured | None

    def simulated(self, of: Callable[[Counted], float]) -> float:
        return mean(of(each) for each in self.counted)


Cases = dict[str, dict[float, Case]]


def run_case(label: str, p: Parameters, updates: int, sources: Sources | None) -> Case:
    """Run one algorithm over so many updates."""
    starts = range(3) if updates <= ROUNDS_UPTO and updates % 6 else (0,)
    orders = [in_pairs(updates, start) for start in starts]
    name = "rv" if label == RV else "eca"
    found = [counted(name, p, commits, first=label != BEST, every=updates) for commits in orders]
    said = _formulas(label, p, updates, orders)
    timed = [None if sources is None else _measured(label, p, updates, sources, indexes=each) for each in (True, False)]
    return Case(*said, found, *timed)


def _formulas(
    label: str, p: Parameters, updates: int, orders: Sequence[Sequence[Commit]]
) -> tuple[float, float, float, float]:
    """Messages, bytes, block reads with indexes and without; pairs of updates as they are in *orders*."""
    if label == RV:
        reads = costs.indexed_reads_rv(p, 1), costs.scanned_reads_rv(p, 1)
        return costs.messages_rv(updates, updates), costs.bytes_rv(p, 1), *reads
    numbers = [by_relation(commits) for commits in orders]
    all_pairs = mean(costs.differing_pairs(each) for each in numbers)
    pairs = all_pairs if label == WORST else 0
    indexed = mean(costs.indexed_reads_eca_exact(p, each) for each in numbers) - all_pairs + pairs
    scanned = costs.scanned_reads_eca_worst(p, updates, pairs)
    return costs.messages_eca(updates), costs.bytes_eca_worst(p, updates, pairs), indexed, scanned


def _measured(label: str, p: Parameters, updates: int, sources: Sources, *, indexes: bool) -> Measured:
    view, rows, commits = three_relations(), three_bags(p), in_pairs(updates)
    databases = sources.of(view)
    databases["s"].fill(view, rows, pad=PAD, indexes=indexes)
    algorithm = create("rv" if label == RV else "eca", view, options=Options(every=updates))
    return measured(algorithm, databases, rows, [[each] for each in commits] if label == BEST else [commits])


def by_updates(p: Parameters, updates: Sequence[int], most_at_once: int, sources: Sources | None) -> list[Study]:
    """Costs against the number of updates; ECA's terms grow with its cube at worst, so that one ends sooner."""
    cases: Cases = {
        label: {k: run_case(label, p, k, sources) for k in updates if label != WORST or k <= most_at_once}
        for label in CASES
    }
    return _studies(p, cases, "updates", f"C = {p.rows}, J = {p.fanout}", "", log_x=False)


def by_rows(p: Parameters, rows: Sequence[int], updates: int, sources: Sources | None) -> list[Study]:
    """Costs against the size of the relations."""
    sized = {c: Parameters(c, p.width, p.selectivity, p.fanout, p.per_block) for c in rows}
    cases: Cases = {label: {c: run_case(label, q, updates, sources) for c, q in sized.items()} for label in CASES}
    return _studies(p, cases, "rows of a relation", f"{updates} updates, J = {p.fanout}", "-by-rows", log_x=True)


def _studies(p: Parameters, cases: Cases, x: str, setting: str, suffix: str, *, log_x: bool) -> list[Study]:
    def curves(one: Callable[[Case], Figures]) -> dict[str, Curve]:
        return {label: {at: one(case) for at, case in found.items()} for label, found in cases.items()}

    def of(run: Measured | None, value: Callable[[Measured], float]) -> float | None:
        return None if run is None else value(run)

    messages = curves(
        lambda c: Figures(c.messages, c.simulated(lambda s: s.messages), of(c.with_indexes, lambda m: m.messages))
    )
    by_rule = curves(
        lambda c: Figures(
            c.bytes,
            c.simulated(lambda s: s.rows) * p.width,
            of(c.with_indexes, lambda m: m.traffic.fetched_rows * p.width),
        )
    )
    indexed = curves(
        lambda c: Figures(c.indexed, c.simulated(lambda s: s.indexed), of(c.with_indexes, lambda m: m.blocks))
    )
    scanned = curves(lambda c: Figures(c.scanned, c.simulated(lambda s: s.scanned), of(c.without, lambda m: m.blocks)))
    found = [
        Study(f"messages{suffix}", f"Messages, {setting}", x, "messages", messages, MESSAGES, log_x, True),
        Study(f"bytes{suffix}", f"Bytes of answers, {setting}", x, "bytes", by_rule, BYTES, log_x, True),
        Study(f"reads{suffix}", f"Block reads with indexes, {setting}", x, "blocks", indexed, INDEXED, log_x, True),
        Study(f"scans{suffix}", f"Block reads without indexes, {setting}", x, "blocks", scanned, SCANNED, log_x, True),
    ]
    if all(case.with_indexes is not None for runs in cases.values() for case in runs.values()):
        wire = curves(lambda c: Figures(postgres=of(c.with_indexes, lambda m: m.wire_bytes)))
        spent = curves(lambda c: Figures(postgres=of(c.with_indexes, lambda m: 1000 * m.seconds)))
        found += [
            Study(f"wire{suffix}", f"Bytes on the wire, {setting}", x, "bytes", wire, WIRE, log_x, True),
            Study(f"seconds{suffix}", f"Time, {setting}", x, "milliseconds", spent, SPENT, log_x, True),
        ]
    return found


MESSAGES = "queries and answers; notices of updates are the same for all"
BYTES = "4 bytes a row of an answer, before plus and minus cancel"
INDEXED = "the rule: index access free, nothing stays in memory; PostgreSQL: heap blocks asked for, by its own plans"
SCANNED = "the rule: nested loops in three blocks of memory; PostgreSQL: heap blocks asked for, by its own plans"
WIRE = "the text of the queries, the rows that go along, and the values that come back; the papers count answers only"
SPENT = "from the delivery of the updates to the view that shows them, without connecting"

Cost = Callable[[Parameters, float], float]
Once = Callable[[Parameters, int], float]

FORMULAS: dict[str, tuple[Once, dict[str, Cost]]] = {
    "bytes": (costs.bytes_rv, {BEST: costs.bytes_eca_best, WORST: costs.bytes_eca_worst}),
    "reads": (costs.indexed_reads_rv, {BEST: costs.indexed_reads_eca_best, WORST: costs.indexed_reads_eca_worst}),
    "scans": (costs.scanned_reads_rv, {BEST: costs.scanned_reads_eca_best, WORST: costs.scanned_reads_eca_worst}),
}
"""Of one recomputation and of ECA, by study."""


def crossovers(p: Parameters, studies: Sequence[Study]) -> dict[str, Figures]:
    """From how many updates on one recomputation is cheaper; times differ too much from run to run to say."""
    found = {}
    for study in studies:
        if study.name == "seconds":
            continue
        for label in (BEST, WORST):
            said = _crossing(p, *FORMULAS[study.name], label) if study.name in FORMULAS else None
            counts = [crossover(study, side, label, RV) for side in ("simulated", "postgres")]
            found[f"{study.name}, {label}"] = Figures(said, *counts)
    return found


def _crossing(p: Parameters, once: Once, eca: Mapping[str, Cost], label: str) -> float:
    return costs.crossover(lambda updates: eca[label](p, updates), lambda _: once(p, 1))
