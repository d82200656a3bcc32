"""Ctrl-C while Spark works.

PySpark's own handler asks Spark to cancel its jobs over the very connection that is in use; that fails, and the
failure hides the interrupt. So Python's handler is put back, and on Ctrl-C the Spark process that this command started
is ended at once: what it had under way is redone by the next refresh.
"""

from __future__ import annotations

import contextlib
import logging
import signal
import threading
from collections.abc import Iterator

import psutil


def restore_handler() -> None:
    """Let Ctrl-C raise KeyboardInterrupt again, after Spark was started."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


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
