"""PySpark kept from logging failures that are told otherwise, or are none."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """PySpark logs each failure with its stack; what fails here is told otherwise."""
    from pyspark.logger import PySparkLogger

    # Made as PySpark makes them: a plain logger of these names would fail wherever PySpark logs an error later.
    loggers = [PySparkLogger.getLogger(name) for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger")]
    with _QUIET.lock:
        if not _QUIET.within:
            _QUIET.before = [logger.disabled for logger in loggers]
        _QUIET.within += 1
        for logger in loggers:
            logger.disabled = True
    try:
        yield
    finally:
        with _QUIET.lock:
            _QUIET.within -= 1
            if not _QUIET.within:
                for logger, disabled in zip(loggers, _QUIET.before, strict=True):
                    logger.disabled = disabled


class _Quiet:
    """How many threads want PySpark to be quiet, and how it was before the first of them."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.within = 0
        self.before: list[bool] = []


_QUIET = _Quiet()
