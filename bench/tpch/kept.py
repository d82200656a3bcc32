"""Repeats that are finished, kept so that a run that was cut short goes on where it stood."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

Seconds = dict[str, float]

WHOLE = "whole"
"""Of a refresh, among seconds by view."""


@dataclass(frozen=True)
class Repeat:
    """One change of the tables, and what every contender made of it; seconds are by view."""

    changed: dict[str, dict[str, int]]
    refresh: dict[str, Any]
    recompute: dict[str, Seconds] = field(default_factory=dict)
    """By way; empty where only a few repeats recompute."""
    merge: Seconds = field(default_factory=dict)
    duckdb: Seconds = field(default_factory=dict)
    cpu: dict[str, Seconds] = field(default_factory=dict)
    """Seconds of processors, by contender or way of recomputing; of the refresh only as a whole."""
    floors: Seconds = field(default_factory=dict)
    wrong: dict[str, str] = field(default_factory=dict)
    load: float = 0.0
    """Of the machine, when the repeat began."""
    under: dict[str, Any] = field(default_factory=dict)
    """The code, and the settings, with which it was measured."""
    began: str = ""


def read(file: Path, under: Mapping[str, Any]) -> list[Repeat]:
    """The repeats that *file* holds and were measured *under* the same code and settings; none if it is not there."""
    if not file.exists():
        return []
    found = [Repeat(**each) for each in json.loads(file.read_text(encoding="utf-8"))["repeats"]]
    return [repeat for repeat in found if repeat.under == under]


def to_dict(repeat: Repeat) -> dict[str, Any]:
    return {name: _rounded(value) for name, value in asdict(repeat).items()}


def _rounded(value: Any) -> Any:
    match value:
        case float():
            return round(value, 4)
        case dict():
            return {key: _rounded(each) for key, each in value.items()}
        case list():
            return [_rounded(each) for each in value]
    return value
