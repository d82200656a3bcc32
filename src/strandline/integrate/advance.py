"""Base views brought to one state of their sources: what has to be filled, and what the changes since amount to.

All sources of the base views at hand are held, each in one snapshot. What their logs hold up to there is delivered to
every base view, and whatever those ask is answered in these snapshots. So base views that are read together show the
same state of each source.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from strandline.algebra.bag import SignedBag, SignedRow
from strandline.algebra.plan import Bag, Operand
from strandline.algebra.schema import Column, Schema, names
from strandline.catalog import Catalog, Json, Lease
from strandline.engine import tables
from strandline.engine.delta_log import DeltaLog
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.ingest.uncopied import UncopiedSource
from strandline.integrate.algorithm import Algorithm
from strandline.integrate.asking import Answering, AskedOnce, HeldSource, Traffic, VersionedTable, answered
from strandline.integrate.driver import Driver, Run
from strandline.integrate.messages import VIEW, Query
from strandline.integrate.workbench import Table, Workbench, loaded, store
from strandline.sources.protocol import Position, Source
from strandline.sources.questions import HeldSnapshot
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN
from strandline.store import layout
from strandline.store.deltas import Delta
from strandline.store.node import Node

TRIES = 5
"""How often a source is held anew, if what its snapshot shows is no stretch of its log."""
ROWS_AT_ONCE = 50_000
"""Where no state between two refreshes is asked for, transactions of a source up to this many rows are one update."""
UPDATE = "__update"
"""The column of a history that has the number of an update."""


@dataclass(frozen=True)
class Integrated:
    """What the changes up to a state of the sources amount to, for a base view and for each auxiliary view of it."""

    positions: Mapping[str, Position]
    deltas: Mapping[str, Delta]
    updates: int
    traffic: Traffic
    algorithm: str
    history: Mapping[str, Json] | None = None
    """Where the changes of each single update are, if every state is asked for, and which updates they are."""

    @property
    def told(self) -> dict[str, int | str]:
        """As reports show it."""
        return {"algorithm": self.algorithm, "updates": self.updates, **asdict(self.traffic)}


@contextmanager
def held(
    source: UncopiedSource, read: Mapping[str, Sequence[Position]], lease: Lease
) -> Iterator[tuple[HeldSnapshot, int]]:
    """A snapshot of a source and the place in its log that it shows; its log is taken in up to there.

    *read* has the tables that are read, and the positions from which on they are.
    """
    for attempt in range(TRIES):
        time.sleep(0.05 * attempt)
        with source.inner.hold() as snapshot:
            # To the end of the log, which is flushed and beyond all that the snapshot shows.
            source.take_in((), lease)
            place = source.reached(snapshot.seen, read)
            if place is not None:
                yield snapshot, place
                return
    raise SourceError(
        "SOURCE_BUSY",
        f"transactions of {source.name} became visible in another order than they are logged in, {TRIES} times one "
        "after another; refresh again.",
    )


class Integration:
    """Brings base views to one state of their sources: *snapshots*, which show *places* of their logs.

    Tables of versioned stores go to *versions*. What is made is stored below *folder*, and what is kept, below *root*.
    """

    def __init__(
        self,
        catalog: Catalog,
        engine: Engine,
        sources: Mapping[str, Source],
        snapshots: Mapping[str, HeldSnapshot],
        places: Mapping[str, int],
        versions: Mapping[str, Position],
        folder: str,
        root: str,
    ) -> None:
        self._catalog = catalog
        self._engine = engine
        self._sources = sources
        self._snapshots = {name: AskedOnce(snapshot) for name, snapshot in snapshots.items()}
        self._places = places
        self._versions = versions
        self._folder = folder
        self._root = root

    def integrate(self, node: Node, parts: Mapping[str, Node], machine: Algorithm[Any]) -> Integrated:
        """The changes of the base view *node*, and of its auxiliary views *parts*, by the names of their bags."""
        base = self._catalog.versions.baseline(node.record.id)
        assert base is not None
        bench = Workbench(self._engine, f"{self._folder}/{node.record.id}-bags")
        homes = {home: self._answering(home, machine, bench) for home in machine.view.sources}

        def ask(query: Query, given: Mapping[Operand, SignedBag]) -> dict[str, SignedBag]:
            return answered(query, homes[query.source], given)

        try:
            driver = Driver(machine, self._kept(node, parts, machine), bench, ask)
            updates: list[tuple[str, int]] = []
            for home in homes:
                for sequence, (place, changes) in enumerate(self._updates(home, node, machine, base.positions), 1):
                    driver.update(home, sequence, changes)
                    updates.append((home, place))
            run = driver.settle()
        finally:
            bench.close()
        deltas = {each.name: self._stored(each, run, bag) for bag, each in {VIEW.name: node, **parts}.items()}
        traffic = sum((home.traffic for home in homes.values()), Traffic())
        history = self._history(node, run, updates) if _every_state(node) and updates else None
        return Integrated(self.positions(node), deltas, len(updates), traffic, machine.name, history)

    def positions(self, node: Node) -> dict[str, Position]:
        """What a base view shows of its tables afterwards."""
        found = {}
        for leaf in node.leaves:
            source = self._sources[leaf.split(".", 1)[0]]
            if isinstance(source, UncopiedSource):
                found[leaf] = source.at(self._places[source.name])
            else:
                found[leaf] = self._versions[leaf]
        return found

    def _answering(self, home: str, machine: Algorithm[Any], bench: Workbench) -> Answering:
        if home in self._snapshots:
            return HeldSource(self._snapshots[home], bench)
        source, table = home.split(".", 1)
        at, fields = self._versions[home], machine.view.scans[machine.view.homes.index(home)].fields
        rows = self._sources[source].size(table, at).rows
        return VersionedTable(home, Table(self._sources[source].snapshot(table, at, fields), fields, rows), bench)

    def _kept(self, node: Node, parts: Mapping[str, Node], machine: Algorithm[Any]) -> dict[Bag, Table]:
        """What is stored of the view and of auxiliary views, under the names that the algorithm has for the columns."""
        found = {}
        for bag, plan in machine.kept().items():
            each = node if bag == VIEW else parts[bag.name]
            base = self._catalog.versions.baseline(each.record.id)
            assert base is not None
            pairs = zip(names(each.stored), names(plan.columns), strict=True)
            shown = ", ".join(f"{quoted(stored)} AS {quoted(name)}" for stored, name in pairs)
            select = f"SELECT {shown} FROM ({tables.select(each.path, base.version, each.stored)})"
            rows = DeltaLog(each.path, self._engine.storage_options).size(base.version).rows
            found[bag] = Table(select, plan.columns, rows)
        return found

    def _updates(
        self, home: str, node: Node, machine: Algorithm[Any], after: Mapping[str, Position]
    ) -> Iterator[tuple[int, Mapping[str, SignedBag]]]:
        """The changes of one source since a base view was last brought up to date, as updates in their order.

        With each comes the place in the log, or the version, of its last transaction.
        """
        view = machine.view
        placed = zip(view.relations, view.scans, view.homes, strict=True)
        read = {relation: scan.fields for relation, scan, at in placed if at == home}
        transactions: dict[int, dict[str, list[SignedRow]]] = {}
        for relation, fields in read.items():
            for place, rows in self._transactions(relation, fields, after[relation]):
                transactions.setdefault(place, {}).setdefault(relation, []).extend(rows)
        batch: dict[str, list[SignedRow]] = {}
        for place in sorted(transactions):
            for relation, rows in transactions[place].items():
                batch.setdefault(relation, []).extend(rows)
            if _every_state(node) or sum(map(len, batch.values())) >= ROWS_AT_ONCE:
                yield place, {relation: SignedBag(rows) for relation, rows in batch.items()}
                batch = {}
        if batch:
            yield place, {relation: SignedBag(rows) for relation, rows in batch.items()}

    def _transactions(
        self, relation: str, fields: Schema, after: Position
    ) -> Iterator[tuple[int, Sequence[SignedRow]]]:
        source, table = relation.split(".", 1)
        there = self._sources[source]
        if isinstance(there, UncopiedSource):
            for transaction in there.logged(table, names(fields), after, self._places[source]):
                yield transaction.place, transaction.rows
        elif after != self._versions[relation]:
            changes = there.changes(table, after, self._versions[relation], fields)
            path = f"{self._folder}/changes-{source}-{table}"
            shown = quoted_list((*names(fields), "_position", SIGN))
            if self._engine.write_parquet(f"SELECT {shown} FROM ({changes})", path):
                for row, times in loaded(path, self._engine.storage_options).items():
                    yield row[-1], [(row[:-1], times)]

    def _history(self, node: Node, run: Run, updates: Sequence[tuple[str, int]]) -> dict[str, Json]:
        """Store what each update did to a base view, numbered from 1."""
        numbered = SignedBag(
            ((*row, installed.upto), times)
            for installed in run.installs
            for row, times in installed.changes.get(VIEW, SignedBag()).items()
        )
        path = layout.history_path(self._root, node.record.location)
        columns = (*node.stored, Column(UPDATE, "bigint", False))
        store(numbered, columns, path, self._engine.storage_options)
        return {"path": path, "updates": [[home, place] for home, place in updates]}

    def _stored(self, node: Node, run: Run, bag: str) -> Delta:
        """The net changes of a table, where the steps of a refresh find them."""
        rows = run.total(Bag(bag))
        if not rows:
            return Delta("", 0, 0)
        path = f"{self._folder}/{node.record.id}"
        store(rows, node.stored, path, self._engine.storage_options)
        return Delta(path, sum(rows.inserted.values()), sum(rows.deleted.values()))


def _every_state(node: Node) -> bool:
    """Whether each state of the sources is to be readable, not only those that are published."""
    return node.record.options["consistency"] == "COMPLETE"
