"""What the descriptions of Spark's plans tell of the files that were read."""

from __future__ import annotations

from typing import Any

from strandline.engine.metrics import Scanned, scans_of


def node(desc: str, **metrics: int) -> dict[str, Any]:
    named = [{"name": name.replace("_", " "), "accumulatorId": number} for name, number in metrics.items()]
    return {"id": 1, "name": "Scan parquet ", "desc": desc, "metrics": named}


def scan(location: str) -> dict[str, Any]:
    desc = f"FileScan parquet [k#1L] Batched: true, Format: Parquet, Location: {location}, ReadSchema: struct<k:bigint>"
    return node(desc, number_of_files_read=1, size_of_files_read=2, number_of_output_rows=3)


def test_a_scan_tells_its_files_bytes_and_rows() -> None:
    values = {"1": "1,014", "2": "total (min, med, max (stageId: taskId))\n4.5 MiB (2.0 MiB, 2.5 MiB)", "3": "159,040"}
    found = list(scans_of([scan("PreparedDeltaFileIndex(1 paths)[file:/lake/a%20b]")], values))
    assert found == [Scanned("/lake/a b", 1014, int(4.5 * (1 << 20)), 159_040)]


def test_of_several_files_the_first_tells_the_table() -> None:
    values = {"1": "2", "2": "986.0 B", "3": "5"}
    many = scan("InMemoryFileIndex(2 paths)[file:/lake/t/part-0.parquet, file:/lake/t/part-1.parquet]")
    cut = scan("InMemoryFileIndex(9 paths)[s3a://bucket/lake/t/part-0.pa...")
    assert list(scans_of([many, cut], values)) == [
        Scanned("/lake/t/part-0.parquet", 2, 986, 5),
        Scanned("s3a://bucket/lake/t/part-0.pa...", 2, 986, 5),
    ]


def test_what_reads_no_files_or_the_log_of_a_table_is_left_out() -> None:
    log = scan("DeltaLogFileIndex(1 paths)[file:/lake/t/_delta_log/00000000000000000000.json]")
    exchange = node("Exchange hashpartitioning(k#1L, 8)", shuffle_bytes_written=2)
    not_run = scan("PreparedDeltaFileIndex(1 paths)[file:/lake/t]")
    assert list(scans_of([log, exchange], {"1": "1", "2": "3.3 KiB", "3": "10"})) == []
    assert list(scans_of([not_run], {})) == []
