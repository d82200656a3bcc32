"""The messages of ``pgoutput``, PostgreSQL's own format of logical replication, in version 1 of its protocol.

A transaction is ``Begin``, its changes, ``Commit``; transactions follow each other in the order of their commit
records. A ``Relation`` comes before the first change of a table, and again when its definition may have changed: after
ALTER TABLE, but also after TRUNCATE. Later versions send the same, and more only if asked to. The format is in
PostgreSQL's manual, "Logical Replication Message Formats".
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from struct import Struct
from struct import error as StructError
from typing import Final, TypeAlias

from strandline.errors import SourceError


class Unchanged(Enum):
    """The type of UNCHANGED."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
"""In place of a value that is stored out of line (TOAST) and that an update left as it was: the log does not have it.

With replica identity FULL it is in the old row, which never has this.
"""

Value: TypeAlias = str | Unchanged | None
"""A column's value in PostgreSQL's text form."""

Values: TypeAlias = tuple[Value, ...]
"""A row: as many values as the relation has columns."""


@dataclass(frozen=True, slots=True)
class Begin:
    """A transaction begins; *final_lsn* is where its commit record starts, *xid* the lower 32 bits of its id."""

    final_lsn: int
    committed_at: datetime
    xid: int


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction is complete; its commit record reaches from *lsn* to *end_lsn*."""

    lsn: int
    end_lsn: int
    committed_at: datetime


@dataclass(frozen=True, slots=True)
class RelationColumn:
    """A column of a table; *key* if it is part of the replica identity, as every column is under FULL."""

    name: str
    type_oid: int
    typmod: int
    key: bool


@dataclass(frozen=True, slots=True)
class Relation:
    """A table as it is from here on in the log, with the columns that are published.

    *identity* is the letter of ``pg_class.relreplident``: d(efault), n(othing), f(ull), i(ndex). Generated columns
    are there if the publication has them.
    """

    oid: int
    schema: str
    table: str
    identity: str
    columns: tuple[RelationColumn, ...]


@dataclass(frozen=True, slots=True)
class Insert:
    """A row is new."""

    oid: int
    new: Values


@dataclass(frozen=True, slots=True)
class Update:
    """A row is another now.

    *old* is the whole row under identity FULL. Else it is there only if a column of the identity changed, and has
    None in all other columns: *old_is_key*.
    """

    oid: int
    old: Values | None
    old_is_key: bool
    new: Values


@dataclass(frozen=True, slots=True)
class Delete:
    """A row is gone; of *old* only the columns of the identity are known if *old_is_key*: the others are None."""

    oid: int
    old: Values
    old_is_key: bool


@dataclass(frozen=True, slots=True)
class Truncate:
    """Tables were emptied, all at once."""

    oids: tuple[int, ...]
    cascade: bool
    restart_identity: bool


@dataclass(frozen=True, slots=True)
class Other:
    """A message that changes no row: O(rigin), Y (a type), M(essage)."""

    kind: str


Message: TypeAlias = Begin | Commit | Relation | Insert | Update | Delete | Truncate | Other


def decode(data: bytes | memoryview) -> Message:
    """The message that *data* holds."""
    data = bytes(data)
    decoder = _DECODERS.get(data[:1])
    if decoder is None:
        known = ", ".join(kind.decode() for kind in _DECODERS)
        raise SourceError(
            "UNKNOWN_LOG_MESSAGE",
            f"PostgreSQL's log has a message of kind {_kind(data)}; known are {known}; "
            "read the slot with pgoutput, proto_version 1, without streaming or two_phase.",
        )
    try:
        return decoder(data)
    except (StructError, IndexError, ValueError) as error:
        raise SourceError(
            "UNREADABLE_LOG_MESSAGE",
            f"a message of kind {_kind(data)} in PostgreSQL's log cannot be read: {error}; "
            "values must be text in UTF-8; a database in SQL_ASCII has to be converted first.",
        ) from error


def final_lsn(begin: bytes) -> int:
    """Where the commit record of the transaction starts whose Begin is *begin*."""
    (lsn,) = _LSN.unpack_from(begin, 1)
    return int(lsn)


def is_row_change(data: bytes) -> bool:
    """Whether *data* is an Insert, an Update or a Delete; its first byte is enough."""
    return data[0] in b"IUD"


def relation_oid(change: bytes) -> int:
    """Which table an Insert, Update or Delete is about; its first five bytes are enough."""
    (oid,) = _OID.unpack_from(change, 1)
    return int(oid)


_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_LSN = Struct("!Q")
_OID = Struct("!I")
_BEGIN = Struct("!QqI")
_COMMIT = Struct("!xQQq")
_COLUMN = Struct("!Ii")
_TRUNCATE = Struct("!IB")
_count = Struct("!H").unpack_from
_length = Struct("!I").unpack_from

_TEXT, _NULL, _UNCHANGED = b"tnu"
_OLD, _KEY, _NEW = b"OKN"


def _kind(data: bytes) -> str:
    return repr(data[:1].decode("latin-1"))


def _time(microseconds: int) -> datetime:
    return _EPOCH + timedelta(microseconds=microseconds)


def _string(data: bytes, at: int) -> tuple[str, int]:
    """The zero-terminated text at *at*, and where it is over."""
    end = data.index(0, at)
    return data[at:end].decode(), end + 1


def _values(data: bytes, at: int) -> tuple[Values, int]:
    """The row at *at*, and where it is over. Most of the time of decoding is spent here."""
    values: list[Value] = []
    (columns,) = _count(data, at)
    at += 2
    for _ in range(columns):
        kind = data[at]
        if kind == _TEXT:
            start = at + 5
            at = start + _length(data, at + 1)[0]
            values.append(data[start:at].decode())
            continue
        at += 1
        if kind == _NULL:
            values.append(None)
        elif kind == _UNCHANGED:
            values.append(UNCHANGED)
        else:
            raise ValueError(f"a value of kind {chr(kind)!r}")
    return tuple(values), at


def _last_values(data: bytes, at: int) -> Values:
    """The row from *at* to the end."""
    values, end = _values(data, at)
    if end != len(data):
        raise ValueError(f"it has {len(data)} bytes instead of {end}")
    return values


def _expect(data: bytes, at: int, *kinds: int) -> int:
    """Which of *kinds* of rows starts at *at*."""
    if data[at] not in kinds:
        raise ValueError(f"a row of kind {chr(data[at])!r}")
    return data[at]


def _begin(data: bytes) -> Begin:
    lsn, time, xid = _BEGIN.unpack_from(data, 1)
    return Begin(lsn, _time(time), xid)


def _commit(data: bytes) -> Commit:
    lsn, end_lsn, time = _COMMIT.unpack_from(data, 1)
    return Commit(lsn, end_lsn, _time(time))


def _relation(data: bytes) -> Relation:
    schema, at = _string(data, 5)
    table, at = _string(data, at)
    identity = chr(data[at])
    (count,) = _count(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        key = bool(data[at] & 1)
        name, at = _string(data, at + 1)
        type_oid, typmod = _COLUMN.unpack_from(data, at)
        at += _COLUMN.size
        columns.append(RelationColumn(name, type_oid, typmod, key))
    # pg_catalog, which every server has, is left out.
    return Relation(relation_oid(data), schema or "pg_catalog", table, identity, tuple(columns))


def _insert(data: bytes) -> Insert:
    _expect(data, 5, _NEW)
    return Insert(relation_oid(data), _last_values(data, 6))


def _update(data: bytes) -> Update:
    kind = _expect(data, 5, _NEW, _KEY, _OLD)
    old, at = (None, 5) if kind == _NEW else _values(data, 6)
    _expect(data, at, _NEW)
    return Update(relation_oid(data), old, kind == _KEY, _last_values(data, at + 1))


def _delete(data: bytes) -> Delete:
    kind = _expect(data, 5, _KEY, _OLD)
    return Delete(relation_oid(data), _last_values(data, 6), kind == _KEY)


def _truncate(data: bytes) -> Truncate:
    count, options = _TRUNCATE.unpack_from(data, 1)
    oids = Struct(f"!{count}I").unpack_from(data, 1 + _TRUNCATE.size)
    return Truncate(oids, bool(options & 1), bool(options & 2))


def _other(data: bytes) -> Other:
    return Other(chr(data[0]))


_DECODERS: dict[bytes, Callable[[bytes], Message]] = {
    b"B": _begin,
    b"C": _commit,
    b"R": _relation,
    b"I": _insert,
    b"U": _update,
    b"D": _delete,
    b"T": _truncate,
    b"O": _other,
    b"Y": _other,
    b"M": _other,
}
