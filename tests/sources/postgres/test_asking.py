"""Questions to PostgreSQL: answers are those of the in-memory evaluator on whole tables, all in one snapshot."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from psycopg import Connection, sql
from psycopg.conninfo import make_conninfo

from strandline.algebra.bag import Row, SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Bag, Change, Filter, Join, Operand, Output, Plan, Project, Scan
from strandline.algebra.scalar import Call, Col, Lit, Text, conjunction, equality
from strandline.algebra.schema import Column, Schema
from strandline.demo.server import PostgresServer
from strandline.errors import SourceError
from strandline.sources.postgres import asking, joins
from strandline.sources.postgres.connect import set_session
from strandline.sources.postgres.source import PostgresSource
from strandline.sources.postgres.visibility import Visible
from strandline.sources.questions import AskedSource, HeldSnapshot, Question, Reply
from tests.conftest import new_database
from tests.sources.postgres.questions import COLUMNS, DDL, GIVEN, UUIDS, VALUES, conditions, rows_of, source, table

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def dsn(server: PostgresServer) -> Iterator[str]:
    with new_database(server) as dsn, pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASKED_DSN", dsn)
        yield dsn


@pytest.fixture(scope="module")
def writer(dsn: str) -> Iterator[Connection[Any]]:
    with psycopg.connect(dsn, autocommit=True) as writer:
        writer.execute(set_session().encode())
        writer.execute(f"CREATE TABLE r ({DDL}); CREATE TABLE s ({DDL}); CREATE INDEX ON s (k)".encode())
        writer.execute("CREATE TABLE big (id int PRIMARY KEY, code uuid UNIQUE, word text, long text, flat char(6))")
        writer.execute(
            "INSERT INTO big SELECT n, md5(n::text)::uuid, 'w' || n % 100, repeat('x', 100), 'w' || n "
            "FROM generate_series(1, 10000) n"
        )
        writer.execute("CREATE INDEX ON big (word); CREATE INDEX ON big (flat)")
        writer.execute("ANALYZE big")
        yield writer


@pytest.fixture(scope="module")
def asked(writer: Connection[Any]) -> Iterator[PostgresSource]:
    asked = source()
    yield asked
    asked.close()


def joined(question: Question) -> Plan:
    columns = {column.name: column for scan in question.scans for column in scan.columns}
    outputs = tuple(Output(columns[name], Col(name)) for name in question.wanted)
    return Project(Join(question.scans, question.conditions), outputs)


def finished(question: Question, reply: Reply) -> SignedBag:
    """The answer, after the conditions that were left to the asker."""
    plan: Plan = Scan(Bag("reply"), "", reply.columns)
    rest = conjunction(reply.left)
    if rest is not None:
        plan = Filter(plan, rest)
    outputs = tuple(Output(column, Col(column.name)) for column in reply.columns[: len(question.wanted)])
    return evaluate(Project(plan, outputs), lambda _: reply.rows)


def filled(writer: Connection[Any], name: str, rows: list[Row]) -> SignedBag:
    columns = ", ".join(column.name for column in COLUMNS)
    placed = ", ".join(["%s"] * len(COLUMNS))
    with writer.transaction(), writer.cursor() as cursor:
        cursor.execute(f"DELETE FROM {name}".encode())
        cursor.executemany(f"INSERT INTO {name} ({columns}) VALUES ({placed})".encode(), rows)
    return SignedBag.of(rows)


@settings(max_examples=40, deadline=None, database=None)
@given(st.data())
def test_answers_are_those_of_the_evaluator_on_whole_tables(
    writer: Connection[Any], asked: PostgresSource, data: st.DataObject
) -> None:
    whole: dict[Operand, SignedBag] = {
        At(f"src.{name}"): filled(writer, name, data.draw(rows_of(VALUES, 5), label=name)) for name in ("r", "s")
    }
    changes: dict[Operand, SignedBag] = {}
    for operand in (Change("src.r", 1, 2), Bag("come")):
        signed = [
            (row, data.draw(st.sampled_from([1, -1, 2]))) for row in data.draw(rows_of(GIVEN, 4), label=str(operand))
        ]
        changes[operand] = SignedBag(signed)
    with asked.hold() as held:
        for _ in range(3):
            operands = data.draw(
                st.lists(st.sampled_from([*whole, *changes]), min_size=1, max_size=3), label="operands"
            )
            scans = tuple(Scan(operand, f"a{n}", COLUMNS) for n, operand in enumerate(operands))
            aliases = [scan.alias for scan in scans]
            names = [column.name for scan in scans for column in scan.columns]
            question = Question(
                scans,
                tuple(data.draw(st.lists(conditions(aliases), max_size=3), label="conditions")),
                tuple(data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4, unique=True), label="wanted")),
                changes,
            )
            reply = held.ask(question)
            assert finished(question, reply) == evaluate(joined(question), lambda o: (whole | changes)[o])


def test_a_source_answers_and_a_snapshot_is_held(asked: PostgresSource) -> None:
    assert isinstance(asked, AskedSource)
    with asked.hold() as held:
        protocol: HeldSnapshot = held
        assert Visible.parse(protocol.seen).xmax > 0


K = equality("g.k", "s.k")
ONE_ROW: dict[Operand, SignedBag] = {Bag("g"): SignedBag([((1, "x"), 1)])}
G = Scan(Bag("g"), "g", (Column("k", "int"), Column("t", "string")))


def test_a_writer_during_a_held_snapshot_does_not_change_its_answers(
    writer: Connection[Any], asked: PostgresSource
) -> None:
    filled(writer, "s", [(1, 5, *[None] * 9)])
    question = Question((G, table("s", "s")), (K,), ("g.t", "s.w"), ONE_ROW)
    with asked.hold() as held:
        first = held.ask(question)
        writer.execute("UPDATE s SET w = 6")
        writer.execute("INSERT INTO s (k, w) VALUES (1, 7)")
        second = held.ask(question)
        with asked.hold() as later:
            third = later.ask(question)
    assert first.rows == second.rows == SignedBag.of([("x", 5)])
    assert third.rows == SignedBag.of([("x", 6), ("x", 7)])


BIG: Schema = (Column("id", "int"), Column("code", "string"), Column("word", "string"), Column("long", "string"))
BIG += (Column("flat", "string"),)


def keys(values: list[Any], type_: str) -> tuple[Scan, dict[Operand, SignedBag]]:
    bag = SignedBag((((value, number)), 1) for number, value in enumerate(values))
    return Scan(Bag("keys"), "g", (Column("v", type_), Column("number", "int"))), {Bag("keys"): bag}


@pytest.mark.parametrize(
    ("column", "type_", "values", "found"),
    [
        ("id", "int", list(range(1, 21)), 20),
        ("id", "bigint", [5, 10**12], 1),
        ("id", "decimal(10,2)", [Decimal("7.00"), Decimal("7.50")], 1),
        ("code", "string", ["c4ca4238-a0b9-2382-0dcc-509a6f75849b", "C4CA4238-A0B9-2382-0DCC-509A6F75849B", "x"], 1),
        ("word", "string", ["w1", "W1", "w2 "], 100),
        ("flat", "string", ["w1", "w2    ", "w3   "], 1),
    ],
)
def test_only_what_is_needed_is_fetched_and_sent(
    writer: Connection[Any], asked: PostgresSource, column: str, type_: str, values: list[Any], found: int
) -> None:
    scan, given = keys(values, type_)
    question = Question(
        (scan, table("big", "big", BIG)), (equality("g.v", f"big.{column}"),), ("g.number", "big.id"), given
    )
    with asked.hold() as held:
        reply = held.ask(question)
    assert (reply.fetched_rows, reply.queries, reply.left) == (found, 1, ())
    assert len(reply.rows) == found
    assert found <= reply.fetched_bytes <= 8 * found
    assert reply.sent_bytes < 400 + 60 * len(values)


@pytest.mark.parametrize(
    ("column", "type_", "values"),
    [
        ("id", "int", list(range(1, 21))),
        ("code", "string", UUIDS),
        ("word", "string", ["w1", "w2"]),
        ("flat", "string", ["w1    "]),
    ],
)
def test_the_server_finds_rows_by_index(
    writer: Connection[Any],
    asked: PostgresSource,
    monkeypatch: pytest.MonkeyPatch,
    column: str,
    type_: str,
    values: list[Any],
) -> None:
    sent: list[tuple[str, list[str]]] = []
    monkeypatch.setattr(
        asking._Traffic, "sent", lambda self, query, arrays: sent.append((query, list(arrays))), raising=True
    )
    scan, given = keys(values, type_)
    with asked.hold() as held:
        held.ask(Question((scan, table("big", "big", BIG)), (equality("g.v", f"big.{column}"),), ("big.id",), given))
    ((query, arrays),) = sent
    plan = "\n".join(row[0] for row in writer.execute(f"EXPLAIN {query}".encode(), arrays))
    assert f"big_{column}" in plan or "big_pkey" in plan, plan
    assert "Seq Scan" not in plan


def test_many_keys_go_in_chunks(
    writer: Connection[Any], asked: PostgresSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joins, "SENT_AT_ONCE", 7)
    scan, given = keys(list(range(1, 31)) * 2, "int")
    other = Scan(Bag("words"), "h", (Column("v", "string"),))
    given[Bag("words")] = SignedBag.of([(f"w{number}",) for number in range(1, 16)])
    conditions = (equality("g.v", "big.id"), equality("h.v", "big.word"))
    question = Question((scan, table("big", "big", BIG), other), conditions, ("g.number", "big.word"), given)
    with asked.hold() as held:
        reply = held.ask(question)
    assert reply.queries == 5 * 3
    assert reply.fetched_rows == 15
    assert reply.rows == SignedBag.of(
        [(number, f"w{value}") for number, value in enumerate(list(range(1, 31)) * 2) if value < 16]
    )


def test_counts_are_multiplied_and_added(writer: Connection[Any], asked: PostgresSource) -> None:
    filled(writer, "s", [(1, 5, *[None] * 9)] * 3 + [(2, 5, *[None] * 9)])
    given: dict[Operand, SignedBag] = {
        Change("src.r"): SignedBag([((1, "a"), 2), ((1, "b"), -1), ((2, "c"), 1), ((2, "d"), -1)])
    }
    delta = Scan(Change("src.r"), "g", G.fields)
    question = Question((delta, table("s", "s")), (K,), ("s.w",), given)
    gone: dict[Operand, SignedBag] = {Change("src.r"): SignedBag([((1, "a"), 1), ((1, "b"), -1)])}
    with asked.hold() as held:
        reply = held.ask(question)
        nothing = held.ask(Question(question.scans, question.conditions, question.wanted, gone))
    assert (nothing.rows, nothing.queries) == (SignedBag(), 0)
    assert reply.rows == SignedBag([((5,), 3)])
    # The rows with key 2 cancel out, so their key is not sent; of three equal rows each comes.
    assert reply.fetched_rows == 3


def test_nothing_given_is_nothing_asked(asked: PostgresSource) -> None:
    question = Question((G, table("gone", "s")), (K,), ("g.t", "s.w"), {Bag("g"): SignedBag()})
    with asked.hold() as held:
        reply = held.ask(question)
    assert (reply.rows, reply.queries, reply.sent_bytes, reply.left) == (SignedBag(), 0, 0, ())
    assert [column.name for column in reply.columns] == ["g.t", "s.w"]


def test_tables_alone_and_a_self_join(writer: Connection[Any], asked: PostgresSource) -> None:
    filled(writer, "r", [(1, 10, *[None] * 9), (1, 20, *[None] * 9), (None, 30, *[None] * 9)])
    question = Question((table("r", "one"), table("r", "other")), (equality("one.k", "other.k"),), ("one.w", "other.w"))
    with asked.hold() as held:
        reply = held.ask(question)
    assert reply.rows == SignedBag.of([(10, 10), (10, 20), (20, 10), (20, 20)])
    assert reply.queries == 1


def test_tables_that_nothing_ties_together_are_asked_for_apart(writer: Connection[Any], asked: PostgresSource) -> None:
    filled(writer, "r", [(n, n, *[None] * 9) for n in range(10)])
    filled(writer, "s", [(n, n, *[None] * 9) for n in range(10)])
    tie = Call("=", (Call("+", (Col("r.k"), Col("s.k"))), Lit(17)))
    question = Question((G, table("r", "r"), table("s", "s")), (tie, equality("g.k", "g.k")), ("r.w", "s.w"), ONE_ROW)
    with asked.hold() as held:
        reply = held.ask(question)
    assert reply.left == (tie,)
    assert [column.name for column in reply.columns] == ["r.w", "s.w", "r.k", "s.k"]
    assert (reply.fetched_rows, len(reply.rows)) == (21, 100)
    assert finished(question, reply) == SignedBag.of([(8, 9), (9, 8)])


def test_what_is_left_comes_with_its_columns(writer: Connection[Any], asked: PostgresSource) -> None:
    filled(writer, "s", [(1, 5, "a", *[None] * 8), (1, 6, "b", *[None] * 8)])
    left = Text(("upper(", Col("s.t"), ") = upper(", Col("g.t"), ")"))
    both = Call("and", (K, left))
    question = Question((G, table("s", "s")), (both,), ("s.w",), ONE_ROW)
    with asked.hold() as held:
        reply = held.ask(question)
    assert reply.left == (left,) == asked.untranslatable(question.scans, question.conditions)
    assert [column.name for column in reply.columns] == ["s.w", "g.t", "s.t"]
    assert reply.rows == SignedBag.of([(5, "x", "a"), (6, "x", "b")])


def test_odd_names(writer: Connection[Any]) -> None:
    odd, column = 'odd "table" %s; --', 'a "b" %(c)s `d`.e'
    writer.execute(sql.SQL("CREATE TABLE {} ({} text)").format(sql.Identifier(odd), sql.Identifier(column)))
    writer.execute(sql.SQL("INSERT INTO {} VALUES ('50%'), ('x')").format(sql.Identifier(odd)))
    asked = source(tables={"there": odd})
    columns = (Column(column, "string"),)
    name = f"x.{column}"
    question = Question((table("there", "x", columns),), (Call("=", (Col(name), Lit("50%"))),), (name,))
    with asked.hold() as held:
        assert held.ask(question).rows == SignedBag.of([("50%",)])
    asked.close()


def test_special_values(writer: Connection[Any]) -> None:
    writer.execute("DROP TABLE IF EXISTS odd; CREATE TABLE odd (id int, n numeric(8,2), d date)")
    writer.execute("INSERT INTO odd VALUES (1, 5, '2024-01-01'), (2, 'NaN', 'infinity'), (3, NULL, NULL)")
    columns = (Column("id", "int"), Column("n", "decimal(8,2)"), Column("d", "date"))
    scan = table("odd", "o", columns)
    five = Call("=", (Col("o.n"), Lit(5)))
    some = Call(">", (Col("o.n"), Lit(4)))
    none = Call("is null", (Col("o.d"),))
    failing, null = source(), source(special_values="null")
    with failing.hold() as held:
        assert held.ask(Question((scan,), (five,), ("o.id",))).rows == SignedBag.of([(1,)])
        assert held.ask(Question((scan,), (none,), ("o.id",))).rows == SignedBag.of([(3,)])
        with pytest.raises(SourceError, match=r"SOURCE_VALUE.*src\.odd\.n: NaN cannot be held"):
            held.ask(Question((scan,), (some,), ("o.id",)))
    with null.hold() as held:
        reply = held.ask(Question((scan,), (five, some, none), ("o.id",)))
        assert reply.left == (some, none)
        assert reply.rows == SignedBag.of([(1, Decimal("5.00"), date(2024, 1, 1))])
        reply = held.ask(Question((scan,), (none,), ("o.id",)))
        assert reply.rows == SignedBag.of([(1, date(2024, 1, 1)), (2, None), (3, None)])
    failing.close()
    null.close()


def test_text_of_another_encoding_is_compared_by_the_asker(
    server: PostgresServer, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with psycopg.connect(dsn, autocommit=True) as maker:
        maker.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    latin = make_conninfo(dsn, dbname="latin")
    with psycopg.connect(latin, autocommit=True) as connection:
        connection.execute("CREATE TABLE s (k int, t text); INSERT INTO s VALUES (1, 'ä')")
    monkeypatch.setenv("ASKED_DSN", latin)
    asked = source()
    same = equality("g.t", "s.t")
    given: dict[Operand, SignedBag] = {Bag("g"): SignedBag.of([(1, "ä"), (1, "€")])}
    question = Question((G, table("s", "s", G.fields)), (K, same), ("g.t", "s.k"), given)
    with asked.hold() as held:
        reply = held.ask(question)
    asked.close()
    with psycopg.connect(dsn, autocommit=True) as maker:
        maker.execute("DROP DATABASE latin WITH (FORCE)")
    assert reply.left == (same,)
    assert finished(question, reply) == SignedBag.of([("ä", 1)])


def test_a_snapshot_from_before_a_truncate_is_lost(writer: Connection[Any], asked: PostgresSource) -> None:
    """It would show an empty table; once a table was asked for, a TRUNCATE waits for us."""
    filled(writer, "s", [(1, 5, *[None] * 9)])
    question = Question((table("s", "s"),), (), ("s.w",))
    with asked.hold() as held:
        writer.execute("TRUNCATE s")
        with pytest.raises(SourceError, match=r"SNAPSHOT_LOST.* s was truncated or written anew") as caught:
            held.ask(question)
        assert caught.value.code == "SNAPSHOT_LOST"
        with pytest.raises(SourceError, match="SNAPSHOT_LOST"):
            held.ask(question)
    filled(writer, "s", [(1, 5, *[None] * 9)])
    with asked.hold() as held, writer.transaction():
        assert held.ask(question).rows == SignedBag.of([(5,)])
        writer.execute("SET LOCAL lock_timeout = '50ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable), writer.transaction():
            writer.execute("TRUNCATE s")
        assert held.ask(question).rows == SignedBag.of([(5,)])


def test_partitions_that_come_and_go(writer: Connection[Any], asked: PostgresSource) -> None:
    writer.execute(
        "CREATE TABLE parted (k int PRIMARY KEY, t text) PARTITION BY RANGE (k);"
        "CREATE TABLE low PARTITION OF parted FOR VALUES FROM (0) TO (10);"
        "CREATE TABLE high PARTITION OF parted FOR VALUES FROM (10) TO (20);"
        "INSERT INTO parted VALUES (1, 'a'), (11, 'b')"
    )
    question = Question((table("parted", "p", G.fields),), (), ("p.t",))
    with asked.hold() as held:
        assert held.ask(question).rows == SignedBag.of([("a",), ("b",)])
    with asked.hold() as held:
        writer.execute("ALTER TABLE parted DETACH PARTITION high")
        with pytest.raises(SourceError, match="SNAPSHOT_LOST"):
            held.ask(question)
    with asked.hold() as held:
        writer.execute("TRUNCATE low")
        with pytest.raises(SourceError, match="SNAPSHOT_LOST"):
            held.ask(question)


def test_a_lost_connection_is_a_lost_snapshot(writer: Connection[Any], asked: PostgresSource) -> None:
    question = Question((table("s", "s"),), (), ("s.w",))
    with asked.hold() as held:
        held.ask(question)
        pid = held._connection.info.backend_pid
        writer.execute("SELECT pg_terminate_backend(%s, 5000)", (pid,))
        with pytest.raises(SourceError) as caught:
            held.ask(question)
    assert caught.value.code == "SNAPSHOT_LOST"
    with asked.hold() as again:
        assert again.ask(question).queries == 1


def test_other_faults_are_told_as_elsewhere(writer: Connection[Any], dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    writer.execute("DROP ROLE IF EXISTS stranger; CREATE ROLE stranger LOGIN PASSWORD 'strange'")
    monkeypatch.setenv("ASKED_DSN", make_conninfo(dsn, user="stranger", password="strange"))
    asked = source()
    with asked.hold() as held, pytest.raises(SourceError) as caught:
        held.ask(Question((table("s", "s"),), (), ("s.w",)))
    assert caught.value.code == "SOURCE_PRIVILEGE"
    asked.close()
    writer.execute("DROP ROLE stranger")


def test_a_column_that_is_gone_or_another_is_named(asked: PostgresSource, writer: Connection[Any]) -> None:
    changed = (Column("k", "bigint"), Column("lost", "string"), Column("t", "string"))
    with asked.hold() as held, pytest.raises(SourceError, match=r"src\.s has no column k, lost any more") as caught:
        held.ask(Question((table("s", "s", changed),), (), ("s.t",)))
    assert caught.value.code == "SOURCE_SCHEMA_CHANGED"
    with asked.hold() as held, pytest.raises(SourceError) as caught:
        held.ask(Question((table("never", "s"),), (), ("s.t",)))
    assert caught.value.code == "SOURCE_TABLE_GONE"


def test_a_large_answer_comes_in_parts(writer: Connection[Any], asked: PostgresSource) -> None:
    question = Question((table("big", "big", BIG),), (), ("big.id", "big.long"))
    with asked.hold() as held:
        reply = held.ask(question)
    assert (reply.fetched_rows, len(reply.rows), reply.queries) == (10_000, 10_000, 1)
    assert reply.fetched_bytes > 1_000_000
