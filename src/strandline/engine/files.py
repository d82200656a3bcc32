"""Files below a path, wherever it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from deltalake.fs import DeltaStorageHandler
from pyarrow import fs


def has_parquet(path: str, storage_options: Mapping[str, str] | None = None) -> bool:
    """Whether a Parquet file lies directly below *path*: an engine may write none for a result without rows."""
    if "://" not in path:
        return any(Path(path).glob("*.parquet"))
    filesystem = fs.PyFileSystem(DeltaStorageHandler(path, dict(storage_options or {}) or None))
    found = filesystem.get_file_info(fs.FileSelector("", recursive=False))
    return any(str(info.path).endswith(".parquet") for info in found)
