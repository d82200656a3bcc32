"""From messages to log entries, where the table is not what it was when they were written."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from strandline.sources.postgres.arrays import as_json
from strandline.sources.postgres.entries import Followed, entries
from strandline.sources.postgres.pgoutput import Begin, Commit, Insert, Message, Relation, RelationColumn, Truncate
from strandline.sources.postgres.visibility import Visible
from strandline.sources.protocol import Begun, Ended, Entry, LogEvent, Unloggable, Wanted

INT, TEXT, TEXTS = 23, 25, 1009
NOW = Visible(100, 100, frozenset())
THEN = datetime(2024, 1, 1, tzinfo=UTC)

TABLE = Relation(7, "public", "t", "d", (RelationColumn("id", INT, -1, True), RelationColumn("v", TEXTS, -1, False)))
FOLLOWED = Followed("t", 7, ("public", "t"), Wanted(("id", "v"), ("id",), {}), (None, as_json), (INT, TEXTS))


def logged(followed: Followed, *messages: Message, place: int = 10) -> list[LogEvent]:
    """What one transaction, committed at 10, gives from *place* on."""
    whole = [Begin(10, THEN, 50), *messages, Commit(10, 11, THEN)]
    return list(entries(whole, [followed], place, NOW))


def test_a_table_is_known_under_another_name() -> None:
    moved = replace(TABLE, schema="attic", table="old")
    assert logged(FOLLOWED, moved, Insert(7, ("1", "{a,b}"))) == [
        Begun(10, 50, THEN),
        Entry("t", "I", ["1", '["a","b"]']),
        Ended(),
    ]


def test_another_table_of_the_name_is_not_taken_for_it() -> None:
    events = logged(FOLLOWED, replace(TABLE, oid=8), Insert(8, ("1", "{}")), Insert(8, ("2", "{}")))
    assert [event.reason.code for event in events if isinstance(event, Unloggable)] == ["SOURCE_TABLE_REPLACED"]


def test_a_table_that_is_not_to_be_found_has_to_be_read_anew() -> None:
    away = Followed("t", 7, None, FOLLOWED.wanted)
    events = logged(away, TABLE, Insert(7, ("1", "{}")), Truncate((7,), False, False))
    assert [event.reason.text for event in events if isinstance(event, Unloggable)] == [
        "t was not to be found for a while"
    ]


def test_a_value_of_another_type_is_not_taken_for_an_array() -> None:
    before = replace(TABLE, columns=(TABLE.columns[0], RelationColumn("v", TEXT, -1, False)))
    events = logged(FOLLOWED, before, Insert(7, ("1", "no { array")))
    assert [event.reason.text for event in events if isinstance(event, Unloggable)] == [
        "v of t had another type for a while"
    ]


def test_what_was_taken_in_before_is_passed_over() -> None:
    assert logged(FOLLOWED, TABLE, Insert(7, ("1", "{}")), place=11) == []
