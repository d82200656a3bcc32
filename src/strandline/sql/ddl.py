"""The parser of the statements: a small one for the headers, sqlglot's for the queries inside."""

from __future__ import annotations

from typing import NoReturn

from sqlglot.tokenizer_core import Token, TokenType

from strandline.errors import Origin, SqlError
from strandline.sql.schedule import Schedule
from strandline.sql.spans import excerpt, parse_query, position, tokenize
from strandline.sql.statements import (
    Consistency,
    CreateView,
    DescribeView,
    DropView,
    ExplainCreate,
    ExplainRefresh,
    Policy,
    Query,
    RefreshView,
    Statement,
)

_QUERY_STARTS = ("SELECT", "WITH", "VALUES", "(", "FROM")


def parse(text: str, file: str = "<sql>") -> Statement:
    """The one statement that *text* holds."""
    return _Header(text, file).statement()


def parse_select(text: str, file: str = "<sql>") -> Query:
    """The one query that *text* holds."""
    statement = parse(text, file)
    if not isinstance(statement, Query):
        raise SqlError("NOT_A_QUERY", "a SELECT is wanted here.", origin=Origin(file))
    return statement


class _Header:
    """A cursor over the tokens of one statement."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.tokens = tokenize(text, file)
        self.explained = bool(self.tokens) and self.tokens[0].text.upper() == "EXPLAIN"
        if self.explained:
            # The tokenizer takes all after EXPLAIN as one string; blank the word out and keep the positions.
            start = self.tokens[0].start
            blank = " " * len("EXPLAIN")
            self.tokens = tokenize(text[:start] + blank + text[start + len(blank) :], file)
        while self.tokens and self.tokens[-1].token_type == TokenType.SEMICOLON:
            self.tokens.pop()
        self.at = 0

    def statement(self) -> Statement:
        if not self.tokens:
            raise SqlError("SQL_SYNTAX", "the text holds no statement.", origin=Origin(self.file))
        if self.explained:
            result: Statement = self._explain()
        elif self._peek() in _QUERY_STARTS:
            return self._query()
        else:
            result = self._command()
        if self.at < len(self.tokens):
            self._fail(f"unexpected {self.tokens[self.at].text!r} after the statement")
        return result

    def _command(self) -> Statement:
        if self._peek() == "CREATE":
            return self._create()
        if self._take("REFRESH", "MATERIALIZED", "VIEW"):
            return self._refresh()
        if self._take("DROP", "MATERIALIZED", "VIEW"):
            if_exists = self._take("IF", "EXISTS")
            return DropView(self._name(), if_exists)
        if self._take("DESCRIBE", "MATERIALIZED", "VIEW") or self._take("DESC", "MATERIALIZED", "VIEW"):
            return DescribeView(self._name())
        if self._take("ALTER", "MATERIALIZED", "VIEW"):
            self._not_yet("ALTER MATERIALIZED VIEW", "use CREATE OR REPLACE, or edit the view's file")
        if self._take("EXPIRE", "FROM"):
            self._not_yet("EXPIRE", "old states are kept until their retention ends")
        self._fail(
            "this statement is not known; the statements are CREATE | REFRESH | EXPLAIN | DROP | DESCRIBE "
            "MATERIALIZED VIEW and SELECT"
        )

    def _explain(self) -> Statement:
        if self._peek() == "CREATE":
            return ExplainCreate(self._create())
        self._take("REFRESH")
        self._expect("MATERIALIZED", "VIEW")
        return ExplainRefresh(self._name())

    def _create(self) -> CreateView:
        start = self.tokens[self.at]
        self._expect("CREATE")
        or_replace = self._take("OR", "REPLACE")
        self._expect("MATERIALIZED", "VIEW")
        if_not_exists = self._take("IF", "NOT", "EXISTS")
        name = self._name()
        comment: str | None = None
        cluster_by: tuple[str, ...] = ()
        properties: tuple[tuple[str, str], ...] = ()
        policy: Policy = "AUTO"
        consistency: Consistency = "STRONG"
        with_no_data = False
        schedule: Schedule | None = None
        while not self._take("AS"):
            if self._take("COMMENT"):
                comment = self._string("a comment")
            elif self._take("CLUSTER", "BY"):
                cluster_by = self._names_in_parentheses()
            elif self._take("TBLPROPERTIES"):
                properties = self._properties()
            elif self._take("REFRESH", "POLICY"):
                policy = self._policy()
            elif self._take("CONSISTENCY"):
                consistency = self._consistency()
            elif self._take("WITH", "NO", "DATA"):
                with_no_data = True
            elif self._take("SCHEDULE"):
                schedule = self._schedule()
            else:
                self._fail(
                    "expected COMMENT, CLUSTER BY, TBLPROPERTIES, REFRESH POLICY, CONSISTENCY, SCHEDULE, WITH NO DATA "
                    "or AS"
                )
        return CreateView(
            name,
            self._query(),
            Origin(self.file, *position(self.text, start.start)),
            or_replace,
            if_not_exists,
            comment,
            cluster_by,
            properties,
            policy,
            consistency,
            with_no_data,
            schedule,
        )

    def _refresh(self) -> RefreshView:
        name = self._name()
        full = self._take("FULL")
        if self._take("TO", "TIMESTAMP"):
            self._not_yet("REFRESH ... TO TIMESTAMP", "refresh without it: the newest state is taken")
        return RefreshView(name, full)

    def _query(self) -> Query:
        rest = self.tokens[self.at :]
        if not rest:
            self._fail("a SELECT is missing")
        tree = parse_query(self.text, rest, self.file)
        self.at = len(self.tokens)
        # What comes after the last token is a semicolon or a comment; the query may be put between parentheses.
        return Query(self.text[: rest[-1].end + 1], tree, rest[0].start, self.file)

    def _policy(self) -> Policy:
        if self._take("INCREMENTAL", "STRICT"):
            return "INCREMENTAL STRICT"
        policies: tuple[Policy, ...] = ("AUTO", "INCREMENTAL", "FULL")
        for policy in policies:
            if self._take(policy):
                return policy
        self._fail("a refresh policy is AUTO, INCREMENTAL, INCREMENTAL STRICT or FULL")

    def _consistency(self) -> Consistency:
        levels: tuple[Consistency, ...] = ("CONVERGENT", "STRONG", "COMPLETE")
        for level in levels:
            if self._take(level):
                return level
        self._fail("a consistency level is CONVERGENT, STRONG or COMPLETE")

    def _schedule(self) -> Schedule:
        self._expect("EVERY")
        place = self.at
        number = self._text_of_next("a number")
        unit = self._text_of_next("a unit of time")
        schedule = Schedule.parse(f"{number} {unit}")
        if schedule is None:
            self.at = place
            self._fail("a schedule is EVERY, a whole number from 1 on, and SECONDS, MINUTES, HOURS or DAYS")
        return schedule

    def _properties(self) -> tuple[tuple[str, str], ...]:
        self._expect("(")
        found: list[tuple[str, str]] = []
        while not self._take(")"):
            if found:
                self._expect(",")
            key = self._text_of_next("a property name")
            while self._take("."):
                key += "." + self._text_of_next("a property name")
            self._expect("=")
            found.append((key, self._text_of_next("a property value")))
        return tuple(found)

    def _names_in_parentheses(self) -> tuple[str, ...]:
        self._expect("(")
        found = [self._text_of_next("a column name")]
        while self._take(","):
            found.append(self._text_of_next("a column name"))
        self._expect(")")
        return tuple(found)

    def _name(self) -> str:
        token = self.tokens[self.at] if self.at < len(self.tokens) else None
        if token is None or (token.token_type != TokenType.IDENTIFIER and not token.text.isidentifier()):
            self._fail("the name of a view is missing")
        self.at += 1
        if self._peek() == ".":
            self._fail(
                "the name of a view has one part; names with a dot are tables of sources. Write it without a dot"
            )
        name = token.text
        if not name.replace("_", "a").replace(" ", "a").replace("-", "a").isalnum():
            self.at -= 1
            self._fail("the name of a view holds letters, digits, _, - and spaces only")
        if name.lower().startswith("block "):
            self.at -= 1
            self._fail("names that start with `block ` are kept for hidden blocks")
        return name

    def _string(self, what: str) -> str:
        if self.at < len(self.tokens) and self.tokens[self.at].token_type == TokenType.STRING:
            self.at += 1
            return self.tokens[self.at - 1].text
        self._fail(f"{what} is a string between quotes")

    def _text_of_next(self, what: str) -> str:
        if self.at >= len(self.tokens) or self.tokens[self.at].text in ("(", ")", ",", "="):
            self._fail(f"{what} is missing")
        self.at += 1
        return self.tokens[self.at - 1].text

    def _peek(self) -> str:
        if self.at >= len(self.tokens):
            return ""
        token = self.tokens[self.at]
        return "" if token.token_type in (TokenType.IDENTIFIER, TokenType.STRING) else token.text.upper()

    def _take(self, *words: str) -> bool:
        """Step over *words* if they come next; a keyword that the tokenizer reads as two words counts as two."""
        before = self.at
        wanted = list(words)
        while wanted:
            found = self._peek().split()
            if not found or found != wanted[: len(found)]:
                self.at = before
                return False
            del wanted[: len(found)]
            self.at += 1
        return True

    def _expect(self, *words: str) -> None:
        if not self._take(*words):
            self._fail(f"expected {' '.join(words)}")

    def _not_yet(self, what: str, instead: str) -> NoReturn:
        token = self.tokens[max(self.at - 1, 0)]
        raise SqlError(
            "NOT_YET_AVAILABLE",
            f"{what} is understood, but this version cannot do it; {instead}.",
            origin=Origin(self.file, *position(self.text, token.start)),
        )

    def _fail(self, message: str) -> NoReturn:
        token: Token = self.tokens[min(self.at, len(self.tokens) - 1)]
        near = "the end" if self.at >= len(self.tokens) else repr(token.text)
        line, column = position(self.text, token.start)
        raise SqlError(
            "SQL_SYNTAX",
            f"near {near}: {message}.",
            origin=Origin(self.file, line, column),
            excerpt=excerpt(self.text, line, column, token.end - token.start + 1),
        )
