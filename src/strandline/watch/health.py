"""Whether a watching process does its work: what /healthz answers."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

FAILING_SECONDS = 300.0
"""How long everything may fail: a source or a catalog that restarts is back by then."""

SILENT_SECONDS = 300.0
"""How long a look at the sources may take. A refresh may take any time."""


@dataclass
class Health:
    """Signs of life, told by the loop and read by the server's thread."""

    clock: Callable[[], float] = time.monotonic
    _turned: float = field(default=0.0)
    _failing: dict[str, tuple[float, str]] = field(default_factory=dict)
    _busy: bool = field(default=False)

    def __post_init__(self) -> None:
        self._turned = self.clock()

    def turned(self) -> None:
        """The loop begins another turn."""
        self._turned, self._busy = self.clock(), False

    def works(self) -> None:
        """A refresh or upkeep begins."""
        self._busy = True

    def succeeded(self, what: str) -> None:
        """It went well when it was last tried."""
        self._failing.pop(what, None)

    def failed(self, what: str, why: str) -> None:
        """It failed as a whole when it was last tried."""
        since, _ = self._failing.get(what, (self.clock(), ""))
        self._failing[what] = since, why

    def problem(self) -> str | None:
        """Why the process is not well; None if it is."""
        now = self.clock()
        for what, (since, why) in list(self._failing.items()):
            if now - since > FAILING_SECONDS:
                return f"{what} fails for {now - since:.0f} s: {why}"
        if not self._busy and now - self._turned > SILENT_SECONDS:
            return f"no turn for {now - self._turned:.0f} s"
        return None
