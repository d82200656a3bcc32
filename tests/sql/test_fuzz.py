"""Malformed and exotic SQL is taken, or refused with an error of ours; ``python -m tests.campaign.fuzz`` asks Spark."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from strandline.algebra.schema import Schema
from strandline.errors import SqlError
from tests.campaign.exotic import EXOTIC, enormous
from tests.campaign.fuzz import corpus, guessed_columns, mutated, taken

CORPUS = corpus()
ENORMOUS = list(enormous())


def nothing_is_right(sql: str) -> Schema:
    """Spark refuses it: then our own resolution looks for the place."""
    raise SqlError("SPARK_REJECTS", "no")


@pytest.mark.parametrize("text", EXOTIC, ids=range(len(EXOTIC)))
def test_exotic_syntax(text: str) -> None:
    assert taken(text, guessed_columns)
    assert taken(text, nothing_is_right)


@pytest.mark.parametrize(
    ("text", "outcome"),
    [
        ("SELECT k FROM l.r WHERE a = b = true = false", "incremental"),
        ("SELECT r.k FROM l.r JOIN l.s ON r.k < s.k = true", "incremental"),
        ("SELECT k FROM l.r WHERE a BETWEEN 1 AND 2 = true", "incremental"),
        ("SELECT k, (SELECT max(st) FROM l.nest).a AS x FROM l.r", "incremental"),
        ("SELECT x.a FROM (SELECT r.*, s.* FROM l.r JOIN l.s ON r.k = s.k) AS x", "incremental"),
        ("WITH x AS (SELECT *, k FROM l.r) SELECT a, sum(b) AS b FROM x GROUP BY a", "incremental"),
        ("SELECT r.k FROM l.r WHERE r.d >= (SELECT min(r.d) FROM l.s WHERE s.a = r.a)", "SUBQUERY"),
        ("SELECT a, count(*) AS n FROM l.r GROUP BY GROUPING SETS ((a a), (a))", "CLAUSE"),
    ],
)
def test_odd_statements_have_a_strategy_or_a_reason(text: str, outcome: str) -> None:
    assert taken(text, guessed_columns) == outcome


@pytest.mark.parametrize("text", ENORMOUS, ids=range(len(ENORMOUS)))
def test_deep_wide_and_long_statements(text: str) -> None:
    assert taken(text, guessed_columns)
    assert taken(text, nothing_is_right)


@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=True))
def test_mutations_of_the_corpus(chance: random.Random) -> None:
    text = mutated(chance, CORPUS)
    assert taken(text, guessed_columns), text
    assert taken(text, nothing_is_right), text


@settings(max_examples=80, deadline=None, derandomize=True)
@given(st.text())
@example("SELECT")
def test_any_text_at_all(text: str) -> None:
    assert taken(text, guessed_columns)
    assert taken(f"SELECT {text} FROM l.r", nothing_is_right)


def test_the_corpus_itself_compiles() -> None:
    refused = {"SPARK_REJECTS", "SQL_SYNTAX", "UNKNOWN_TABLE", "AMBIGUOUS_COLUMN", "DUPLICATE_COLUMN"}
    codes = [taken(text, guessed_columns) for text in CORPUS]
    assert len([code for code in codes if code in refused]) < len(codes) // 20
