"""Which transactions a query saw.

Transactions become visible in another order than that of their commit records in the log, so no place in the log
says what a query saw; its snapshot does.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

_SNAPSHOT = re.compile(r"(\d+):(\d+):(\d+(?:,\d+)*)?")
_HALF = 1 << 31


@dataclass(frozen=True)
class Visible:
    """What ``pg_current_snapshot()`` says: ids below *xmin* had ended, ids from *xmax* on had not begun.

    Of those between, *running* had not ended. Ids have 64 bits; those of subtransactions do not occur.
    A prepared transaction is running until ``COMMIT PREPARED``.
    """

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def parse(cls, text: str) -> Self:
        """The snapshot that PostgreSQL writes as *text*, such as ``10:20:10,14,15``."""
        parts = _SNAPSHOT.fullmatch(text)
        if parts is None:
            raise ValueError(f"{text!r} is not a snapshot")
        running = frozenset(map(int, parts[3].split(","))) if parts[3] else frozenset()
        return cls(int(parts[1]), int(parts[2]), running)

    def __str__(self) -> str:
        return f"{self.xmin}:{self.xmax}:{','.join(map(str, sorted(self.running)))}"

    def extend(self, xid: int) -> int:
        """The 64 bits of *xid*, of which the log has the lower 32.

        All ids in use lie within 2^31 of each other, so only one number with these lower bits is as near to *xmax*.
        """
        return self.xmax + ((xid - self.xmax + _HALF) & 0xFFFFFFFF) - _HALF

    def sees(self, xid: int) -> bool:
        """Whether the query saw what the transaction *xid* of the log did; that one has committed, as it is there."""
        full = self.extend(xid)
        return full < self.xmin or (full < self.xmax and full not in self.running)

    def not_seen(self, xid: str) -> str:
        """The condition, in SQL, that the query did not see the transaction whose 64-bit id the column *xid* holds."""
        between = f"{xid} < {self.xmax}"
        if self.running:
            between += f" AND {xid} NOT IN ({', '.join(map(str, sorted(self.running)))})"
        return f"NOT ({xid} < {self.xmin} OR ({between}))"
