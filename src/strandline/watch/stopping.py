"""Ending in good order: the first signal asks for it, a second one ends the process at once.

The handler only notes the signal. What waits looks at the note; a refresh under way stops before its next step.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SLICE_SECONDS = 0.2


class Stopped(BaseException):
    """A refresh was cut between two steps; whoever changes the warehouse next finishes it.

    No failure, so nothing that handles failures must catch it.
    """


class Stop:
    """Whether to stop, and why."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._deadline: float | None = None
        self._clock = clock
        self._signal: int | None = None

    @property
    def requested(self) -> str | None:
        """Why to stop: the name of a signal, or that the time is over."""
        if self._signal is not None:
            return signal.Signals(self._signal).name
        return "time is over" if self._deadline is not None and self._clock() >= self._deadline else None

    @property
    def signalled(self) -> bool:
        """Whether a signal asked for it, so that a refresh under way is cut."""
        return self._signal is not None

    def after(self, seconds: float) -> None:
        """Stop by itself, so long from now."""
        self._deadline = self._clock() + seconds

    def wait(self, seconds: float) -> None:
        """Sleep so long, or until it is time to stop."""
        until = self._clock() + seconds
        while self.requested is None and (left := until - self._clock()) > 0:
            time.sleep(min(SLICE_SECONDS, left))

    def note(self, number: int, frame: FrameType | None = None) -> None:
        """A signal arrived."""
        if self._signal is not None:
            os._exit(128 + number)
        self._signal = number

    @contextmanager
    def on_signals(self) -> Iterator[None]:
        """Within, SIGTERM and SIGINT ask to stop. The first process of a container has no other handler for them."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self.note) for number in (signal.SIGTERM, signal.SIGINT)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
