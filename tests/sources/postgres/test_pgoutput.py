from __future__ import annotations

from datetime import UTC, datetime
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.errors import SourceError
from strandline.sources.postgres.pgoutput import (
    UNCHANGED,
    Begin,
    Commit,
    Delete,
    Insert,
    Message,
    Other,
    Relation,
    RelationColumn,
    Truncate,
    Update,
    Value,
    Values,
    decode,
)

OID = 16385


def row(*values: Value) -> bytes:
    """*values* as the server writes them."""
    parts = [pack("!H", len(values))]
    for value in values:
        if value is None:
            parts.append(b"n")
        elif value is UNCHANGED:
            parts.append(b"u")
        else:
            parts.append(b"t" + pack("!I", len(value.encode())) + value.encode())
    return b"".join(parts)


MESSAGES: list[tuple[bytes, Message]] = [
    (
        b"B" + pack("!QqI", 0x16B374D848, 1_000_001, 4_000_000_000),
        Begin(0x16B374D848, datetime(2000, 1, 1, 0, 0, 1, 1, tzinfo=UTC), 4_000_000_000),
    ),
    (
        b"C" + pack("!BQQq", 0, 0x16B374D848, 0x16B374D878, 86_400_000_000),
        Commit(0x16B374D848, 0x16B374D878, datetime(2000, 1, 2, tzinfo=UTC)),
    ),
    (
        b"R"
        + pack("!I", OID)
        + b"public\0items\0d"
        + pack("!H", 2)
        # An int that is the key, and numeric(12, 2).
        + b"\1id\0"
        + pack("!Ii", 23, -1)
        + b"\0pr\xc3\xa9\0"
        + pack("!Ii", 1700, 786438),
        Relation(
            OID,
            "public",
            "items",
            "d",
            (RelationColumn("id", 23, -1, key=True), RelationColumn("pré", 1700, 786438, key=False)),
        ),
    ),
    (b"R" + pack("!I", 1) + b"\0t\0f" + pack("!H", 0), Relation(1, "pg_catalog", "t", "f", ())),
    (b"I" + pack("!I", OID) + b"N" + row("1", None, "", "é"), Insert(OID, ("1", None, "", "é"))),
    (b"I" + pack("!I", OID) + b"N" + row(), Insert(OID, ())),
    (b"U" + pack("!I", OID) + b"N" + row("1", UNCHANGED), Update(OID, None, False, ("1", UNCHANGED))),
    (
        b"U" + pack("!I", OID) + b"K" + row("1", None) + b"N" + row("2", "b"),
        Update(OID, ("1", None), True, ("2", "b")),
    ),
    (
        b"U" + pack("!I", OID) + b"O" + row("1", "a") + b"N" + row("1", "b"),
        Update(OID, ("1", "a"), False, ("1", "b")),
    ),
    (b"D" + pack("!I", OID) + b"K" + row("1", None), Delete(OID, ("1", None), True)),
    (b"D" + pack("!I", OID) + b"O" + row("1", "a"), Delete(OID, ("1", "a"), False)),
    (b"T" + pack("!IBII", 2, 0, 7, 8), Truncate((7, 8), False, False)),
    (b"T" + pack("!IBI", 1, 1, 7), Truncate((7,), True, False)),
    (b"T" + pack("!IBI", 1, 2, 7), Truncate((7,), False, True)),
]

OTHERS = [
    (b"O" + pack("!Q", 1) + b"elsewhere\0", Other("O")),
    (b"Y" + pack("!I", 16390) + b"public\0mood\0", Other("Y")),
    (b"M" + pack("!BQ", 1, 1) + b"prefix\0" + pack("!I", 2) + b"hi", Other("M")),
]


@pytest.mark.parametrize(("data", "message"), [*MESSAGES, *OTHERS])
def test_each_message_is_decoded(data: bytes, message: Message) -> None:
    assert decode(data) == message
    assert decode(memoryview(data)) == message


@pytest.mark.parametrize(("data", "message"), MESSAGES)
def test_a_message_that_breaks_off_is_refused(data: bytes, message: Message) -> None:
    for length in range(1, len(data)):
        with pytest.raises(SourceError) as caught:
            decode(data[:length])
        assert caught.value.code == "UNREADABLE_LOG_MESSAGE", (message, length)


@pytest.mark.parametrize(
    "data",
    [
        b"I" + pack("!I", OID) + b"N" + row("1") + b"\0",
        b"I" + pack("!I", OID) + b"K" + row("1"),
        b"U" + pack("!I", OID) + b"X" + row("1"),
        b"D" + pack("!I", OID) + b"N" + row("1"),
        b"I" + pack("!I", OID) + b"N" + pack("!H", 1) + b"b" + pack("!I", 1) + b"1",
        b"I" + pack("!I", OID) + b"N" + pack("!H", 1) + b"t" + pack("!I", 1) + b"\xe9",
    ],
    ids=["more bytes", "insert of a key", "unknown row", "delete of a new row", "binary value", "not UTF-8"],
)
def test_a_message_of_another_form_is_refused(data: bytes) -> None:
    with pytest.raises(SourceError, match=r"^\[UNREADABLE_LOG_MESSAGE\] a message of kind '[IUD]'"):
        decode(data)


@pytest.mark.parametrize("data", [b"", b"S" + pack("!IB", 1, 1), b"b", b"\xff"])
def test_an_unknown_message_is_refused(data: bytes) -> None:
    with pytest.raises(SourceError) as caught:
        decode(data)
    assert caught.value.code == "UNKNOWN_LOG_MESSAGE"


rows: st.SearchStrategy[Values] = st.lists(st.none() | st.just(UNCHANGED) | st.text()).map(tuple)


@given(st.integers(0, (1 << 32) - 1), rows, rows)
def test_rows_of_all_kinds_come_back(oid: int, old: Values, new: Values) -> None:
    data = b"U" + pack("!I", oid) + b"O" + row(*old) + b"N" + row(*new)
    assert decode(data) == Update(oid, old, False, new)
