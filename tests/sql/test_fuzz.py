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


@pytest.mark.parametrize("text", ENORMOUS, ids=range(len(ENORMOUS)))
def test_deep_wide_and_long_statements(text: str) -> None:
    assert taken(text, guessed_columns)
    assert taken(text, nothing_is_right)


@settings(max_examples=300, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(st.randoms(use_true_random=True))
def test_mutations_of_the_corpus(chance: random.Random) -> None:
    text = mutated(chance, CORPUS)
    assert taken(text, guessed_columns), text
    assert taken(text, nothing_is_right), text


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.text())
@example("SELECT")
def test_any_text_at_all(text: str) -> None:
    assert taken(text, guessed_columns)
    assert taken(f"SELECT {text} FROM l.r", nothing_is_right)


def test_the_corpus_itself_compiles() -> None:
    refused = {"SPARK_REJECTS", "SQL_SYNTAX", "UNKNOWN_TABLE", "AMBIGUOUS_COLUMN", "DUPLICATE_COLUMN"}
    codes = [taken(text, guessed_columns) for text in CORPUS]
    assert len([code for code in codes if code in refused]) < len(codes) // 20
