"""The statements: what each form says, and where an error stands."""

from __future__ import annotations

import re
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strandline.errors import Origin, SqlError, StrandlineError
from strandline.sql.create_text import ViewOptions, create_text
from strandline.sql.ddl import parse, parse_select
from strandline.sql.schedule import Schedule
from strandline.sql.statements import (
    CreateView,
    DescribeView,
    DropView,
    ExplainCreate,
    ExplainRefresh,
    Query,
    RefreshView,
    Statement,
)

# --- What the forms say

CLAUSES = (
    "COMMENT 'it is \\'so\\''",
    "CLUSTER BY (a, `b c`)",
    "TBLPROPERTIES ('k.l' = 'v', m.n = 1, o = 'p')",
    "REFRESH POLICY INCREMENTAL STRICT",
    "CONSISTENCY CONVERGENT",
    "WITH NO DATA",
)


def create(text: str) -> CreateView:
    statement = parse(text)
    assert isinstance(statement, CreateView)
    return statement


def test_a_view_is_created_with_defaults() -> None:
    view = create("CREATE MATERIALIZED VIEW v AS SELECT 1 AS one")
    assert view == CreateView("v", view.query, Origin("<sql>", 1, 1))
    assert view.query.sql == "SELECT 1 AS one"
    assert (view.policy, view.consistency) == ("AUTO", "STRONG")


def test_clauses_stand_in_any_order() -> None:
    views = []
    for order in permutations(CLAUSES):
        view = create(f"CREATE MATERIALIZED VIEW v {' '.join(order)} AS SELECT a FROM t")
        assert view.query.sql == "SELECT a FROM t"
        views.append((view.comment, view.cluster_by, view.properties, view.policy, view.consistency, view.with_no_data))
    (only,) = set(views)
    properties = (("k.l", "v"), ("m.n", "1"), ("o", "p"))
    assert only == ("it is 'so'", ("a", "b c"), properties, "INCREMENTAL STRICT", "CONVERGENT", True)


@pytest.mark.parametrize("policy", ["AUTO", "INCREMENTAL", "INCREMENTAL STRICT", "FULL"])
def test_every_policy_is_known(policy: str) -> None:
    assert create(f"CREATE MATERIALIZED VIEW v REFRESH POLICY {policy} AS SELECT 1").policy == policy


@pytest.mark.parametrize(
    ("written", "shown", "seconds"),
    [
        ("EVERY 5 MINUTES", "EVERY 5 MINUTES", 300),
        ("every 1 minute", "EVERY 1 MINUTE", 60),
        ("EVERY 01 DAYS", "EVERY 1 DAY", 86_400),
        ("EVERY 90 SECOND", "EVERY 90 SECONDS", 90),
        ("EVERY 2 hours", "EVERY 2 HOURS", 7_200),
    ],
)
def test_a_schedule_is_a_number_of_units(written: str, shown: str, seconds: int) -> None:
    schedule = create(f"CREATE MATERIALIZED VIEW v SCHEDULE {written} COMMENT 'x' AS SELECT 1").schedule
    assert schedule is not None
    assert (str(schedule), schedule.seconds, Schedule.parse(str(schedule))) == (shown, seconds, schedule)


def test_a_view_follows_changes_unless_it_has_a_schedule() -> None:
    assert create("CREATE MATERIALIZED VIEW v AS SELECT 1").schedule is None


def test_a_schedule_given_in_python_is_part_of_the_statement() -> None:
    text = create_text("v", "SELECT 1", ViewOptions(schedule="5 minutes"))
    assert "SCHEDULE EVERY 5 MINUTES" in text and str(create(text).schedule) == "EVERY 5 MINUTES"
    with pytest.raises(SqlError, match="'often' is no schedule"):
        create_text("v", "SELECT 1", ViewOptions(schedule="often"))


@pytest.mark.parametrize("level", ["CONVERGENT", "STRONG"])
def test_levels_of_consistency_are_known(level: str) -> None:
    assert create(f"CREATE MATERIALIZED VIEW v CONSISTENCY {level.lower()} AS SELECT 1").consistency == level


