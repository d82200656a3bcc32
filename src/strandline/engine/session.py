"""The engine: a Spark session of the user's or our own, started when first needed."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import psutil
import pyarrow as pa

from strandline.algebra.schema import Column, Schema
from strandline.catalog.process import identified
from strandline.engine.capabilities import Capabilities, probe
from strandline.engine.files import has_parquet
from strandline.engine.little import (
    PinnedReads,
    collected,
    pinned_tables,
    usual_type,
    writable,
    write_files,
    write_table,
)
from strandline.engine.metrics import Metrics, mark, read_metrics, unmark
from strandline.engine.places import on_disk
from strandline.engine.quiet import quiet
from strandline.engine.servers import is_this_machine, server_of
from strandline.engine.settings import under_spark_submit
from strandline.engine.start import beside, connected, first_sentence, started
from strandline.engine.step_settings import of_step
from strandline.engine.types import columns_of
from strandline.errors import SqlError
from strandline.stopwatch import Work, spending

if TYPE_CHECKING:
    from pyspark.sql import DataFrame as DataFrame
    from pyspark.sql import SparkSession as SparkSession

WriteMode: TypeAlias = Literal["append", "overwrite", "error"]

_TAG = "strandline"

_USUAL = {
    "spark.sql.decimalOperations.allowPrecisionLoss": "true",
    "spark.sql.legacy.literal.pickMinimumPrecision": "true",
    "spark.sql.timestampType": "timestamp_ltz",
}
"""Settings that change what an expression gives, as they are if nobody sets them."""

_STEP_ID = "spark.databricks.delta.commitInfo.userMetadata"


class _Thread(threading.local):
    """What a thread works with: its session, if it has one for itself, and the step that is under way in it."""

    session: SparkSession | None = None
    reads: PinnedReads | None = None
    small: bool = False
    commits: bool = False
    """Whether the step has committed to a Delta table through Spark."""
    read: set[tuple[str, int]] | None = None
    """The tables that the step has read so far, at pinned versions."""


class Engine:
    """Runs SQL on Spark. Nothing of Spark is imported or started before :attr:`spark` is first read."""

    def __init__(
        self,
        spark: SparkSession | None = None,
        *,
        remote: str | None = None,
        settings: Mapping[str, str] | None = None,
        storage_options: Mapping[str, str] | None = None,
        kept: str | None = None,
    ) -> None:
        """*kept* is a folder for what makes few rows of large tables quick to find."""
        self._given = spark
        self._remote = remote
        self._settings = dict(settings or {})
        self._own: SparkSession | None = None
        self._worker: SparkSession | None = None
        self._scratch: str | None = None
        self._thread = _Thread()
        self._fresh = True
        self._spare: list[SparkSession] = []
        self._lent: list[SparkSession] = []
        self._marks: set[str] = set()
        self._kept = None if kept is None else on_disk(kept)
        self.storage_options = dict(storage_options or {})

    @property
    def small(self) -> bool:
        """Whether a step over little data is under way in this thread."""
        return self._thread.small

    @property
    def started(self) -> bool:
        """Whether a session is in use."""
        return self._given is not None or self._own is not None

    @property
    def spark(self) -> SparkSession:
        """The session that answers the user's reads; its settings are never changed."""
        if self._given is not None:
            return self._given
        if self._own is None:
            with spending("starting"):
                self._own = connected(self._remote) if self._remote else self._start()
        return self._own

    @cached_property
    def capabilities(self) -> Capabilities:
        """What the engine behind the session can do."""
        return probe(self.spark)

    @cached_property
    def usual_arithmetic(self) -> bool:
        """Whether values are computed as Apache Spark does unless it is told otherwise.

        A view equals what its own engine computes; another one rounds in ways of its own, and so do old settings.
        """
        if self.capabilities.engine != "spark":
            return False
        return all(str(self.worker.conf.get(name, usual)).lower() == usual for name, usual in _USUAL.items())

    @cached_property
    def seeks(self) -> bool:
        """Whether few rows of large tables are sought here: where Spark has the processors of this machine, no others.

        So has a Connect server, as far as can be told, that is asked at an address of this machine.
        """
        if self._kept is None:
            return False
        if (server := server_of(self._remote or self._given)) is not None:
            return is_this_machine(server)
        if self._given is not None:
            return str(self._given.conf.get("spark.master", "")).startswith("local")
        return not under_spark_submit() and self._settings.get("spark.master", "local").startswith("local")

    @property
    def marks(self) -> bool:
        """Whether rows are marked as deleted where they are sought; not for an engine that knows no marks."""
        return self.seeks and (not self.started or self.capabilities.deletion_vectors)

    @property
    def worker(self) -> SparkSession:
        """A session of our own beside the user's, for the steps of a refresh: its settings change step by step.

        A thread that runs :meth:`beside` others has one for itself.
        """
        if self._thread.session is not None:
            return self._thread.session
        if self._worker is None:
            self._worker = self._another() or self.spark
            self._set("spark.sql.session.timeZone", "UTC")
        return self._worker

    @cached_property
    def runs_beside(self) -> bool:
        """Whether steps can run at the same time, each in a session of its own."""
        session = self._another()
        if session is not None:
            self._spare.append(session)
        return session is not None

    @contextlib.contextmanager
    def beside(self) -> Iterator[None]:
        """Within, this thread has a session for itself, so that its steps run beside those of other threads."""
        session = self._spare.pop() if self._spare else self._another()
        if session is None:
            yield
            return
        self._thread.session = session
        self._lent.append(session)
        try:
            self._set("spark.sql.session.timeZone", "UTC")
            yield
        finally:
            self._thread.session = None
            self._lent.remove(session)
            self._spare.append(session)

    def _another(self) -> SparkSession | None:
        """One more session of the same Spark; None if it does not know how to make one."""
        spark: Any = self.spark
        with contextlib.suppress(Exception):
            made: SparkSession = spark.newSession() if hasattr(spark, "newSession") else beside(spark)
            return made
        return None

    def query(self, sql: str) -> DataFrame:
        """*sql* as a DataFrame of the user's session."""
        return self.spark.sql(sql)

    def analyse(self, sql: str) -> Schema:
        """The columns of *sql*, as Spark types them."""
        from pyspark.errors import PySparkException

        try:
            with quiet():
                return columns_of(self.worker.sql(sql).schema.json())
        except PySparkException as error:
            raise SqlError("SPARK_REJECTS", first_sentence(error)) from error

    def schema_json(self, sql: str) -> str:
        """The schema of *sql* as JSON, as Delta writes it too."""
        return self.worker.sql(sql).schema.json()

    def arrow_schema(self, sql: str) -> pa.Schema:
        """The columns of *sql* in Arrow's types, as files of a Delta table have them."""
        from pyspark.sql.pandas.types import to_arrow_schema

        schema = to_arrow_schema(self.worker.sql(sql).schema)
        return pa.schema([pa.field(field.name, usual_type(field.type)) for field in schema])

    def rows(self, sql: str) -> list[tuple[Any, ...]]:
        """The rows of a small result."""
        with spending(self._calling):
            return [tuple(row) for row in self._frame(sql).collect()]

    def run(self, sql: str) -> list[tuple[Any, ...]]:
        """Carry out a statement; what it returns, if anything."""
        return self.rows(sql)

    def has_schema(self, name: str) -> bool:
        """Whether the catalog of the session has a schema."""
        return bool(self.worker.catalog.databaseExists(name))

    def write_parquet(self, sql: str, path: str) -> bool:
        """Write the rows of *sql* as files at *path*, whatever was there; False if there is nothing to read."""
        with spending("spark"):
            frame = self._frame(sql)
            if not self.small or (rows := collected(frame)) is None:
                frame.write.mode("overwrite").parquet(path)
                return has_parquet(path, self.storage_options)
        with spending("files"):
            return write_files(rows, path, self.storage_options)

    def write_delta(
        self,
        sql: str,
        path: str,
        mode: WriteMode,
        step_id: str,
        properties: Mapping[str, str] | None = None,
        file_rows: int | None = None,
    ) -> None:
        """Append the rows of *sql* to a Delta table, overwrite it, or make it, as one commit of a step.

        Where Spark writes it, a file has at most *file_rows* rows.
        """
        options = self.storage_options
        rows = None
        with spending("spark"):
            frame = self._frame(sql)
            if self.small and writable(path, options):
                rows = collected(frame)
        if rows is not None:
            with spending("commit"):
                write_table(rows, path, mode, properties or {}, step_id, options)
            return
        self._thread.commits = True
        with spending("committing"):
            writer = frame.write.format("delta").mode(mode).options(**properties or {})
            if file_rows is not None and self.capabilities.engine == "spark":
                writer = writer.option("maxRecordsPerFile", file_rows)
            writer.option("userMetadata", step_id).save(path)

    def _frame(self, sql: str) -> DataFrame:
        """*sql* in our own session."""
        reads, read = self._thread.reads, self._thread.read
        if read is not None:
            read.update(pinned_tables(sql))
        return self.worker.sql(reads.replaced(sql) if reads is not None else sql)

    def table_rows(
        self,
        path: str,
        version: int,
        columns: Sequence[str],
        told: Mapping[str, Any],
        met: Mapping[str, pa.ChunkedArray],
    ) -> pa.Table | None:
        """Within a step: the rows of a version of a table that are as is *told*, and *met* by values of columns.

        There may be more; None if they are left to Spark.
        """
        reads, read = self._thread.reads, self._thread.read
        if reads is None or read is None:
            return None
        found = reads.rows(path, version, columns, told, met)
        if found is not None:
            read.add((path, version))
        return found

    def stored_rows(self, path: str, columns: Sequence[str]) -> pa.Table:
        """Within a step: columns of all rows of stored files."""
        assert self._thread.reads is not None
        return self._thread.reads.stored_rows(path, columns)

    @property
    def _calling(self) -> Work:
        """What a call of Spark is, as far as the step's time goes."""
        return "committing" if self._thread.commits else "spark"

    def jdbc_view(self, name: str, options: Mapping[str, str], parts: Sequence[str]) -> None:
        """Name rows that another database gives through JDBC; a task of its own reads each condition of *parts*."""
        self.jdbc_frame(options, parts).createOrReplaceTempView(name)

    def jdbc_frame(self, options: Mapping[str, str], parts: Sequence[str]) -> DataFrame:
        """The rows that :meth:`jdbc_view` names."""
        table, url = options["dbtable"], options["url"]
        properties = {key: value for key, value in options.items() if key not in ("dbtable", "url")}
        return self.worker.read.jdbc(url, table, predicates=list(parts), properties=properties)

    def columns_of(self, frame: DataFrame) -> Schema:
        """The columns of a frame, all of which may be NULL."""
        return tuple(Column(column.name, column.type) for column in columns_of(frame.schema.json()))

    def drop_view(self, name: str) -> None:
        """Forget a name given by :meth:`jdbc_view`."""
        self.worker.catalog.dropTempView(name)

    @contextlib.contextmanager
    def committing(self, step_id: str) -> Iterator[None]:
        """Within, commits of SQL statements carry *step_id*, where the engine can do that."""
        self._thread.commits = True
        if not self.capabilities.commit_metadata:
            yield
            return
        self.worker.conf.set(_STEP_ID, step_id)
        try:
            yield
        finally:
            self.worker.conf.unset(_STEP_ID)

    @contextlib.contextmanager
    def setting(self, name: str, value: str) -> Iterator[None]:
        """Within, our own session has a setting, if it is not the user's."""
        self._set(name, value)
        try:
            yield
        finally:
            if self._ours:
                self.worker.conf.unset(name)

    @contextlib.contextmanager
    def step(
        self, view: str, step: str, *, small: bool, compiled: bool | None = None, partitions: int | None = None
    ) -> Iterator[Metrics]:
        """Within, jobs are tagged with view and step; a *small* one writes its tables without ceremony.

        A small step runs interpreted unless it is to be *compiled*, any other is compiled.
        *partitions* is into how many parts rows are shuffled, if the settings of the warehouse do not say.
        What is yielded is filled in at the end.
        """
        tag = f"strandline/{view}/{step}".replace(",", "_")
        worker = self.worker  # it must be there before anything can be set
        with spending("spark"):
            compiling = not small if compiled is None else compiled
            for name, value in of_step(self._settings, compiled=compiling, partitions=partitions).items():
                self._set(name, value)
        worker.addTag(tag)
        worker.addTag(_TAG)
        counted = mark(worker)
        self._marks |= {counted} if counted is not None else set()
        before = self._thread.reads, self._thread.small, self._thread.read
        self._thread.reads = opened = PinnedReads(
            worker, self.storage_options, feeds=small, kept=self._kept if self.seeks else None
        )
        self._thread.read = read = set[tuple[str, int]]()
        self._thread.small, self._thread.commits = small, False
        try:
            metrics = Metrics(first=self._fresh)
            with quiet():
                yield metrics
            self._fresh = False
            with spending("metrics"):
                metrics.tables = tuple(sorted(read))
                read_metrics(worker, counted, metrics)
                metrics.scans = (*metrics.scans, *opened.scanned)
        finally:
            opened.close()
            self._thread.reads, self._thread.small, self._thread.read = before
            worker.removeTag(tag)
            worker.removeTag(_TAG)
            unmark(worker, counted)
            self._marks.discard(counted or "")

    def interrupt(self) -> None:
        """End what steps have running, also those of an earlier refresh in this session.

        A tag of a classic session is known only to the thread that set it; one of its context ends jobs from anywhere.
        """
        for session in (self._worker, *self._spare, *self._lent):
            if session is not None:
                with contextlib.suppress(Exception):  # another engine may not know how
                    session.interruptTag(_TAG)
        for tag in tuple(self._marks):
            with contextlib.suppress(Exception):
                self.spark.sparkContext.cancelJobsWithTag(tag)

    def processes(self) -> list[dict[str, Any]]:
        """The processes that do our work beside this one, for whoever has to make sure that they are gone."""
        if self._own is None or self._remote:
            return []
        this = psutil.Process()
        own = [this.parent()] if under_spark_submit() else this.children(recursive=True)
        return [asdict(identified(process.pid)) for process in own if process is not None and process.is_running()]

    @property
    def lost(self) -> bool:
        """Whether Spark was started here, on this machine, and its process is gone."""
        if self._own is None or self._remote or under_spark_submit():
            return False
        running = [p for p in psutil.Process().children(recursive=True) if p.is_running()]
        return not any(p.name() == "java" and p.status() != psutil.STATUS_ZOMBIE for p in running)

    def close(self) -> None:
        """Stop the session if it is ours."""
        try:
            if self._own is not None and not self.lost:
                self._own.stop()
        finally:
            self._own = self._worker = None
            self._fresh = True
            self._spare.clear()
            if self._scratch is not None:
                shutil.rmtree(self._scratch, ignore_errors=True)
                self._scratch = None

    @property
    def _ours(self) -> bool:
        """Whether the session of this thread is one whose settings are ours to change."""
        session = self._thread.session or self._worker
        return session is not None and session is not self._given

    def _start(self) -> SparkSession:
        self._scratch = tempfile.mkdtemp(prefix="strandline-spark-")
        return started(self._settings, self._scratch)

    def _set(self, name: str, value: str) -> None:
        if self._ours:
            with contextlib.suppress(Exception):  # another engine may not have the setting
                self.worker.conf.set(name, value)
