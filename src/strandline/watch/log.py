"""What a watching process writes: a line an event, for people or as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from datetime import datetime
from typing import TextIO

from strandline.catalog.moments import utc_now

UNITS = {"seconds": " s", "lag": " s behind", "retry_in": " s until the next try"}


class Log:
    """Events as lines. *time* and *event* come first; fields without a value are left out."""

    def __init__(
        self, *, as_json: bool = False, out: TextIO | None = None, clock: Callable[[], datetime] = utc_now
    ) -> None:
        self._as_json = as_json
        self._out = out or sys.stdout
        self._clock = clock

    def tell(self, event: str, **fields: object) -> None:
        """Write one event."""
        time = self._clock().isoformat(timespec="milliseconds")
        known = {name: _rounded(value) for name, value in fields.items() if value is not None}
        if self._as_json:
            line = json.dumps({"time": time, "event": event, **known}, ensure_ascii=False, default=str)
        else:
            line = f"{time[:19].replace('T', ' ')} {event}" + "".join(f", {_shown(n, v)}" for n, v in known.items())
        self._out.write(line + "\n")
        self._out.flush()


def _rounded(value: object) -> object:
    return round(value, 3) if isinstance(value, float) else value


def _shown(name: str, value: object) -> str:
    if name in UNITS:
        return f"{value:.2f}{UNITS[name]}"
    if isinstance(value, list):
        return f"{name} {' '.join(map(str, value))}"
    return f"{name} {' '.join(str(value).split())}"
