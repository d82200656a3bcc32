from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strandline.sources.postgres.lsn import format_lsn, parse_lsn


@pytest.mark.parametrize(
    ("text", "number"),
    [("0/0", 0), ("0/1", 1), ("1/0", 1 << 32), ("16/B374D848", 0x16B374D848), ("FFFFFFFF/FFFFFFFF", (1 << 64) - 1)],
)
def test_an_lsn_is_two_hexadecimal_halves(text: str, number: int) -> None:
    assert parse_lsn(text) == number
    assert format_lsn(number) == text


@given(st.integers(0, (1 << 64) - 1))
def test_text_gives_the_number_back(number: int) -> None:
    assert parse_lsn(format_lsn(number)) == number


@pytest.mark.parametrize("text", ["", "0", "/", "0/", "/0", "0/0/0", "0/123456789", "0/G", " 0/0", "0/0\n", "-1/0"])
def test_other_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a log sequence number"):
        parse_lsn(text)


@pytest.mark.parametrize("number", [-1, 1 << 64])
def test_other_numbers_are_refused(number: int) -> None:
    with pytest.raises(ValueError, match="not a log sequence number"):
        format_lsn(number)
