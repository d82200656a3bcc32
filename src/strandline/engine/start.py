"""How Spark is started, or reached.

Python raises KeyboardInterrupt between any two instructions of its main thread. PySpark starts Java by a fork, and
what is raised in the hooks that Python runs around it is dropped: Ctrl-C at that moment would be lost, and leave the
lock of ``logging`` taken, which every step waits for. So Spark is started in a thread of its own. There PySpark leaves
the handler for Ctrl-C alone, too; its own one asks Spark to cancel jobs over the very connection that is in use.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from threading import Thread
from typing import TYPE_CHECKING, Any, TypeVar

from strandline.engine.jars import jar_paths
from strandline.engine.settings import session_settings
from strandline.errors import EngineError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

_REMOTE: list[SparkSession] = []
"""Sessions of Connect servers, kept for good. PySpark closes one that nobody has any more when Python gets to collect
it, in the midst of a call of another session; there it waits for calls of all sessions, which may wait for that one."""


def started(settings: Mapping[str, str], scratch: str) -> SparkSession:
    """A Spark on this machine, or one that runs on a cluster from here; its own words go to a file in *scratch*."""
    from strandline.engine.java import require_java

    require_java()
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    jars = jar_paths()
    if not jars:
        raise EngineError(
            "JARS_MISSING",
            "the Delta jars are not here; run `python -m strandline.engine.jars` once, with a network.",
        )
    builder = SparkSession.builder.appName("strandline")
    for name, value in session_settings(settings, jars, scratch).items():
        builder = builder.config(name, value)
    log = f"{scratch}/spark.log"
    file = os.open(log, os.O_WRONLY | os.O_CREAT)
    try:
        with _standard_error_to(file):
            return _in_a_thread(builder.getOrCreate)
    except Exception as error:
        raise EngineError(
            "SPARK_START", f"Spark did not start: {first_sentence(error)}; its own words are in {log}."
        ) from error
    finally:
        os.close(file)


def connected(remote: str) -> SparkSession:
    """A session of the Connect server at *remote*."""
    from pyspark.sql import SparkSession

    try:
        return _kept(SparkSession.builder.remote(remote).getOrCreate())
    except Exception as error:
        raise EngineError(
            "SPARK_UNREACHABLE",
            f"no Spark Connect server answers at {remote}: {first_sentence(error)}; "
            "start it or correct `spark.remote` in strandline.yml.",
        ) from error


def beside(session: Any) -> SparkSession:
    """One more session of the server that *session* is connected to: a clone, or a new one where it makes no clones."""
    try:
        return _kept(session.cloneSession())
    except Exception:
        return _kept(type(session)(connection=session.client._builder))


def _kept(session: SparkSession) -> SparkSession:
    """*session*, of a Connect server, which is not collected."""
    if session not in _REMOTE:
        _REMOTE.append(session)
    return session


def first_sentence(error: Exception) -> str:
    """What Spark says, without the plan and the stack that it adds."""
    return str(error).strip().splitlines()[0][:500] if str(error).strip() else type(error).__name__


def _in_a_thread(call: Callable[[], T]) -> T:
    """What *call* returns or raises in a thread of its own. An interrupt does not wait for it."""
    outcome: Future[T] = Future()

    def run() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    Thread(target=run, name="strandline-start", daemon=True).start()
    return outcome.result()


@contextlib.contextmanager
def _standard_error_to(file: int) -> Iterator[None]:
    """What a child process that is started within writes to standard error goes to *file*, for as long as it lives."""
    sys.stderr.flush()
    before = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(before, 2)
        os.close(before)
