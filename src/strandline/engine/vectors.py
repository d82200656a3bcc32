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
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlparse

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
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

_TOLD = ("path", "size", "modificationTime", "stats", "deletionVector")
"""What is passed on of a file."""

_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)

Places = Mapping[str, Numbers]
"""By the paths of files: places of rows in them."""

NONE: Numbers = np.empty(0, np.int64)

Action = dict[str, Any]


class Unknown(Exception):
    """The log does not say, in a form that is known here, what has to be known of a file."""


def deleted_rows(table: DeltaTable) -> dict[str, Numbers]:
    """Of files that have a vector, by their paths below the table's folder: where in them deleted rows are, sorted."""
    root = unquote(urlparse(table.table_uri).path).rstrip("/") + "/"
    found = pa.table(table.deletion_vectors().read_all())
    paths = [unquote(urlparse(uri).path) for uri in found.column("filepath").to_pylist()]
    if not all(path.startswith(root) for path in paths):
        raise DeltaError(f"{root} has deletion vectors of files that are not below it")
    kept = found.column("selection_vector")
    return {
        path.removeprefix(root): np.flatnonzero(~kept[number].values.to_numpy(zero_copy_only=False))
        for number, path in enumerate(paths)
    }


def known_to_writers(table: DeltaTable) -> bool:
    """Whether rows of a table may be marked, and it asks nothing of its writers that is not known here.

    Vectors are switched on, or nobody said that they are not to be.
    """
    protocol, configuration = table.protocol(), table.metadata().configuration
    known = protocol.min_writer_version <= 2 or _KNOWN.issuperset(protocol.writer_features or ("",))
    may = configuration.get(SWITCH, "true") == "true" and configuration.get("delta.appendOnly", "false") != "true"
    return known and may


def switched_on(table: DeltaTable) -> bool:
    """Whether readers of a table know that rows may be marked."""
    protocol = table.protocol()
    there = all(FEATURE in (features or ()) for features in (protocol.reader_features, protocol.writer_features))
    return there and table.metadata().configuration.get(SWITCH) == "true"


@dataclass(frozen=True)
class Marks:
    """Rows of files that are to be marked: what the log says of the files, and the vectors of those that stay."""

    folder: Path
    changed: Mapping[str, Action]
    vectors: Mapping[str, Action]
    rows: int

    def commit(self, version: int, said: str) -> None:
        """Mark them in the commit of a *version*, which carries *said*; FileExistsError if there is one of it."""
        actions: list[Action] = [
            {
                "commitInfo": {
                    "timestamp": _now(),
                    "operation": "DELETE",
                    "operationParameters": {},
                    "operationMetrics": {"numDeletedRows": str(self.rows)},
                    "isBlindAppend": False,
                    "userMetadata": said,
                }
            }
        ]
        for path, add in self.changed.items():
            actions.append({"remove": _removed(add)})
            if path in self.vectors:
                with_vector = {"stats": _loose(add), "deletionVector": self.vectors[path]}
                actions.append({"add": {**add, "dataChange": True, **with_vector}})
        log = self.folder / "_delta_log"
        _commit(log, version, actions)
        if version // CHECKPOINT_EVERY > _last_checkpoint(log) // CHECKPOINT_EVERY:
            # The next ones try again.
            with suppress(DeltaError, OSError):
                DeltaTable(str(self.folder)).create_checkpoint()


def marks(folder: Path, version: int, places: Places, deleted: Places) -> Marks:
    """Make ready what marks rows of a *version* at *places*, in whose files others are *deleted*."""
    changed = added(folder / "_delta_log", version, set(places))
    gone = {path: np.union1d(found, deleted.get(path, NONE)) for path, found in places.items()}
    left = {path: found for path, found in gone.items() if len(found) < _records(changed[path])}
    return Marks(folder, changed, _written(folder, left), sum(len(found) for found in places.values()))


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
    """How files of a version came into it, by their paths; Unknown if the log does not say, or not all of it."""
    found: dict[str, Action] = {}
    for number in range(version, -1, -1):
        checkpoint = log / f"{number:020d}.checkpoint.parquet"
        whole = checkpoint.exists()
        adds, removed = (_of_checkpoint(checkpoint), set()) if whole else _of_commit(log / f"{number:020d}.json")
        found.update({path: add for path, add in adds.items() if path in paths and path not in found})
        if removed & (paths - found.keys()):
            break
        if len(found) == len(paths):
            for add in found.values():
                _records(add)
            return found
        if whole:
            break
    raise Unknown(f"{log}: {', '.join(sorted(paths - set(found)))}")


def _of_commit(file: Path) -> tuple[dict[str, Action], set[str]]:
    """The files that a commit added, and the paths of those that it removed."""
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
        actions = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError) as error:
        raise Unknown(str(file)) from error
    adds = {unquote(action["add"]["path"]): action["add"] for action in actions if "add" in action}
    return adds, {unquote(action["remove"]["path"]) for action in actions if "remove" in action}


def _of_checkpoint(file: Path) -> dict[str, Action]:
    """The files that a checkpoint has."""
    try:
        adds = pq.read_table(file, columns=["add"]).column("add").drop_null().combine_chunks()
        parts = {name: pc.struct_field(adds, name).to_pylist() for name in _TOLD}
    except (OSError, pa.ArrowException) as error:
        raise Unknown(str(file)) from error
    told = [dict(zip(_TOLD, each, strict=True)) for each in zip(*parts.values(), strict=True)]
    return {unquote(add["path"]): _kept(add) for add in told}


def _kept(add: Action) -> Action:
    """An action as a commit would have it."""
    return {name: add[name] for name in _TOLD[:-1]} | {"partitionValues": {}} | _vector_of(add)


def _records(add: Action) -> int:
    """The rows of a file, deleted ones included."""
    told = json.loads(add.get("stats") or "{}").get("numRecords")
    if told is None:
        raise Unknown(f"{add['path']} has no statistics")
    return int(told)


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
    # Decimals stay as they are written: as floating numbers they would be others.
    mark = uuid.uuid4().hex
    stats = json.loads(add["stats"], parse_float=lambda text: f"{mark}{text}{mark}")
    return json.dumps({**stats, "tightBounds": False}).replace(f'"{mark}', "").replace(f'{mark}"', "")


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
