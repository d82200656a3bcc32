"""Faults of a step: which may pass, and how they are told."""

from __future__ import annotations

import pytest

from strandline.errors import CatalogError, SourceError, StoreError
from strandline.propagate.faults import message, passing

JAVA = (
    "An error occurred while calling o61.sql.\n: org.apache.spark.SparkException: Job aborted.\n\tat x\nCaused by: {}"
)


@pytest.mark.parametrize(
    ("error", "may_pass"),
    [
        (RuntimeError(JAVA.format("java.net.SocketTimeoutException: Read timed out")), True),
        (RuntimeError(JAVA.format("org.apache.spark.ExecutorLostFailure (executor 1 exited)")), True),
        (RuntimeError("[DELTA_CONCURRENT_APPEND] ConcurrentAppendException: files were added"), True),
        (RuntimeError("com.amazonaws.AmazonS3Exception: SlowDown (503)"), True),
        (CatalogError("CATALOG_BUSY", "the catalog could not be written"), True),
        (RuntimeError("[DIVIDE_BY_ZERO] Division by zero"), False),
        (RuntimeError("[NEGATIVE_COUNT] v: connection reset stands in a row"), False),
        (SourceError("SOURCE_UNREACHABLE", "shop does not answer: Connection refused"), False),
        (StoreError("TABLE_GONE", "the table is not there"), False),
    ],
)
def test_faults_that_may_pass(error: Exception, may_pass: bool) -> None:
    assert passing(error) is may_pass


def test_a_fault_of_spark_is_told_in_a_line_with_its_cause() -> None:
    told = message(RuntimeError(JAVA.format("java.io.IOException: No space left on device")))
    assert (
        told == "org.apache.spark.SparkException: Job aborted. caused by java.io.IOException: No space left on device"
    )
