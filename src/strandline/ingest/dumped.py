"""A source that can only be read whole, as the rest of the warehouse sees it: with a past, which the copies hold.

A position is a dump: what it is found again by, what is known of its contents, and its *place*, a number that grows by
one with each dump that is taken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from strandline.algebra.schema import Schema
from strandline.catalog import Catalog, Json, TransactionRecord, VersionRecord
from strandline.differential.choice import USUAL_CHANGE
from strandline.engine import tables
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.ingest.copies import Copies, never_at, place_of, summed_up
from strandline.reasons import Reason
from strandline.sources.protocol import Peek, Position, SourceTransaction, TableInfo
from strandline.sources.snapshots import Contents, Dump, Newest, SnapshotSource
from strandline.sql.names import quoted
from strandline.sql.render import SIGN
from strandline.store.node import Node


@dataclass(frozen=True)
class NextDump:
    """What a refresh would find of a table: the *position* that its copy goes to, if the newest dump may be taken.

    *problem* is why it may not; *changed* whether it may hold other rows than the copy; *note* is for people.
    """

    position: Position
    changed: bool = False
    problem: Reason | None = None
    note: str | None = None
    peek: Peek = field(default_factory=lambda: Peek(()))


class DumpedSource(Copies):
    """The tables of *inner*, as their copies hold them. Positions are dumps."""

    def __init__(self, inner: SnapshotSource, catalog: Catalog, engine: Engine, root: str) -> None:
        super().__init__(inner.name, inner.kind, catalog, engine, root)
        self.inner = inner

    def check(self) -> None:
        """Raise SourceError unless the source can be used as it is declared."""
        self.inner.check()

    def tables(self) -> Mapping[str, TableInfo]:
        """The tables as their newest dumps have them; without a dump, or an answer, as they were known to be."""
        known = self.known()
        try:
            there = self.inner.tables()
        except SourceError:
            if not known:
                raise
            return known
        found = {name: info if info.columns else known.get(name, info) for name, info in there.items()}
        return {name: info for name, info in found.items() if info.columns}

    def position(self, table: str) -> Position:
        """The newest whole dump; where that cannot be looked at, the last that was read."""
        self.require(table)
        node = self._catalog.views.get(f"{self.name}.{table}")
        base = None if node is None else self._catalog.versions.baseline(node.id)
        if not self.inner.peekable or base is None:
            return None if base is None else base.positions[f"{self.name}.{table}"]
        return self.next(table, base.positions[f"{self.name}.{table}"]).position

    def peek(self, table: str, after: Position, upto: Position) -> Peek:
        """The dumps that were taken between two positions, and one that is yet to be taken."""
        newest = self._newest_place(table)
        found = summed_up(self._taken(table, after, upto))
        if place_of(upto) <= newest:
            return found
        pending = SourceTransaction(upto, dump_name(upto), made_at(upto))
        return Peek((*found.transactions, pending), rows=self._expected(table, upto))

    def changes(self, table: str, after: Position, upto: Position, columns: Schema) -> str:
        """A SELECT of the net changes between two versions of the copy."""
        node = self.node(table)
        first, last = self.version_at(node, after).version, self.version_at(node, upto).version
        if first == last:
            return tables.no_changes(columns)
        stored = {column.name: s.name for column, s in zip(node.visible, node.stored, strict=True)}
        shown = ", ".join(f"{quoted(stored[c.name])} AS {quoted(c.name)}" for c in columns)
        rows = tables.difference(node.path, first, last, node.stored)
        return f"SELECT {shown}, {SIGN}, {place_of(upto)} AS _position FROM ({rows})"

    def version_at(self, node: Node, at: Position) -> VersionRecord:
        """The version of a copy that shows a dump."""
        for version in reversed(self._catalog.versions.all(node.record.id)):
            if version.positions[node.name] == at:
                return version
        raise never_at(node, at)

    def next(self, table: str, after: Position) -> NextDump:
        """The newest dump, as seen from a copy that shows *after*; the first one, if that is None."""
        shown = after if isinstance(after, dict) else None
        newest = self.inner.newest(table, shown)
        note = _note(newest)
        if newest.dump is None:
            return NextDump(after, note=note)
        if newest.problem is not None:
            return NextDump(after, problem=newest.problem, note=note)
        contents = self.inner.contents(table, newest.dump)
        if shown is not None and contents.fingerprint is not None and contents.fingerprint == shown["content"]:
            return NextDump(after, note=_joined(f"{newest.dump.name} holds the same", note))
        position = self._position(table, newest.dump, contents, shown)
        if shown is not None and contents.rows is not None and isinstance(before := shown["rows"], int):
            problem = self.held_back(table, position, before, contents.rows)
            if problem is not None:
                return NextDump(after, problem=problem, note=note)
        pending = SourceTransaction(position, newest.dump.name, newest.dump.made_at)
        expected = None if shown is None else self._expected(table, position)
        return NextDump(position, True, note=note, peek=Peek((pending,), rows=expected, bytes=newest.dump.bytes or 0))

    def held_back(self, table: str, position: Position, before: int, rows: int) -> Reason | None:
        """Why a dump is not taken that has fewer rows than the one before; None if it may be."""
        shrink = self.inner.rules(table).shrink
        if rows >= shrink * before or self._catalog.settings.get(self._accepting(table)) == _stamp(position):
            return None
        detail = (
            f"dump {dump_name(position)} of {self.name}.{table} has {rows:,} rows, and the one before had {before:,}: "
            f"less than the fraction {shrink:g} that is declared (`shrink`); if that is right, run "
            f"`strandline source accept {self.name} {table}`, else have it dumped again"
        )
        return Reason("DUMP_HELD_BACK", detail)

    def accept(self, table: str) -> str:
        """Let the newest dump of a table be taken however small it is; its name."""
        self.require(table)
        shown = self._shown(table)
        newest = self.inner.newest(table, shown if isinstance(shown, dict) else None)
        if newest.dump is None:
            raise SourceError(
                "NO_DUMP",
                f"{self.name}.{table} has no dump that is newer than {dump_name(shown)}, which is taken already.",
            )
        if newest.problem is not None:
            raise SourceError("DUMP_UNREADABLE", newest.problem.text)
        position = self._position(table, newest.dump, Contents(), shown if isinstance(shown, dict) else None)
        self._catalog.settings.put(self._accepting(table), _stamp(position))
        return newest.dump.name

    def _position(
        self, table: str, dump: Dump, contents: Contents, shown: Mapping[str, Json] | None
    ) -> dict[str, Json]:
        leaf = self._catalog.leaves.get(f"{self.name}.{table}")
        # A copy that is begun anew goes on counting where the one before it was.
        last = dict(shown) if shown is not None else leaf.position if leaf is not None else None
        place = 1 if last is None else place_of(last) + 1
        made = None if dump.made_at is None else dump.made_at.isoformat()
        known: dict[str, Json] = {"content": contents.fingerprint, "rows": contents.rows, "made_at": made}
        return {**dump.identity, **known, "place": place}

    def _accepting(self, table: str) -> str:
        return f"accepted dump of {self.name}.{table}"

    def _newest_place(self, table: str) -> int:
        return place_of(self._shown(table))

    def _taken(self, table: str, after: Position, upto: Position) -> list[TransactionRecord]:
        return list(self._catalog.unit_of_work.between(f"{self.name}.{table}", place_of(after) + 1, place_of(upto) + 1))

    def _expected(self, table: str, upto: Position) -> int | None:
        """How many rows will have changed: as many as in the last dump that was taken, or the usual share."""
        last = self._catalog.unit_of_work.since(f"{self.name}.{table}")[-1:]
        if last:
            return sum(last[0].summary.values())
        rows = upto["rows"] if isinstance(upto, dict) else None
        return max(1, int(rows * USUAL_CHANGE)) if isinstance(rows, int) else None


def dump_name(position: Position) -> str:
    """How people call the dump of a position."""
    return str(position["dump"]) if isinstance(position, dict) else "none"


def made_at(position: Position) -> datetime | None:
    """When the dump of a position was made."""
    made = position.get("made_at") if isinstance(position, dict) else None
    return None if made is None else datetime.fromisoformat(str(made))


def _stamp(position: Position) -> str:
    """What an accepted dump is known by; one that only reading tells of is the next that is read, whatever it holds."""
    assert isinstance(position, dict)
    return json.dumps([position.get("stamp"), position["place"]])


def _note(newest: Newest) -> str | None:
    skipped = f"{len(newest.skipped)} older dumps are skipped" if newest.skipped else None
    waiting = f"not whole yet: {', '.join(newest.waiting[:3])}" if newest.waiting else None
    return _joined(skipped, waiting)


def _joined(*notes: str | None) -> str | None:
    return "; ".join(note for note in notes if note) or None