def test_or_replace_and_if_not_exists() -> None:
    assert create("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1").or_replace
    assert not create("CREATE OR REPLACE MATERIALIZED VIEW v AS SELECT 1").if_not_exists
    assert create("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1").if_not_exists
    assert not create("CREATE MATERIALIZED VIEW IF NOT EXISTS v AS SELECT 1").or_replace


@pytest.mark.parametrize(
    ("text", "statement"),
    [
        ("REFRESH MATERIALIZED VIEW v", RefreshView("v")),
        ("REFRESH MATERIALIZED VIEW v FULL", RefreshView("v", full=True)),
        ("REFRESH MATERIALIZED VIEW full", RefreshView("full")),
        ("REFRESH MATERIALIZED VIEW `full` FULL", RefreshView("full", full=True)),
        ("EXPLAIN MATERIALIZED VIEW v", ExplainRefresh("v")),
        ("EXPLAIN REFRESH MATERIALIZED VIEW v", ExplainRefresh("v")),
        ("DROP MATERIALIZED VIEW v", DropView("v")),
        ("DROP MATERIALIZED VIEW IF EXISTS v", DropView("v", if_exists=True)),
        ("DESCRIBE MATERIALIZED VIEW v", DescribeView("v")),
        ("DESC MATERIALIZED VIEW v", DescribeView("v")),
    ],
)
def test_other_statements(text: str, statement: Statement) -> None:
    assert parse(text) == statement
    assert parse(text.lower()) == statement
    assert parse(f"  /* a */\n{text}  -- b\n;;") == statement
    assert parse(" /* c */\n".join(text.split(" "))) == statement


def test_explaining_a_create_keeps_its_positions() -> None:
    explained = parse("-- first\nEXPLAIN\n CREATE MATERIALIZED VIEW v COMMENT 'c' AS\n  SELECT a FROM t;", "v.sql")
    assert isinstance(explained, ExplainCreate)
    assert explained.create.origin == Origin("v.sql", 3, 2)
    assert explained.create.query.sql == "SELECT a FROM t"
    assert (explained.create.name, explained.create.comment) == ("v", "c")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT a FROM t",
        "select 1",
        "WITH c AS (SELECT 1 AS a) SELECT a FROM c",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "FROM t SELECT a",
        "SELECT a -- one;\nFROM t /* two; */ WHERE b = ';'",
    ],
)
def test_queries_are_statements_as_they_are_written(text: str) -> None:
    for around in ("{}", "{};", "{} ; ; ", "{} -- the end", "{}; -- the end", "\n/* x */ {} /* y */\n", "{}\n;\n--\n"):
        statement = parse(around.format(text))
        assert isinstance(statement, Query)
        assert statement.sql == text
        assert create(f"CREATE MATERIALIZED VIEW v AS {around.format(text)}").query.sql == text


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("v", "v"),
        ("V_1", "V_1"),
        ("__v", "__v"),
        ("ümlaut", "ümlaut"),
        ("date", "date"),
        ("`my view`", "my view"),
        ("`my-view`", "my-view"),
        ("`select`", "select"),
        ("`1st`", "1st"),
    ],
)
def test_names_are_kept(written: str, name: str) -> None:
    assert create(f"CREATE MATERIALIZED VIEW {written} AS SELECT 1").name == name
    assert parse(f"DROP MATERIALIZED VIEW {written}") == DropView(name)
    assert parse(f"REFRESH MATERIALIZED VIEW {written} FULL") == RefreshView(name, full=True)


def test_the_file_goes_with_the_statement() -> None:
    assert create("CREATE MATERIALIZED VIEW v AS SELECT 1").query.file == "<sql>"
    view = parse("\n\n  CREATE MATERIALIZED VIEW v AS SELECT 1", "views/v.sql")
    assert isinstance(view, CreateView)
    assert (view.query.file, view.origin) == ("views/v.sql", Origin("views/v.sql", 3, 3))


