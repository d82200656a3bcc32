"""Tables as PostgreSQL describes them, and by which columns its log tells their rows apart.

What an UPDATE or DELETE carries of the old row is decided by the table's replica identity: ``d``, the primary key;
``i``, a unique index; ``f``, the whole row; ``n``, nothing, and then PostgreSQL refuses to update a published table.
Of a partitioned table, the identity of the partition counts that holds the row.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class PgType:
    """A type with its domains resolved: *name* as in ``pg_type``, with its schema unless that is ``pg_catalog``.

    *kind* is the letter of ``pg_type.typtype``. Of an array, *element* is what it holds, and has the typmod.
    """

    name: str
    kind: str = "b"
    typmod: int = -1
    element: PgType | None = None


@dataclass(frozen=True)
class PgColumn:
    """A column; *type* as a user writes it, *type_oid* and *typmod* as the log names it.

    *generated* is ``s`` (stored), ``v`` (virtual) or empty; *identity* is ``a`` (always), ``d`` (by default) or empty.
    """

    name: str
    type: str
    type_oid: int
    typmod: int
    resolved: PgType
    not_null: bool = False
    generated: str = ""
    identity: str = ""
    published: bool = True
    """Whether the log has it: it never has virtual columns, and stored generated ones only from PostgreSQL 18 on."""
    collation: int = 0
    """The number of its collation, 0 if it has none."""
    deterministic: bool = True
    """Whether its collation takes texts for equal only if they are the same."""

    @property
    def quoted(self) -> str:
        """The name for use in SQL."""
        return identifier(self.name)


@dataclass(frozen=True)
class Partition:
    """A partition that holds rows, with its own replica identity and the columns that this puts into the log."""

    oid: int
    quoted: str
    identity: str
    identity_columns: tuple[str, ...]


@dataclass(frozen=True)
class PgTable:
    """A table (*kind* ``r``) or the root of a partitioned one (``p``).

    *identity_columns* are those that the log has of an updated or deleted row, whichever partition it is in.
    *identity_index* are the columns of the index that identity ``i`` names. *quoted* is the name for use in SQL.
    """

    oid: int
    schema: str
    name: str
    quoted: str
    kind: str
    columns: tuple[PgColumn, ...]
    primary_key: tuple[str, ...] = ()
    deferrable: bool = False
    """Whether the primary key is; then it may be violated inside a transaction, and identifies no rows in the log."""
    identity: str = "d"
    identity_columns: tuple[str, ...] = ()
    identity_index: tuple[str, ...] = ()
    partitions: tuple[Partition, ...] = ()
    estimated_rows: int = 0
    bytes: int = 0

    @property
    def partition_oids(self) -> tuple[int, ...]:
        """The partitions that hold rows."""
        return tuple(partition.oid for partition in self.partitions)


def identifier(name: str) -> str:
    """A name for use in PostgreSQL's SQL."""
    return '"' + name.replace('"', '""') + '"'


def key_of(table: PgTable) -> tuple[str, ...]:
    """The columns by which rows are told apart: never null, unique, and in the log; () if the table is a bag."""
    key = table.identity_index if table.identity == "i" else ()
    if not key and not table.deferrable:
        key = table.primary_key
    published = {column.name for column in table.columns if column.published}
    return key if published.issuperset(key) else ()


def identity_problem(table: PgTable, *, whole: bool = False) -> str | None:
    """Why the log does not say which row was updated or deleted, and the statement that makes it; None if it does.

    With *whole* it has to say all that was in the row.
    """
    key = key_of(table)
    own = Partition(table.oid, table.quoted, table.identity, table.identity_columns)
    partial = [part for part in table.partitions or (own,) if part.identity != "f"]
    if whole and partial:
        return (
            f"no copy of {table.quoted} is kept, and its log does not say what was in rows that are updated or "
            f"deleted; {_alter(partial, 'FULL')}."
        )
    lacking = [part for part in table.partitions or (own,) if not _identifies(part, key)]
    if not lacking:
        return None
    if key:
        carried = "DEFAULT" if key == table.primary_key and not table.deferrable else "FULL"
        return (
            f"{_names(lacking)} keeps the key ({', '.join(key)}) of {table.quoted} out of the log of updates and "
            f"deletes; {_alter(lacking, carried)}."
        )
    if table.deferrable:
        why = f"the primary key of {table.quoted} is deferrable, so it does not identify rows in the log"
        return f"{why}; make it NOT DEFERRABLE, or {_alter(lacking, 'FULL')}."
    if table.primary_key:
        why = f"the primary key of {table.quoted} has a generated column, which is not in the log"
        return f"{why}; {_alter(lacking, 'FULL')}."
    return (
        f"{table.quoted} has no primary key, so the log does not say which rows were updated or deleted; "
        f"ALTER TABLE {table.quoted} ADD PRIMARY KEY (...), or {_alter(lacking, 'FULL')}."
    )


def _identifies(part: Partition, key: tuple[str, ...]) -> bool:
    return part.identity == "f" or (bool(key) and set(part.identity_columns).issuperset(key))


def _names(parts: Iterable[Partition]) -> str:
    return _few([part.quoted for part in parts], ", ")


def _alter(parts: Iterable[Partition], identity: str) -> str:
    return _few([f"ALTER TABLE {part.quoted} REPLICA IDENTITY {identity}" for part in parts], "; ")


def _few(texts: list[str], between: str, most: int = 5) -> str:
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return between.join(texts[:most]) + more
