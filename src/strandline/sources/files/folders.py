"""Which dumps of a table there are, in their order, and which of them are whole.

A dump is a file, or a folder with all that is below it. Whoever writes one does so under a name that is never taken
(``*.tmp``, ``_*``, ``.*``), or puts a marker beside it at the end, or is done when nothing has moved for a while.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path

from strandline.catalog import Json
from strandline.differential.snapshot import Format
from strandline.sources.files.declared import FilesTable

UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".filepart", ".crdownload", ".inprogress", ".swp", "~")
"""Endings of names under which programs write what is not finished."""

_SUFFIXES: dict[Format, tuple[str, ...]] = {
    "parquet": (".parquet",),
    "csv": (".csv", ".csv.gz"),
    "json": (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz"),
}


@dataclass(frozen=True)
class FoundDump:
    """A dump as it lies there: *stamp* changes when a file of it does, *modified* and *changed* are in nanoseconds."""

    name: str
    files: tuple[str, ...]
    stamp: str
    modified: int
    changed: int
    bytes: int
    marked: bool

    @property
    def identity(self) -> dict[str, Json]:
        """What it is found again by."""
        return {"dump": self.name, "stamp": self.stamp, "modified": self.modified}

    def whole(self, table: FilesTable, now: int) -> bool:
        """Whether its writer is done with it, at the time *now* in nanoseconds."""
        if table.marker is not None:
            return self.marked
        return now - self.changed >= table.settle * 1e9


def dumps(table: FilesTable) -> list[FoundDump]:
    """All dumps of a table, whole or not, the oldest first."""
    place = Path(table.path)
    if has_magic(table.path):
        paths: Iterable[Path] = map(Path, glob(table.path, recursive=True))
        # A pattern says which names are meant, whatever they end with.
        found = [_found(path, path.parent, table, _files_below(path, None)) for path in paths if not _hidden(path.name)]
    elif place.is_file():
        found = [_found(place, place.parent, table, [place])]
    elif table.whole:
        found = [_found(place, place.parent, table, _files_below(place, table.format))]
    else:
        entries = [Path(entry.path) for entry in _entries(place)]
        found = [_found(path, place, table, _files_below(path, table.format)) for path in entries]
    return sorted((dump for dump in found if dump is not None), key=lambda dump: order_of(table, dump.identity))


def passed_over(table: FilesTable) -> list[str]:
    """Files of a table's folder whose names say that they have another format than the declared one."""
    place = Path(table.path)
    if has_magic(table.path) or not place.is_dir():
        return []
    meant = _files_below(place, table.format)
    return [str(file.relative_to(place)) for file in _files_below(place, None) if file not in meant]


def order_of(table: FilesTable, identity: Mapping[str, Json]) -> tuple[int | str, ...]:
    """Where a dump stands among those of its table."""
    name, modified = str(identity["dump"]), identity["modified"]
    assert isinstance(modified, int)
    return (name,) if table.order == "name" else (modified, name)


def _entries(folder: Path) -> Iterator[os.DirEntry[str]]:
    if folder.is_dir():
        with os.scandir(folder) as entries:
            yield from (entry for entry in entries if not _hidden(entry.name))


def _hidden(name: str) -> bool:
    return name.startswith(("_", ".")) or name.endswith(UNFINISHED)


def _files_below(path: Path, format: Format | None) -> list[Path]:
    """The data files of a dump; with *format*, those whose names say that they have it."""
    if path.is_dir():
        found = [
            file
            for entry in sorted(_entries(path), key=lambda e: e.name)
            for file in _files_below(Path(entry.path), format)
        ]
        return found
    return [path] if format is None or path.name.endswith(_SUFFIXES[format]) else []


def _found(path: Path, below: Path, table: FilesTable, files: list[Path]) -> FoundDump | None:
    """The dump at *path*, or None if it holds no data and no marker says that this is all."""
    marked = table.marker is not None and _marker(path, table.marker).is_file()
    if not files and not (marked and path.is_dir()):
        return None
    try:
        stats = [(file, file.stat()) for file in files]
        own = path.stat()
    except FileNotFoundError:
        # Taken away between being listed and being looked at.
        return None
    lines = [
        f"{file.relative_to(path) if file != path else file.name} {s.st_size} {s.st_mtime_ns}" for file, s in stats
    ]
    return FoundDump(
        str(path.relative_to(below)),
        tuple(str(file) for file in files),
        hashlib.sha256("\n".join(lines).encode()).hexdigest()[:32],
        max([s.st_mtime_ns for _, s in stats], default=own.st_mtime_ns),
        # The time of the last change of a file's record cannot be set from outside, that of its contents can.
        max([max(s.st_mtime_ns, s.st_ctime_ns) for _, s in stats] + ([own.st_mtime_ns] if path.is_dir() else [])),
        sum(s.st_size for _, s in stats),
        marked,
    )


def _marker(path: Path, marker: str) -> Path:
    """In a folder the marker is a file of that name; a file has one of its own name with the marker at the end."""
    return path / marker if path.is_dir() else path.with_name(path.name + marker)
