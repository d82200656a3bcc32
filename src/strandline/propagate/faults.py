"""What went wrong in a step: in a line for people, and whether it may pass if the step is tried again."""

from __future__ import annotations

import re

from strandline.errors import StrandlineError

BACK_OFF = (0.5, 2.0, 8.0)
"""How many seconds to wait before each further attempt of a step."""

_OWN_ERROR = re.compile(r"\[(NEGATIVE_COUNT|DELETE_WITHOUT_ROW|LOG_WITHOUT_ROW|SOURCE_VALUE)\][^\n]*")
_CAUSE = re.compile(r"Caused by: ([^\n]+)")
_PASSING = re.compile(
    r"Connection (?:reset|refused|timed out)|SocketTimeout|SocketException|Broken pipe|ExecutorLost|FetchFailed|"
    r"DELTA_CONCURRENT|Concurrent\w*Exception|SlowDown|Too Many Requests|Service Unavailable|temporarily unavailable",
    re.IGNORECASE,
)
_PASSING_CODES = frozenset({"CATALOG_BUSY"})


def message(error: BaseException) -> str:
    """What went wrong, in a line."""
    if isinstance(error, StrandlineError):
        lines = [f"{error.code}: {error.message}", *(error.excerpt or "").splitlines()]
        return " ".join(line.strip() for line in lines)
    text = str(error).strip() or type(error).__name__
    own = _OWN_ERROR.search(text)
    if own is not None:
        return own[0][:1000]
    lines = text.splitlines()
    java = lines[0].startswith("An error occurred while calling") and len(lines) > 1
    first = lines[1].removeprefix(": ") if java else lines[0]
    causes = _CAUSE.findall(text)
    if causes and causes[-1] not in first:
        first = f"{first} caused by {causes[-1]}"
    return first[:1000]


def spark_died(error: BaseException) -> bool:
    """Whether a step failed because nobody is there any more to carry it out."""
    unheard = isinstance(error, ConnectionError | EOFError) or type(error).__name__ == "Py4JNetworkError"
    return unheard or "Answer from Java side is empty" in str(error) or "stopped SparkContext" in str(error)


def passing(error: BaseException) -> bool:
    """Whether a fault may pass by itself: a connection that broke, a machine that was lost, a store that was busy.

    A source that cannot be reached is none of these: its adapter has waited for it already. Nor is a Spark process that
    ended: it does not come back.
    """
    if spark_died(error):
        return False
    if isinstance(error, StrandlineError):
        return error.code in _PASSING_CODES
    text = str(error)
    return _PASSING.search(text) is not None and _OWN_ERROR.search(text) is None
