"""Reading a replication slot without taking anything from it: reading again gives the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from psycopg import Connection
from psycopg.errors import Diagnostic
from psycopg.rows import scalar_row

from strandline.errors import SourceError
from strandline.sources.postgres.connect import SESSION
from strandline.sources.postgres.lsn import format_lsn
from strandline.sources.postgres.pgoutput import (
    Begin,
    Message,
    Relation,
    Truncate,
    decode,
    final_lsn,
    is_row_change,
    relation_oid,
)

Table: TypeAlias = tuple[str, str]
"""A schema and a table in it."""

# The server writes values as text under the settings of the session that reads; they must not depend on who reads.
_SETTINGS = {
    **SESSION,
    "client_encoding": "UTF8",
    # At a higher level we would not hear of a missing publication.
    "client_min_messages": "warning",
}
_SET = "SELECT set_config(name, value, true) FROM unnest(%s::text[], %s::text[]) AS setting (name, value)"
_PEEK = (
    "pg_logical_slot_peek_binary_changes(%s::name, %s::pg_lsn, NULL,"
    " 'proto_version', '1', 'publication_names', %s::text)"
)
_MESSAGES = f"SELECT data FROM {_PEEK}"
# Of a changed row (I, U, D) only its kind and its table.
_HEADS = f"SELECT CASE WHEN get_byte(data, 0) IN (73, 85, 68) THEN substring(data FOR 5) ELSE data END FROM {_PEEK}"

_NOT_IN_PREREQUISITE_STATE = "55000"


@dataclass(frozen=True)
class Pending:
    """How much a slot holds: committed transactions, and of each table that they changed, how many, and the rows.

    *truncated* tables were emptied at least once; how many rows that took the log does not say. *oldest* is when the
    first of the transactions of each table committed.
    """

    transactions: int
    touching: Mapping[Table, int]
    rows: Mapping[Table, int]
    only_inserts: frozenset[Table]
    truncated: frozenset[Table]
    oldest: Mapping[Table, datetime] = field(default_factory=dict, compare=False)


def peek(
    connection: Connection[Any], slot: str, publication: str, upto: int | None, *, chunk: int = 5000
) -> Generator[Message, None, None]:
    """What *slot* holds of *publication*: all transactions, or those that committed up to the place *upto*.

    The server keeps what it decoded in a file if need be, and we hold *chunk* messages at a time, so a transaction
    may be of any size. Until the iterator is exhausted or closed, the connection is in a transaction and must not be
    used for anything else.

    A transaction is up to *upto* if its commit record starts before it. That is the slot's own rule for what is done
    with once it is advanced to *upto*, so nothing is lost between the two, and nothing comes twice. Where *upto* is
    the end of a record, it is the same as ``Commit.end_lsn <= upto``; but what is flushed may also end in the middle
    of a record, with a page. The server stops after the record that reaches *upto*, which may be one too many.
    """
    for data in _read(connection, _MESSAGES, slot, publication, upto, chunk):
        yield decode(data)


def count(
    connection: Connection[Any], slot: str, publication: str, upto: int | None, *, chunk: int = 50_000
) -> Pending:
    """How much ``peek`` would give; the rows stay on the server."""
    transactions = 0
    names: dict[int, Table] = {}
    rows: Counter[Table] = Counter()
    rewritten: set[Table] = set()
    truncated: set[Table] = set()
    touching: Counter[Table] = Counter()
    touched: set[Table] = set()
    oldest: dict[Table, datetime] = {}
    begun: Begin | None = None
    for data in _read(connection, _HEADS, slot, publication, upto, chunk):
        if is_row_change(data):
            table = names[relation_oid(data)]
            rows[table] += 1
            touched.add(table)
            if not data.startswith(b"I"):
                rewritten.add(table)
        elif data.startswith(b"C"):
            transactions += 1
            touching.update(touched)
            if begun is not None:
                oldest = {**dict.fromkeys(touched, begun.committed_at), **oldest}
            touched = set()
        else:
            message = decode(data)
            if isinstance(message, Begin):
                begun = message
            elif isinstance(message, Relation):
                names[message.oid] = message.schema, message.table
            elif isinstance(message, Truncate):
                truncated.update(names[oid] for oid in message.oids)
                touched.update(names[oid] for oid in message.oids)
    rows.update(dict.fromkeys(truncated, 0))
    only_inserts = frozenset(rows) - rewritten - truncated
    return Pending(transactions, touching, dict(rows), only_inserts, frozenset(truncated), oldest)


def _read(
    connection: Connection[Any], query: str, slot: str, publication: str, upto: int | None, chunk: int
) -> Iterator[bytes]:
    """The messages of the transactions up to *upto*, as the server sends them."""
    quoted = '"' + publication.replace('"', '""') + '"'
    with (
        _warnings(connection) as warnings,
        # Rolled back, so that the settings are what they were even if the caller is in a transaction.
        connection.transaction(force_rollback=True),
        connection.cursor("strandline_peek", binary=True, row_factory=scalar_row) as cursor,
    ):
        connection.execute(_SET, (list(_SETTINGS), list(_SETTINGS.values())))
        cursor.execute(query, (slot, None if upto is None else format_lsn(upto), quoted))
        while True:
            messages: list[bytes] = cursor.fetchmany(chunk)
            if _NOT_IN_PREREQUISITE_STATE in warnings:
                raise _publication_missing(slot, publication)
            if not messages:
                return
            for data in messages:
                if upto is not None and data.startswith(b"B") and final_lsn(data) >= upto:
                    return
                yield data


@contextmanager
def _warnings(connection: Connection[Any]) -> Iterator[list[str | None]]:
    """The codes of the warnings that the server sends meanwhile."""
    codes: list[str | None] = []

    def note(warning: Diagnostic) -> None:
        codes.append(warning.sqlstate)

    connection.add_notice_handler(note)
    try:
        yield codes
    finally:
        connection.remove_notice_handler(note)


def _publication_missing(slot: str, publication: str) -> SourceError:
    # Since PostgreSQL 18 only a warning, and the changes are left out as if there had been none.
    return SourceError(
        "PUBLICATION_MISSING",
        f"slot {slot} holds changes from a time when publication {publication} did not exist, and PostgreSQL leaves "
        "them out; a publication gives only what was changed while it existed; "
        "create it if it is missing, then make the slot anew and read the tables anew.",
    )
