"""A clock for tests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

START = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)


class SetClock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = START

    def __call__(self) -> datetime:
        return self.now

    def move(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
