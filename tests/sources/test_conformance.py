"""Every source keeps what the protocol promises."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from strandline.algebra.bag import SignedBag
from strandline.algebra.plan import At, Filter, Join, Output, Plan, Project, Scan
from strandline.algebra.scalar import Call, Col, Lit
from strandline.algebra.schema import Column
from strandline.engine.session import Engine
from strandline.errors import SourceError
from strandline.sources.protocol import Position
from tests.conftest import bag, new_database
from tests.sources.conformance import (
    COLUMNS,
    HARNESSES,
    NO_KEY,
    NULLS,
    PLAIN,
    QUOTES,
    TRANSACTIONS,
    WIDE,
    Changes,
    Delete,
    History,
    Insert,
    MemoryHarness,
    Overwrite,
    Replace,
    Transaction,
    Update,
    begin,
    netted,
    read_changes,
    read_snapshots,
)
from tests.sources.files import harness as dumped
from tests.sources.postgres.harness import following

pytestmark = pytest.mark.spark


@pytest.fixture(
    scope="module",
    params=[
        *HARNESSES,
        "files",
        pytest.param("postgres", marks=pytest.mark.postgres),
        pytest.param("jdbc", marks=pytest.mark.postgres),
    ],
)
def history(
    request: pytest.FixtureRequest, small: Engine, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[History]:
    """A table of each kind of source, after all transactions. No test here changes it."""
    folder = tmp_path_factory.mktemp("source")
    if request.param == "postgres":
        with following(request.getfixturevalue("own_database"), folder / "project", small) as harness:
            yield begin(harness).run(TRANSACTIONS)
    elif request.param == "files":
        with dumped.files(folder, small) as dumps:
            yield begin(dumps).run(TRANSACTIONS)
    elif request.param == "jdbc":
        with new_database(request.getfixturevalue("server")) as dsn, dumped.jdbc(dsn, folder, small) as dumps:
            yield begin(dumps).run(TRANSACTIONS)
    else:
        yield begin(HARNESSES[request.param](small, folder)).run(TRANSACTIONS)


@pytest.fixture(scope="module")
def changes(small: Engine, history: History) -> Changes:
    """What changed, between two positions."""
    return read_changes(small, history, history.read_pairs)


@pytest.fixture(scope="module")
def changes_again(small: Engine, history: History, changes: Changes) -> Changes:
    """Some of the changes, read again after they were acknowledged."""
    last = len(history.positions) - 1
    for position in (history.positions[-1], history.positions[-1], history.positions[2]):
        history.source.acknowledge("t", position)
    return read_changes(small, history, [(0, last), (last - 1, last)])


def test_snapshots_are_the_rows_that_were_there(small: Engine, history: History) -> None:
    expected = {place: bag(history.states[place]) for place in history.read_places}
    assert read_snapshots(small, history, history.read_places) == expected


def test_changes_lead_from_one_position_to_any_later_one(history: History, changes: Changes) -> None:
    for (first, last), rows in changes.items():
        assert bag(history.states[first]) + netted(rows) == bag(history.states[last]), (first, last)


def test_changes_of_adjacent_intervals_add_up(changes: Changes) -> None:
    for first, last in changes:
        for between in range(first, last + 1):
            if (first, between) in changes and (between, last) in changes:
                parts = netted(changes[first, between]) + netted(changes[between, last])
                assert parts == netted(changes[first, last]), (first, between, last)


def test_changed_rows_carry_a_sign_and_a_position_inside_the_interval(history: History, changes: Changes) -> None:
    for (first, last), rows in changes.items():
        inside = range(_place(history.positions[first]) + 1, _place(history.positions[last]) + 1)
        assert all(sign in (1, -1) and position in inside for _, sign, position in rows), (first, last)


def test_an_empty_interval_has_no_changes(history: History, changes: Changes) -> None:
    for place, position in enumerate(history.positions):
        assert changes.get((place, place), []) == []
        peek = history.source.peek("t", position, position)
        assert peek.transactions == () and not peek.changes_data and peek.gap is None


def test_repeating_a_call_gives_the_same(history: History, changes: Changes, changes_again: Changes) -> None:
    last = len(history.positions) - 1
    for pair, rows in changes_again.items():
        assert bag(rows) == bag(changes[pair])
    assert history.source.peek("t", history.positions[0], history.positions[last]) == history.source.peek(
        "t", history.positions[0], history.positions[last]
    )


def test_only_the_columns_that_are_asked_for_are_read(small: Engine, history: History) -> None:
    some = (COLUMNS[6], COLUMNS[0])
    last = len(history.positions) - 1
    found = read_changes(small, history, [(1, last)], some)[1, last]
    expected = [bag((row[6], row[0]) for row in history.states[place]) for place in (1, last)]
    assert netted(found) == expected[1] - expected[0]


def test_transactions_come_in_commit_order(history: History) -> None:
    for first, last in history.pairs:
        peek = history.source.peek("t", history.positions[first], history.positions[last])
        assert peek.gap is None
        assert len(peek.transactions) == last - first
        for number, transaction in enumerate(peek.transactions, first):
            assert history.harness.leads_to(transaction.position, *history.positions[number : number + 2])
        assert all(t.changes_data and t.columns is None for t in peek.transactions)
        assert len({t.txid for t in peek.transactions}) == last - first
        times = [t.committed_at for t in peek.transactions]
        assert all(isinstance(time, datetime) and time.tzinfo is not None for time in times)
        assert times == sorted(time for time in times if time is not None)
        assert peek.changes_data is (first != last)


def test_insert_only_means_that_nothing_was_deleted(history: History, changes: Changes) -> None:
    for first, last in history.pairs:
        peek = history.source.peek("t", history.positions[first], history.positions[last])
        if peek.insert_only and (first, last) in changes:
            assert all(sign == 1 for _, sign, _ in changes[first, last]), (first, last)
    assert history.source.peek("t", history.positions[0], history.positions[2]).insert_only
    for first, last in ((2, 3), (3, 4), (4, 5), (0, 5)):
        assert not history.source.peek("t", history.positions[first], history.positions[last]).insert_only


def test_a_peek_counts_inserted_rows(history: History) -> None:
    assert history.source.peek("t", history.positions[0], history.positions[2]).rows == 7


def test_sizes_are_those_of_the_position(history: History) -> None:
    for place in (0, 1, 2):
        assert history.source.size("t", history.positions[place]).rows == len(history.states[place])


def test_reading_does_not_move_the_position(history: History, changes: Changes) -> None:
    assert history.harness.position() == history.positions[-1]
    assert history.harness.position() == history.positions[-1]
    assert not history.source.peek("t", history.positions[-1], history.source.position("t")).changes_data


def test_acknowledging_can_be_repeated(history: History, changes_again: Changes) -> None:
    assert history.harness.position() == history.positions[-1]
    last = len(history.positions) - 1
    assert netted(changes_again[last - 1, last]) == bag(history.states[last]) - bag(history.states[last - 1])


def test_tables_are_listed_with_their_columns(history: History) -> None:
    history.source.check()
    listed = history.source.tables()
    assert list(listed) == ["t"]
    assert listed["t"].name == "t" and listed["t"].columns == COLUMNS


def test_a_query_is_answered_at_exactly_the_positions_it_returns(small: Engine, history: History) -> None:
    plan: Plan = Project(
        Filter(
            Join((_scan("a"), _scan("b")), (Call("=", (Col("a.k"), Col("b.k"))),)),
            Call("<", (Col("a.k"), Lit(100))),
        ),
        (Output(Column("k", "bigint"), Col("a.k")), Output(Column("other", "string"), Col("b.odd name"))),
    )
    answer = history.source.query(plan)
    assert answer.positions == {"src.t": history.positions[-1]}
    rows = history.states[-1]
    expected = [(a[0], b[6]) for a in rows for b in rows if a[0] is not None and a[0] == b[0] and a[0] < 100]
    assert bag(small.rows(answer.sql)) == bag(expected)


def test_an_unknown_table_is_refused_by_naming_what_exists(history: History) -> None:
    with pytest.raises(SourceError) as error:
        history.source.position("orders")
    assert error.value.code in ("UNKNOWN_TABLE", "SOURCE_TABLE_GONE")
    assert "src" in error.value.message and "orders" in error.value.message
    assert "has t." in error.value.message


def test_an_answer_does_not_move_with_the_table(small: Engine, tmp_path: Path) -> None:
    for make in (HARNESSES["memory"], HARNESSES["delta-with-feed"]):
        history = begin(make(small, tmp_path)).run([Insert((PLAIN, NULLS))])
        answer = history.source.query(_scan(""))
        history.run([Delete(1)])
        assert answer.positions == {"src.t": history.positions[1]}
        assert bag(small.rows(answer.sql)) == bag([PLAIN, NULLS])


def test_tables_of_memory_have_positions_of_their_own() -> None:
    harness = MemoryHarness()
    harness.source.create("other", COLUMNS[:1], key=["k"])
    harness.run(Insert((PLAIN,)))
    assert (harness.source.position("t"), harness.source.position("other")) == (1, 0)
    assert harness.source.tables()["other"].key == ("k",)


def test_memory_refuses_to_delete_what_is_not_there() -> None:
    harness = MemoryHarness()
    with pytest.raises(ValueError, match=r"src\.t does not hold all rows"):
        harness.source.commit("t", deleted=[PLAIN])
    with pytest.raises(SourceError, match=r"\[UNKNOWN_TABLE\] source src has no table orders; it has t\."):
        harness.source.commit("orders", [PLAIN])


# Few keys and few rows, so that transactions meet each other's rows.
KEYS = st.sampled_from([1, 2, 3])
SOME_ROWS = st.lists(st.sampled_from([PLAIN, QUOTES, NULLS, WIDE, NO_KEY]), min_size=1, max_size=4).map(tuple)
RANDOM: st.SearchStrategy[Transaction] = st.one_of(
    st.builds(Insert, SOME_ROWS),
    st.builds(Delete, KEYS),
    st.builds(Update, KEYS, st.sampled_from(["it's", "\\", ""])),
    st.builds(Replace, st.lists(KEYS, min_size=1, max_size=2, unique=True).map(tuple), SOME_ROWS),
    st.builds(Overwrite, SOME_ROWS),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(transactions=st.lists(RANDOM, min_size=1, max_size=6))
def test_any_history_of_a_memory_table_can_be_replayed(small: Engine, transactions: list[Transaction]) -> None:
    history = begin(MemoryHarness()).run(transactions)
    assert_replayed(small, history, [(0, len(transactions)), (len(transactions) // 2, len(transactions))])


def assert_replayed(engine: Engine, history: History, pairs: list[tuple[int, int]]) -> None:
    """Changes over *pairs* lead from one state to the other, and insert_only is no lie."""
    for (first, last), rows in read_changes(engine, history, pairs).items():
        assert bag(history.states[first]) + netted(rows) == bag(history.states[last])
        peek = history.source.peek("t", history.positions[first], history.positions[last])
        assert peek.gap is None
        assert peek.changes_data or netted(rows) == SignedBag()
        assert not peek.insert_only or all(sign == 1 for _, sign, _ in rows)


def _place(position: Position) -> int:
    """A position as the number that changed rows carry."""
    number = position.get("version", position.get("place")) if isinstance(position, dict) else position
    assert isinstance(number, int)
    return number


def _scan(alias: str) -> Scan:
    return Scan(At("src.t"), alias, COLUMNS)
