"""How likely it is that a compressed comparison misses a change (2.2.3).

1 - 2^-64 is 1 in double precision, so that everything here goes through log1p and expm1.
"""

from __future__ import annotations

import math


def error(bits: int, of: int | None = None) -> float:
    """The probability that two different values have the same *bits*; *of* is how many bits the values have."""
    if of is None:
        return math.ldexp(1.0, -bits)
    return math.ldexp(1.0, -bits) - math.ldexp(1.0, -of)


def any_miss(compared: int, error: float) -> float:
    """The probability that one of *compared* changed records is missed; an upper bound if not all are changed."""
    return -math.expm1(compared * math.log1p(-error))


def expected_days(compared: int, error: float) -> float:
    """Days to the first miss, one comparison of *compared* records a day: a lower bound, as if all were changed."""
    missed = any_miss(compared, error)
    return 1 / missed if missed else math.inf