def test_only_a_query_is_a_query() -> None:
    assert parse_select("SELECT 1;").sql == "SELECT 1"
    with pytest.raises(SqlError, match=r"v\.sql:1:1: \[NOT_A_QUERY\] a SELECT is wanted here\."):
        parse_select("DROP MATERIALIZED VIEW v", "v.sql")


# --- Errors: place, line and words


def error(text: str) -> SqlError:
    with pytest.raises(SqlError) as raised:
        parse(text, "v.sql")
    return raised.value


@pytest.mark.parametrize(
    ("text", "line", "column", "mark", "message"),
    [
        ("CREATE VIEW v AS SELECT 1", 1, 8, "VIEW", "near 'VIEW': expected MATERIALIZED VIEW."),
        ("CREATE MATERIALIZED\nTABLE v AS SELECT 1", 1, 8, "MATERIALIZED", "expected MATERIALIZED VIEW"),
        ("CREATE MATERIALIZED VIEW", 1, 21, "VIEW", "near the end: the name of a view is missing."),
        ("CREATE MATERIALIZED VIEW 1v AS SELECT 1", 1, 26, "1v", "the name of a view is missing"),
        ("CREATE MATERIALIZED VIEW shop.v AS SELECT 1", 1, 30, ".", "the name of a view has one part"),
        ("CREATE MATERIALIZED VIEW\n  `a.b` AS SELECT 1", 2, 3, "`a.b`", "letters, digits, _, - and spaces only"),
        ("CREATE MATERIALIZED VIEW `Block x` AS SELECT 1", 1, 26, "`Block x`", "are kept for hidden blocks"),
        ("CREATE MATERIALIZED VIEW `` AS SELECT 1", 1, 26, "``", "letters, digits, _, - and spaces only"),
        ("CREATE MATERIALIZED VIEW v (a) AS SELECT 1", 1, 28, "(", "expected COMMENT, CLUSTER BY, TBLPROPERTIES"),
        ("CREATE MATERIALIZED VIEW v", 1, 26, "v", "near the end: expected COMMENT"),
        ("CREATE MATERIALIZED VIEW v AS", 1, 28, "AS", "near the end: a SELECT is missing."),
        ("CREATE MATERIALIZED VIEW v AS ;", 1, 28, "AS", "near the end: a SELECT is missing."),
        ("CREATE MATERIALIZED VIEW v\nCOMMENT x AS SELECT 1", 2, 9, "x", "a comment is a string between quotes"),
        ("CREATE MATERIALIZED VIEW v CLUSTER BY a AS SELECT 1", 1, 39, "a", "expected (."),
        ("CREATE MATERIALIZED VIEW v CLUSTER BY () AS SELECT 1", 1, 40, ")", "a column name is missing"),
        ("CREATE MATERIALIZED VIEW v CLUSTER BY (a b) AS SELECT 1", 1, 42, "b", "expected )."),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES ('a' 'b') AS SELECT 1", 1, 47, "'b'", "expected =."),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES (a = ) AS SELECT 1", 1, 47, ")", "a property value is missing"),
        ("CREATE MATERIALIZED VIEW v TBLPROPERTIES (a = 1", 1, 47, "1", "near the end: expected ,."),
        ("CREATE MATERIALIZED VIEW v REFRESH POLICY NOW AS SELECT 1", 1, 43, "NOW", "a refresh policy is AUTO,"),
        ("CREATE MATERIALIZED VIEW v CONSISTENCY WEAK AS SELECT 1", 1, 40, "WEAK", "a consistency level is CONVERGENT"),
        ("CREATE MATERIALIZED VIEW v SCHEDULE 5 MINUTES AS SELECT 1", 1, 37, "5", "expected EVERY."),
        ("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 0 DAYS AS SELECT 1", 1, 43, "0", "a whole number from 1 on"),
        ("CREATE MATERIALIZED VIEW v SCHEDULE EVERY 2 WEEKS AS SELECT 1", 1, 43, "2", "MINUTES, HOURS or DAYS"),
        ("CREATE MATERIALIZED VIEW v SCHEDULE EVERY", 1, 37, "EVERY", "near the end: a number is missing."),
        ("CREATE MATERIALIZED VIEW v WITH NO DATE AS SELECT 1", 1, 28, "WITH", "expected COMMENT"),
        ("CREATE MATERIALIZED VIEW v AS\nSELECT a\n  FROM WHERE", 3, 8, "WHERE", "parsed near 'WHERE'"),
        ("SELECT a,\n  (b FROM t", 2, 6, "FROM", "parsed near 'FROM': Expecting )."),
        ("SELECT a FROM t WITH NO DATA", 1, 17, "WITH", "parsed near 'WITH'"),
        ("REFRESH MATERIALIZED VIEW v FULL now", 1, 34, "now", "unexpected 'now' after the statement"),
        ("REFRESH TABLE t", 1, 1, "REFRESH", "this statement is not known; the statements are CREATE | REFRESH"),
        ("DROP MATERIALIZED VIEW", 1, 19, "VIEW", "near the end: the name of a view is missing."),
        ("DESCRIBE v", 1, 1, "DESCRIBE", "this statement is not known"),
        ("\n  SHOW TABLES", 2, 3, "SHOW", "this statement is not known"),
        ("EXPLAIN SELECT 1", 1, 9, "SELECT", "expected MATERIALIZED VIEW"),
        ("EXPLAIN\nCREATE TABLE t (a int)", 2, 8, "TABLE", "expected MATERIALIZED VIEW"),
    ],
)
def test_an_error_shows_its_place(text: str, line: int, column: int, mark: str, message: str) -> None:
    found = error(text)
    assert found.code == "SQL_SYNTAX"
    assert message in found.message
    assert found.origin == Origin("v.sql", line, column)
    shown = text.splitlines()[line - 1]
    assert shown[column - 1 :].startswith(mark)
    assert found.excerpt == f"    {shown}\n    {' ' * (column - 1)}{'^' * len(mark)}"
    assert str(found) == f"v.sql:{line}:{column}: [SQL_SYNTAX] {found.message}\n{found.excerpt}"


