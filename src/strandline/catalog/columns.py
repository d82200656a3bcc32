"""Columns as the catalog stores them."""

from __future__ import annotations

from collections.abc import Iterable

from strandline.algebra.schema import Column
from strandline.catalog.jsontext import Json


def columns_to_json(columns: Iterable[Column]) -> Json:
    """The stored form."""
    return [{"name": one.name, "type": one.type, "nullable": one.nullable} for one in columns]


def columns_from_json(stored: Iterable[dict[str, Json]]) -> tuple[Column, ...]:
    """The columns again."""
    return tuple(Column(str(one["name"]), str(one["type"]), bool(one["nullable"])) for one in stored)
