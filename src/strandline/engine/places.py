"""Folders of a warehouse, wherever they lie: on a disk of this machine, on a shared one, or in an object store.

A place without a scheme, or with ``file``, is a path of this machine; any other is reached as delta-rs reaches it, with
its storage options.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from deltalake.fs import DeltaStorageHandler
from pyarrow import fs

_BUFFER = 1 << 16

Options = Mapping[str, str] | None


@dataclass(frozen=True)
class File:
    """A file below a folder: its path from there, its size, and when it was last written, since the epoch."""

    path: str
    bytes: int
    modified: float


def on_disk(place: str) -> Path | None:
    """The path of a place in this machine's file system; None if it is elsewhere."""
    if place.startswith("file://"):
        return Path(unquote(urlsplit(place).path))
    return None if "://" in place else Path(place)


def filesystem(place: str, options: Options = None) -> fs.PyFileSystem:
    """What lies below a place, with paths from there."""
    return fs.PyFileSystem(DeltaStorageHandler(place, dict(options or {}) or None))


def remove(folder: str, options: Options = None) -> None:
    """Remove a folder with all that is in it; one that is not there is no matter."""
    if (here := on_disk(folder)) is not None:
        shutil.rmtree(here, ignore_errors=True)
        return
    above, _, name = folder.rstrip("/").rpartition("/")
    filesystem(above, options).delete_dir(name)


def folders(place: str, options: Options = None) -> list[str]:
    """The names of the folders directly below a place, sorted; none if it is not there."""
    if (here := on_disk(place)) is not None:
        return sorted(entry.name for entry in here.iterdir() if entry.is_dir()) if here.is_dir() else []
    return sorted(info.base_name for info in _listed(place, options, recursive=False) if not info.is_file)


def files(place: str, options: Options = None) -> list[File]:
    """All files below a place, however deep; none if it is not there."""
    if (here := on_disk(place)) is None:
        found = [info for info in _listed(place, options, recursive=True) if info.is_file]
        return [File(info.path, info.size, info.mtime.timestamp()) for info in found]
    below = [Path(folder, name) for folder, _, names in os.walk(here) for name in names]
    return [File(str(file.relative_to(here)), (seen := file.stat()).st_size, seen.st_mtime) for file in below]


def read_text(place: str, name: str, options: Options = None) -> str | None:
    """The text of a file directly below a place; None if it is not there."""
    try:
        if (here := on_disk(place)) is not None:
            return (here / name).read_text(encoding="utf-8")
        with filesystem(place, options).open_input_stream(name) as stream:
            return str(stream.read().decode())
    except FileNotFoundError:
        return None


def write_text(place: str, name: str, text: str, options: Options = None) -> None:
    """Write a file directly below a place, whole or not at all."""
    if (here := on_disk(place)) is None:
        with filesystem(place, options).open_output_stream(name, buffer_size=_BUFFER) as stream:
            stream.write(text.encode())
        return
    here.mkdir(parents=True, exist_ok=True)
    fresh = here / f"{name}.new"
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(here / name)


def _listed(place: str, options: Options, *, recursive: bool) -> list[fs.FileInfo]:
    selector = fs.FileSelector("", recursive=recursive, allow_not_found=True)
    return list(filesystem(place, options).get_file_info(selector))