@pytest.mark.parametrize("text", ["", "  \n", ";", "-- nothing", "/* nothing */;", "EXPLAIN", "EXPLAIN;"])
def test_a_text_without_a_statement(text: str) -> None:
    assert str(error(text)) == "v.sql:1:1: [SQL_SYNTAX] the text holds no statement."


@pytest.mark.parametrize(
    "text", ["SELECT 'a", "SELECT `a", "SELECT 1 /* a", "CREATE MATERIALIZED VIEW v COMMENT 'a AS"]
)
def test_what_does_not_end(text: str) -> None:
    found = error(text)
    assert found.code == "SQL_SYNTAX" and "check quotes and comments" in found.message


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("INSERT INTO t VALUES (1)", "INSERT"),
        ("VALUES (1)", "VALUES"),
        ("SELECT 1; SELECT 2", "several statements"),
        ("DELETE FROM t", "DELETE"),
    ],
)
def test_a_view_is_one_query(query: str, found: str) -> None:
    raised = error(f"CREATE MATERIALIZED VIEW v AS\n  {query}")
    assert (raised.code, raised.origin) == ("NOT_A_QUERY", Origin("v.sql", 2, 3))
    assert f"a view is defined by one SELECT, found {found};" in raised.message


def test_a_query_that_is_nested_too_deeply() -> None:
    found = error(f"SELECT {'(' * 5000}1{')' * 5000}")
    assert found.code == "SQL_SYNTAX" and "nested too deeply" in found.message


