"""Deletion vectors of Delta tables: which rows of a data file do not count any more, read and written without Spark.

A vector holds the places of deleted rows in their file, as a Roaring bitmap (the protocol's *Deletion Vector Format*).
Who marks rows takes their file out of the log and puts it in again with its new vector, in one commit; the file stays
as it is. delta-rs reads vectors, and appends to tables that have some, but does not write them.
"""

from __future__ import annotations

import base64
import errno
import json
import os
import struct
import time
import uuid
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from pyroaring import BitMap64

Numbers = np.ndarray[Any, Any]

FEATURE = "deletionVectors"

SWITCH = "delta.enableDeletionVectors"

_KNOWN = frozenset({FEATURE, "appendOnly", "invariants", "timestampNtz", "vacuumProtocolCheck", "checkpointProtection"})
"""What may be asked of a writer of a table whose rows are marked here."""

_MAGIC = 1681511377
_FORMAT = b"\x01"
_PYTHON = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_Z85 = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
"""The digits of base 85 that Python has, and those of the protocol."""

CHECKPOINT_EVERY = 50
"""After so many versions what the log says is put together, for those who open the table."""

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

NONE: Numbers = np.empty(0, np.int64)

Action = dict[str, Any]


def deleted_rows(table: DeltaTable) -> dict[str, Numbers]:
    """Of files that have a vector, by their place below the table's folder: where in them deleted rows are, sorted."""
    root = unquote(urlparse(table.table_uri).path).rstrip("/") + "/"
    found = pa.table(table.deletion_vectors().read_all())
    paths = [unquote(urlparse(uri).path) for uri in found.column("filepath").to_pylist()]
    kept = found.column("selection_vector")
    return {
        path.removeprefix(root): np.flatnonzero(~kept[number].values.to_numpy(zero_copy_only=False))
        for number, path in enumerate(paths)
    }


def known_to_writers(table: DeltaTable) -> bool:
    """Whether a table asks nothing of its writers that is not known here; vectors may be switched on or not."""
    protocol = table.protocol()
    return protocol.min_writer_version <= 2 or _KNOWN.issuperset(protocol.writer_features or ("",))


class Unknown(Exception):
    """The log does not say, in a form that is known here, how a file came in."""


def mark(folder: Path, version: int, places: Mapping[str, Numbers], deleted: Mapping[str, Numbers], said: str) -> int:
    """Mark rows of files at *places* in a commit upon *version*, in which others are *deleted*; the new version.

    The commit carries *said*. FileExistsError if somebody else made that version.
    """
    log = folder / "_delta_log"
    known = added(log, version, set(places))
    vectors = _written(folder, {path: np.union1d(found, deleted.get(path, NONE)) for path, found in places.items()})
    actions: list[Action] = [
        {
            "commitInfo": {
                "timestamp": _now(),
                "operation": "DELETE",
                "operationParameters": {},
                "operationMetrics": {"numDeletedRows": str(sum(len(found) for found in places.values()))},
                "isBlindAppend": False,
                "userMetadata": said,
            }
        }
    ]
    for path, add in known.items():
        actions.append({"remove": _removed(add)})
        actions.append({"add": {**add, "dataChange": True, "stats": _loose(add), "deletionVector": vectors[path]}})
    _commit(log, version + 1, actions)
    if (version + 1) // CHECKPOINT_EVERY > _last_checkpoint(log) // CHECKPOINT_EVERY:
        DeltaTable(str(folder)).create_checkpoint()
    return version + 1


def _last_checkpoint(log: Path) -> int:
    """The version that was put together last; 0 if none was."""
    try:
        return int(json.loads((log / "_last_checkpoint").read_text(encoding="utf-8"))["version"])
    except (OSError, ValueError, KeyError):
        return 0


