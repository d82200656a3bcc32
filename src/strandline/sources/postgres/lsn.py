"""Log sequence numbers: places in PostgreSQL's write-ahead log, as text and as numbers that can be compared."""

from __future__ import annotations

import re

_LSN = re.compile(r"([0-9A-Fa-f]{1,8})/([0-9A-Fa-f]{1,8})")


def parse_lsn(text: str) -> int:
    """The number that *text*, such as ``16/B374D848``, stands for."""
    halves = _LSN.fullmatch(text)
    if halves is None:
        raise ValueError(f"{text!r} is not a log sequence number")
    return int(halves[1], 16) << 32 | int(halves[2], 16)


def format_lsn(lsn: int) -> str:
    """*lsn* as PostgreSQL writes it."""
    if not 0 <= lsn < 1 << 64:
        raise ValueError(f"{lsn} is not a log sequence number")
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"
