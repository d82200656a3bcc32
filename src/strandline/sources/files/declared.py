"""What is declared of a table that arrives as files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from strandline.differential.snapshot import Format
from strandline.differential.unreadable import Policy

Order = Literal["name", "modified"]

SETTLE = 5.0
"""Seconds for which a dump must have been left alone, unless told otherwise."""


@dataclass(frozen=True)
class FilesTable:
    """A table whose dumps lie at *path*: a folder with a file or a folder for each, a pattern, or one file.

    With *whole* all files of the folder make up one dump, which is overwritten. Rows are told apart by *key*; without
    one they are a bag. *columns* are names with Spark types, for formats that do not say. Dumps come in the *order* of
    their names or of their last change. A dump is whole when its *marker* is there, or else when its files were left
    alone for *settle* seconds.
    """

    path: str
    format: Format
    whole: bool = False
    key: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    order: Order = "name"
    marker: str | None = None
    settle: float = SETTLE
    shrink: float = 0.5
    unreadable: Policy = "fail"