def vector_file(descriptor: Action) -> str | None:
    """The file of a vector, if it is one below the table's folder."""
    if descriptor.get("storageType") != "u":
        return None
    # A prefix of any length (a subfolder), then a UUID in 20 characters.
    prefix, text = descriptor["pathOrInlineDv"][:-20], descriptor["pathOrInlineDv"][-20:]
    number = base64.b85decode(text.encode().translate(bytes.maketrans(_Z85, _PYTHON)))
    return f"{prefix}/deletion_vector_{uuid.UUID(bytes=number)}.bin".removeprefix("/")


def added(log: Path, version: int, paths: set[str]) -> dict[str, Action]:
    """How files of a version came into it, by their paths; Unknown if the log does not say."""
    found: dict[str, Action] = {}
    for number in range(version, -1, -1):
        checkpoint = log / f"{number:020d}.checkpoint.parquet"
        adds = _of_checkpoint(checkpoint) if checkpoint.exists() else _of_commit(log / f"{number:020d}.json")
        for add in adds:
            path = unquote(add["path"])
            if path in paths and path not in found:
                found[path] = add
        if len(found) == len(paths):
            return found
        if checkpoint.exists():
            break
    raise Unknown(f"{log}: {', '.join(sorted(paths - set(found)))}")


def _of_commit(file: Path) -> list[Action]:
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except FileNotFoundError as error:
        raise Unknown(str(file)) from error
    return [action["add"] for action in (json.loads(line) for line in lines if line.strip()) if "add" in action]


def _of_checkpoint(file: Path) -> list[Action]:
    try:
        adds = pq.read_table(file, columns=["add"]).column("add").drop_null().to_pylist()
    except (OSError, pa.ArrowException) as error:
        raise Unknown(str(file)) from error
    known = ("path", "size", "modificationTime", "stats")
    return [{**{name: add[name] for name in known}, "partitionValues": {}, **_vector_of(add)} for add in adds]


def _vector_of(add: Action) -> Action:
    found = {name: value for name, value in (add.get("deletionVector") or {}).items() if value is not None}
    return {"deletionVector": found} if found else {}


def _removed(add: Action) -> Action:
    return {
        "path": add["path"],
        "deletionTimestamp": _now(),
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": add["size"],
        **_vector_of(add),
    }


def _loose(add: Action) -> str:
    """The statistics of a file, whose least and greatest values may be those of deleted rows."""
    stats = json.loads(add.get("stats") or "{}")
    if "numRecords" not in stats:
        raise Unknown(f"{add['path']} has no statistics")
    return json.dumps({**stats, "tightBounds": False})


def _written(folder: Path, gone: Mapping[str, Numbers]) -> dict[str, Action]:
    """Vectors, stored in one file, and how the log names them."""
    name = uuid.uuid4()
    content = bytearray(_FORMAT)
    vectors = {}
    for path, places in gone.items():
        bitmap = struct.pack("<I", _MAGIC) + BitMap64(places.astype(np.uint64)).serialize()
        vectors[path] = {
            "storageType": "u",
            "pathOrInlineDv": base64.b85encode(name.bytes).translate(bytes.maketrans(_PYTHON, _Z85)).decode(),
            "offset": len(content),
            "sizeInBytes": len(bitmap),
            "cardinality": len(places),
        }
        content += struct.pack(">I", len(bitmap)) + bitmap + struct.pack(">I", zlib.crc32(bitmap))
    (folder / f"deletion_vector_{name}.bin").write_bytes(content)
    return vectors


def _commit(log: Path, version: int, actions: list[Action]) -> None:
    """Write a commit, whole or not at all, unless there is one of that version."""
    text = "".join(f"{json.dumps(action)}\n" for action in actions)
    # What a process that is killed here leaves behind goes with other files that no version needs.
    file, fresh = log / f"{version:020d}.json", log.parent / f"{uuid.uuid4().hex}.json.tmp"
    fresh.write_text(text, encoding="utf-8")
    try:
        os.link(fresh, file)
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        # A disk without links: nobody else writes to a table while its warehouse is locked.
        if file.exists():
            raise FileExistsError(str(file)) from error
        fresh.rename(file)
    finally:
        fresh.unlink(missing_ok=True)


def _now() -> int:
    return int(time.time() * 1000)
