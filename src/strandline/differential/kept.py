"""What is kept between runs: the newer snapshot in the form in which the next run wants the old one.

A folder with ``kept.json`` and the rows in Parquet files, in buckets by the key: whole rows (SM, PH), ``<K, b>``
(SMC1, PHC1, PHC in memory) or ``<K, b, p>`` (SMC2, PHC2). Columns are named by their place, c0, c1, ...; b0 (and b1)
are the hash, p_file and p_row the address. A new state is written beside the old one and takes its place at the end.
"""

from __future__ import annotations

import json
import shutil
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

import pyarrow as pa

from strandline.differential.cost import Algorithm
from strandline.errors import DifferentialError
from strandline.sql.names import literal, quoted_list

if TYPE_CHECKING:
    from strandline.engine.session import DataFrame, Engine

FILE = "kept.json"
FORMAT = 1
BUCKETS = 8
"""The smallest number of buckets."""

Form = Literal["rows", "hashes", "pointers"]
"""Whole rows, ``<K, b>``, ``<K, b, p>``."""

FORMS: dict[Algorithm, Form] = {
    "sm": "rows", "ph": "rows", "smc1": "hashes", "phc1": "hashes", "phc": "hashes", "smc2": "pointers",
    "phc2": "pointers",
}  # fmt: skip
"""What each algorithm keeps; Window keeps nothing."""


@dataclass(frozen=True)
class Kept:
    """What ``kept.json`` says; *columns* are all compared columns, in *arrow* once more for
    programs; *stored* are those of the files.
    """

    algorithm: Algorithm
    form: Form
    key: tuple[str, ...]
    columns: tuple[tuple[str, str], ...]
    stored: str
    bits: int
    rows: int
    bytes: int
    buckets: int
    snapshot: str
    fingerprint: str
    data: str
    null_free: bool
    arrow: str
    changed: float | None = None
    format: int = FORMAT

    def schema(self) -> pa.Schema:
        """The compared columns."""
        return pa.ipc.read_schema(pa.py_buffer(b64decode(self.arrow)))


def arrow_text(schema: pa.Schema) -> str:
    """*schema* as :attr:`Kept.arrow` has it."""
    return b64encode(schema.serialize().to_pybytes()).decode()


def load(folder: Path) -> Kept | None:
    """What is kept in *folder*; None if nothing is."""
    if not (folder / FILE).exists():
        return None
    try:
        found: dict[str, Any] = json.loads((folder / FILE).read_text(encoding="utf-8"))
        found["key"] = tuple(found["key"])
        found["columns"] = tuple((name, kind) for name, kind in found["columns"])
        kept = Kept(**found)
    except (ValueError, TypeError, KeyError) as error:
        raise DifferentialError(
            "KEPT_UNREADABLE", f"{folder / FILE} cannot be read: {error}; remove the folder, and it is made anew."
        ) from error
    if kept.format != FORMAT:
        raise DifferentialError(
            "KEPT_UNREADABLE",
            f"{folder} has format {kept.format}, this version reads {FORMAT}; remove the folder, and it is made anew.",
        )
    return kept


def write(
    engine: Engine, frame: DataFrame, key_columns: Sequence[str], place: Path, buckets: int, *, in_order: bool
) -> str:
    """Store *frame* at *place* in buckets by *key_columns*, sorted in each if *in_order*; the columns stored."""
    place.parent.mkdir(parents=True, exist_ok=True)
    stored = ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)
    if engine.capabilities.engine != "spark":
        frame.write.parquet(str(place))
        return stored
    view, table = f"strandline_rows_{uuid4().hex}", f"strandline_kept_{uuid4().hex}"
    frame.repartition(buckets, *key_columns).createOrReplaceTempView(view)
    try:
        engine.worker.sql(
            f"CREATE TABLE {table} USING parquet {_clustered(key_columns, buckets, in_order)} "
            f"LOCATION {literal(str(place.resolve()))} AS SELECT * FROM {view}"
        ).collect()
    finally:
        engine.worker.catalog.dropTempView(view)
        engine.worker.sql(f"DROP TABLE IF EXISTS {table}")
    return stored


@contextmanager
def reading(
    engine: Engine, place: Path, stored: str, key_columns: Sequence[str], buckets: int, *, in_order: bool
) -> Iterator[DataFrame]:
    """Stored rows, as buckets where the engine knows them; their name in the session goes at the end."""
    if engine.capabilities.engine != "spark":
        yield engine.worker.read.schema(stored).parquet(str(place))
        return
    table = f"strandline_kept_{uuid4().hex}"
    engine.worker.sql(
        f"CREATE TABLE {table} ({stored}) USING parquet {_clustered(key_columns, buckets, in_order)} "
        f"LOCATION {literal(str(place.resolve()))}"
    )
    try:
        yield engine.worker.table(table)
    finally:
        engine.worker.sql(f"DROP TABLE IF EXISTS {table}")


def record(folder: Path, kept: Kept) -> None:
    """Make *kept* what the folder says, and remove what was kept before."""
    before = load(folder)
    waiting = folder / f"{FILE}.new"
    waiting.write_text(json.dumps(asdict(kept), indent=2) + "\n", encoding="utf-8")
    waiting.replace(folder / FILE)
    if before is not None and before.data != kept.data:
        shutil.rmtree(folder / before.data, ignore_errors=True)


def stored_bytes(place: Path) -> int:
    """How large the files are."""
    return sum(file.stat().st_size for file in place.rglob("*.parquet"))


def sorted_buckets(algorithm: Algorithm) -> bool:
    """Whether *algorithm* wants the rows of a bucket in the order of their keys."""
    return algorithm.startswith("sm")


def _clustered(key_columns: Sequence[str], buckets: int, in_order: bool) -> str:
    by = quoted_list(key_columns)
    return f"CLUSTERED BY ({by}) {f'SORTED BY ({by}) ' if in_order else ''}INTO {buckets} BUCKETS"
