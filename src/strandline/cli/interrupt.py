"""Ctrl-C while Spark works: the Spark process that this command started is ended at once.

What it had under way is redone by the next refresh.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

import psutil


@contextlib.contextmanager
def ending_processes() -> Iterator[None]:
    """On Ctrl-C, end the processes that were started within."""
    before = set(psutil.Process().children(recursive=True))
    logging.getLogger().addFilter(_tells_more)
    try:
        yield
    except KeyboardInterrupt:
        started = [process for process in psutil.Process().children(recursive=True) if process not in before]
        for process in started:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(started, timeout=10)
        raise
    finally:
        logging.getLogger().removeFilter(_tells_more)


def _tells_more(record: logging.LogRecord) -> bool:
    """Py4J logs an interrupt with its stack before it passes it on."""
    return not str(record.msg).startswith("KeyboardInterrupt")