@pytest.mark.parametrize(
    ("text", "column", "what", "instead"),
    [
        ("REFRESH MATERIALIZED VIEW v TO TIMESTAMP '2026-01-01'", 32, "REFRESH ... TO TIMESTAMP", "the newest state"),
        ("REFRESH MATERIALIZED VIEW v FULL TO TIMESTAMP '2026-01-01'", 37, "REFRESH ... TO", "the newest state"),
        ("ALTER MATERIALIZED VIEW v SET TBLPROPERTIES (a = 1)", 20, "ALTER MATERIALIZED VIEW", "CREATE OR REPLACE"),
        ("EXPIRE FROM t WHERE day < '2020-01-01'", 8, "EXPIRE", "retention"),
    ],
)
def test_what_is_understood_and_not_yet_done(text: str, column: int, what: str, instead: str) -> None:
    found = error(text)
    assert (found.code, found.origin) == ("NOT_YET_AVAILABLE", Origin("v.sql", 1, column))
    assert found.message.startswith(f"{what}") and "this version cannot do it" in found.message
    assert instead in found.message


# --- Whatever is written, an error is one of ours

STATEMENTS = (
    f"CREATE OR REPLACE MATERIALIZED VIEW IF NOT EXISTS `my view` {' '.join(CLAUSES)} AS SELECT a, b FROM s.t;",
    "EXPLAIN CREATE MATERIALIZED VIEW v SCHEDULE EVERY 5 MINUTES CONSISTENCY COMPLETE AS WITH c AS (SELECT 1) FROM c",
    "REFRESH MATERIALIZED VIEW v FULL TO TIMESTAMP '2026-01-01'",
    "EXPLAIN REFRESH MATERIALIZED VIEW v",
    "DROP MATERIALIZED VIEW IF EXISTS v",
    "ALTER MATERIALIZED VIEW v SET x",
    "EXPIRE FROM t WHERE a < 1",
    "SELECT a, sum(b) FILTER (WHERE c > 1) OVER (PARTITION BY d ORDER BY e ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) "
    "FROM t JOIN u USING (k) LATERAL VIEW explode(x) y AS z WHERE a IN (SELECT 1) GROUP BY ROLLUP (a) "
    "HAVING count(*) > 1 ORDER BY 1 DESC NULLS LAST LIMIT 3",
    "WITH RECURSIVE c(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM c) SELECT * EXCEPT (a) FROM c "
    "TABLESAMPLE (1 PERCENT) PIVOT (sum(a) FOR b IN (1, 2))",
    "SELECT CASE a WHEN 1 THEN CAST(b AS DECIMAL(3, 2)) ELSE INTERVAL '1' DAY END, f(x -> x + 1), a[1]:b::int, "
    "DATE '2020-01-01', -- why\n t.* FROM VALUES (1, 'x') AS t(a, `b c`) NATURAL FULL OUTER JOIN u",
)
TOKENS = tuple(re.findall(r"\w+|\s+|'[^']*'|`[^`]*`|.", " ".join(STATEMENTS), re.DOTALL))
PIECES = st.one_of(st.sampled_from(sorted(set(TOKENS))), st.text(max_size=3))


@st.composite
def mutated(draw: st.DrawFn) -> str:
    """A statement that was cut off, or lost, gained or changed some tokens."""
    tokens = re.findall(r"\w+|\s+|'[^']*'|`[^`]*`|.", draw(st.sampled_from(STATEMENTS)), re.DOTALL)
    for _ in range(draw(st.integers(1, 3))):
        place = draw(st.integers(0, len(tokens)))
        match draw(st.sampled_from(["cut", "insert", "remove", "replace"])):
            case "cut":
                del tokens[place:]
            case "insert":
                tokens.insert(place, draw(PIECES))
            case "remove":
                del tokens[place : place + 1]
            case "replace":
                tokens[place : place + 1] = [draw(PIECES)]
    return "".join(tokens)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.one_of(mutated(), st.lists(PIECES, max_size=25).map(" ".join), st.text()))
def test_any_text_is_a_statement_or_an_error_of_ours(text: str) -> None:
    try:
        parse(text, "v.sql")
    except StrandlineError as raised:
        assert raised.origin is not None and raised.origin.file == "v.sql"
        assert str(raised) and raised.to_dict()["code"] == raised.code
