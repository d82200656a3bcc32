"""Waiting out what passes: a server that restarts, fails over, or is full for a moment."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from strandline.errors import SourceError
from strandline.sources.postgres.faults import is_transient

T = TypeVar("T")

PATIENCE = 60.0
FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0


def retrying(
    action: Callable[[], T],
    *,
    patience: float = PATIENCE,
    on_retry: Callable[[Exception, float], None] | None = None,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    jitter: Callable[[], float] = random.random,
) -> T:
    """What *action* gives, tried again while it fails in a way that passes, for about *patience* seconds.

    It must be safe to repeat as a whole, connecting included. The wait doubles each time; from half to all of it is
    taken, by *jitter*, so that many clients do not come back at once. *on_retry* hears of each failure and the wait
    that follows. No patience means one try.
    """
    began = clock()
    wait = FIRST_WAIT
    tries = 0
    while True:
        tries += 1
        try:
            return action()
        except Exception as error:
            if not is_transient(error):
                raise
            left = began + patience - clock()
            if left <= 0:
                raise _at_last(error, tries, clock() - began) from None
            pause = min(wait * (1 + jitter()) / 2, left)
            if on_retry is not None:
                on_retry(error, pause)
        sleep(pause)
        wait = min(wait * 2, LONGEST_WAIT)


def _at_last(error: Exception, tries: int, seconds: float) -> Exception:
    """The error to end with: of several tries, it says how many."""
    if tries == 1 or not isinstance(error, SourceError):
        return error
    return SourceError(error.code, f"{error.message} (Tried {tries} times in {seconds:.0f} s.)", origin=error.origin)
