"""From the messages of a replication slot to log entries: which row is what now, or gone.

With the default replica identity an update carries the new row, and the old key if that changed; a delete carries the
key. Large values that an update left alone are missing. With identity FULL the whole old row is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from strandline.reasons import Reason
from strandline.sources.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Relation,
    Truncate,
    Unchanged,
    Update,
    Value,
    Values,
)
from strandline.sources.postgres.visibility import Visible
from strandline.sources.protocol import Begun, Ended, Entry, LogEvent, Unloggable, Wanted

Canonical = Callable[[str], str] | None


@dataclass(frozen=True)
class Followed:
    """A table that is captured: its name in the source, what is wanted of it, and how values get their text form.

    *place* is its schema and name now, None if it is not where it should be. *types* are those of the columns wanted.
    *whole* says that old rows are whole. Of a partitioned table the log labels old rows by the root's replica identity,
    and fills them by the partition's, so that the label alone cannot be trusted.
    """

    table: str
    oid: int
    place: tuple[str, str] | None
    wanted: Wanted
    canonical: Sequence[Canonical] = ()
    types: Sequence[int] = ()
    whole: bool = False


def entries(messages: Iterable[Message], followed: Sequence[Followed], place: int, now: Visible) -> Iterator[LogEvent]:
    """The transactions of *messages* from *place* on; those before have been taken in already.

    *now* is a snapshot of the server, which extends the ids of transactions.
    """
    by_oid = {follow.oid: follow for follow in followed}
    by_place = {follow.place: follow for follow in followed}
    tables: dict[int, _Table | Unloggable] = {}
    broken: set[str] = set()
    skipping = True
    for message in messages:
        match message:
            case Begin():
                skipping = message.final_lsn < place
                if not skipping:
                    yield Begun(message.final_lsn, now.extend(message.xid), message.committed_at)
            case Commit():
                if not skipping:
                    yield Ended()
            case Relation():
                tables.pop(message.oid, None)
                # By its number first: a table may have had another name.
                follow = by_oid.get(message.oid) or by_place.get((message.schema, message.table))
                if follow is not None:
                    problem = _problem(follow, message)
                    tables[message.oid] = (
                        _Table(follow, message) if problem is None else Unloggable(follow.table, problem)
                    )
            case Insert() | Update() | Delete() | Truncate() if not skipping:
                for oid in message.oids if isinstance(message, Truncate) else (message.oid,):
                    for event in _changed(tables.get(oid), message):
                        if event.table in broken:
                            break
                        if isinstance(event, Unloggable):
                            broken.add(event.table)
                        yield event


def _changed(
    table: _Table | Unloggable | None, message: Insert | Update | Delete | Truncate
) -> Iterable[Entry | Unloggable]:
    if table is None:
        return ()
    if isinstance(table, Unloggable):
        return (table,)
    if isinstance(message, Truncate):
        return (Entry(table.name, "T", table.nothing),)
    problem = table.problem(message)
    return table.entries(message) if problem is None else (Unloggable(table.name, problem),)


class _Table:
    """A relation of the log whose rows are taken."""

    def __init__(self, follow: Followed, relation: Relation) -> None:
        self.name = follow.table
        numbers = {column.name: number for number, column in enumerate(relation.columns)}
        self._columns = [numbers[name] for name in follow.wanted.columns]
        self._key = [follow.wanted.columns.index(name) for name in follow.wanted.key]
        self._canonical = list(follow.canonical)
        self._whole = follow.whole
        self._rewritten = any(canonical is not None for canonical in self._canonical)
        self.nothing: tuple[None, ...] = (None,) * len(self._columns)

    def problem(self, change: Insert | Update | Delete) -> Reason | None:
        """Why a change cannot be logged."""
        if isinstance(change, Insert):
            return None
        if not self._key and not self._has_old_row(change):
            return Reason(
                "SOURCE_TABLE_REWRITTEN", f"{self.name} has no key, and its replica identity was not FULL for a while"
            )
        if isinstance(change, Update) and change.old is not None and not self._has_old_row(change):
            row = self._row(change.new)
            old = self._keys(self._row(change.old))
            rest = [value for number, value in enumerate(row) if number not in self._key]
            if UNCHANGED in rest and self._keys(row) != old:
                return Reason(
                    "SOURCE_TABLE_REWRITTEN",
                    f"the key of a row of {self.name} was changed and a large value of it was not, which is then "
                    "missing in the log; replica identity FULL avoids that",
                )
        return None

    def entries(self, change: Insert | Update | Delete) -> Iterator[Entry]:
        """What a change does to rows."""
        if isinstance(change, Insert):
            yield self._entry("I", self._row(change.new))
            return
        old = None if change.old is None else self._row(change.old)
        if isinstance(change, Delete):
            assert old is not None
            yield self._gone(old)
            return
        new = self._row(change.new)
        if old is not None and self._has_old_row(change):
            new = [before if value is UNCHANGED else value for value, before in zip(new, old, strict=True)]
        elif old is not None:
            # A key column may be stored out of line too; the old key has it.
            new = [b if v is UNCHANGED and n in self._key else v for n, (v, b) in enumerate(zip(new, old, strict=True))]
        if old is not None and (not self._key or self._keys(old) != self._keys(new)):
            yield self._gone(old)
            yield self._entry("I", new)
            return
        unchanged = tuple(number for number, value in enumerate(new) if value is UNCHANGED)
        yield self._entry("U", new, unchanged)

    def _has_old_row(self, change: Update | Delete) -> bool:
        return change.old is not None and not change.old_is_key and self._whole

    def _row(self, values: Values) -> list[Value]:
        return [values[number] for number in self._columns]

    def _keys(self, row: Sequence[Value]) -> list[Value]:
        return [row[number] for number in self._key]

    def _gone(self, old: Sequence[Value]) -> Entry:
        if not self._key:
            return self._entry("D", old)
        return self._entry("D", [value if number in self._key else None for number, value in enumerate(old)])

    def _entry(self, op: str, row: Sequence[Value], unchanged: tuple[int, ...] = ()) -> Entry:
        values = [None if isinstance(value, Unchanged) else value for value in row]
        if self._rewritten:
            values = [
                value if value is None or canonical is None else canonical(value)
                for value, canonical in zip(values, self._canonical, strict=True)
            ]
        return Entry(self.name, op, values, unchanged)  # type: ignore[arg-type]


def _problem(follow: Followed, relation: Relation) -> Reason | None:
    """Why the rows of a relation cannot go into the log of the table that it is, or was."""
    if relation.oid != follow.oid:
        return Reason("SOURCE_TABLE_REPLACED", f"{follow.table} was dropped and made anew")
    if follow.place is None:
        return Reason("SOURCE_TABLE_REWRITTEN", f"{follow.table} was not to be found for a while")
    types = {column.name: column.type_oid for column in relation.columns}
    missing = [name for name in follow.wanted.columns if name not in types]
    if missing:
        return Reason("SOURCE_SCHEMA_CHANGED", f"{follow.table} had no column {', '.join(missing)} for a while")
    now = zip(follow.wanted.columns, follow.canonical, follow.types, strict=True)
    altered = [name for name, canonical, oid in now if canonical is not None and types[name] != oid]
    if altered:
        return Reason("SOURCE_TABLE_REWRITTEN", f"{', '.join(altered)} of {follow.table} had another type for a while")
    carried = {column.name for column in relation.columns if column.key}
    if relation.identity != "f" and not carried.issuperset(follow.wanted.key):
        return Reason("SOURCE_TABLE_REWRITTEN", f"the log of {follow.table} did not carry its key for a while")
    return None
