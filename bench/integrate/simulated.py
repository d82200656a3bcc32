"""What the simulator counts: messages, rows, block reads by the rules of Zhuge et al., and time by its own clock."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from bench.integrate.chains import Commit, Rows, chain, three_bags, three_relations
from strandline.algebra.plan import At, scans
from strandline.algebra.term import Term
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.algorithms import Options, create
from strandline.integrate.costs import Parameters
from strandline.integrate.memory import Sent
from strandline.integrate.network import Action, Network
from strandline.integrate.schedules import run_all_first, run_in_turn


class Recorded(Network):
    """A network that remembers the terms that were sent."""

    terms: tuple[Term, ...] = ()

    def _send(self, sent: Sequence[Sent]) -> None:
        self.terms += tuple(term for each in sent for term in each.query.terms)
        super()._send(sent)


@dataclass(frozen=True)
class Counted:
    """Queries with their answers, rows of answers before plus and minus cancel, and block reads in both scenarios."""

    messages: int
    rows: int
    indexed: int
    scanned: int


def network(algorithm: Algorithm[Any], rows: Rows, commits: Iterable[Commit]) -> Recorded:
    scripts: dict[str, list[Rows]] = {}
    for commit in commits:
        scripts.setdefault(commit.source, []).append(commit.deltas)
    return Recorded(algorithm, rows, scripts)


def counted(name: str, p: Parameters, commits: Sequence[Commit], *, first: bool, every: int = 1) -> Counted:
    """A run over three relations, with all updates before the *first* query is answered, or each settled alone."""
    run = network(create(name, three_relations(), options=Options(every=every)), three_bags(p), commits)
    (run_all_first if first else run_in_turn)(run)
    assert run.warehouse.view == run.current, f"{name} went wrong"
    reads = [_read(term) for term in run.terms]
    return Counted(
        run.traffic.messages,
        run.traffic.rows,
        sum(indexed_reads(p, each) for each in reads),
        sum(scanned_reads(p, each) for each in reads),
    )


def _read(term: Term) -> frozenset[str]:
    """The relations that a term reads at the source."""
    return frozenset(scan.alias for scan in scans(term.plan) if isinstance(scan.operand, At))


def indexed_reads(p: Parameters, read: frozenset[str]) -> int:
    """Scenario 1: rows are found by index, from the tuple on outwards; nothing stays in memory between terms.

    The *J* rows of a join value are in one block where the index clusters: by X in r1 and r2, by Y in r3. In r2 those
    of a value of Y are in as many blocks. No term is worth more than reading a relation as a whole.
    """
    near = min(p.blocks, p.fanout)
    match sorted(read):
        case ["r1", "r2", "r3"]:
            return 3 * p.blocks
        case ["r2", "r3"]:
            return 1 + near
        case ["r1", "r3"]:
            return 2
        case ["r1", "r2"]:
            return near + near
        case _:
            return len(read)


def scanned_reads(p: Parameters, read: frozenset[str]) -> int:
    """Scenario 2: nested loops in three blocks of memory, innermost reads; with two relations, two blocks at a time."""
    return {0: 0, 1: p.blocks, 2: p.blocks * p.double_blocks, 3: p.blocks**3}[len(read)]


@dataclass(frozen=True)
class Timed:
    """How many queries were asked, and when each install was done, in message times since the first notice."""

    queries: int
    installs: tuple[float, ...]


def timed(name: str, rows: Rows, commits: Sequence[Commit], options: Options | None = None, t: float = 1.0) -> Timed:
    """A run over a chain whose updates all arrive at one moment; a message takes *t*, and all else no time.

    Queries that do not wait for one another are under way at the same time.
    """
    run = network(create(name, chain(len(rows)), options=options), rows, commits)
    order = count()
    waiting: list[tuple[float, int, Action]] = []
    for commit in commits:
        run.do(("commit", commit.source))
        heapq.heappush(waiting, (0.0, next(order), ("notice", commit.source)))
    installs: list[float] = []
    while waiting:
        now, _, action = heapq.heappop(waiting)
        shown, asked = len(run.warehouse.shown), {name: len(site.queries) for name, site in run.sites.items()}
        run.do(action)
        if action[0] == "serve":
            heapq.heappush(waiting, (now + t, next(order), ("answer", action[1])))
            continue
        for source, site in run.sites.items():
            for _ in range(len(site.queries) - asked[source]):
                heapq.heappush(waiting, (now + t, next(order), ("serve", source)))
        installs += [now] * (len(run.warehouse.shown) - shown)
    assert run.warehouse.view == run.current, f"{name} went wrong"
    return Timed(run.traffic.queries, tuple(installs))
