"""A database whose changes a slot keeps, with a connection that writes and one that reads."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import psycopg
from psycopg import Connection

from strandline.sources.postgres.lsn import parse_lsn
from strandline.sources.postgres.pgoutput import Begin, Commit, Message, Other, Relation
from strandline.sources.postgres.stream import Pending, count, peek

PUBLICATION = 'All "the" tables'

Transaction: TypeAlias = tuple[Begin, tuple[Message, ...], Commit]


@dataclass(frozen=True)
class Slot:
    """A slot from before the first change."""

    name: str
    dsn: str
    writer: Connection[Any]
    reader: Connection[Any]

    def execute(self, *statements: str) -> None:
        """Each statement in a transaction of its own."""
        for statement in statements:
            self.writer.execute(statement.encode())

    def together(self, *statements: str) -> None:
        """All statements in one transaction."""
        with self.writer.transaction():
            self.execute(*statements)

    def value(self, query: str) -> Any:
        """What *query* gives now."""
        row = self.writer.execute(query.encode()).fetchone()
        assert row is not None
        return row[0]

    def flushed(self) -> int:
        return parse_lsn(self.value("SELECT pg_current_wal_flush_lsn()"))

    def peek(self, upto: int | None = None, *, chunk: int = 5000, slot: str | None = None) -> list[Message]:
        return list(peek(self.reader, slot or self.name, PUBLICATION, upto, chunk=chunk))

    def count(self, upto: int | None = None) -> Pending:
        return count(self.reader, self.name, PUBLICATION, upto)

    def transactions(self, upto: int | None = None) -> list[Transaction]:
        return transactions(self.peek(upto))

    def changes(self) -> list[Message]:
        """Only what was done to rows."""
        return [one for one in self.peek() if not isinstance(one, Begin | Commit | Relation | Other)]

    def relations(self) -> list[Relation]:
        return [one for one in self.peek() if isinstance(one, Relation)]

    def oid(self, table: str) -> int:
        return int(self.value(f"SELECT '{table}'::regclass::oid"))


def transactions(messages: list[Message]) -> list[Transaction]:
    """*messages* by transaction; nothing is outside of one."""
    found: list[Transaction] = []
    rest = iter(messages)
    for begin in rest:
        assert isinstance(begin, Begin)
        inside: list[Message] = []
        for one in rest:
            assert not isinstance(one, Begin)
            if isinstance(one, Commit):
                found.append((begin, tuple(inside), one))
                break
            inside.append(one)
        else:
            raise AssertionError(f"no end of {begin}")
    return found


@contextmanager
def slot_of(dsn: str) -> Iterator[Slot]:
    """A slot of all tables of the database."""
    with (
        psycopg.connect(dsn, autocommit=True, client_encoding="UTF8") as writer,
        psycopg.connect(dsn, autocommit=True) as reader,
    ):
        writer.execute('CREATE PUBLICATION "All ""the"" tables" FOR ALL TABLES')
        name = f"slot_{writer.info.dbname}"
        writer.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (name,))
        yield Slot(name, dsn, writer, reader)
