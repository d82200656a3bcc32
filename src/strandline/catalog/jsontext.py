"""JSON values, and the one text form in which the catalog stores and compares them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any, TypeAlias

from sqlalchemy import Dialect, Text
from sqlalchemy.types import TypeDecorator

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


def canonical(value: Json | Mapping[str, Json]) -> str:
    """The text of *value*: keys sorted, no blanks, ASCII only, so that equal values have equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False, default=_plain)


def digest(value: Json) -> str:
    """A short stand-in for *value* in an index; positions can be longer than an index entry may be."""
    return hashlib.sha256(canonical(value).encode("ascii")).hexdigest()


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} is not a JSON value")


class Unreadable(Exception):
    """A stored text is not what its column holds."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(text)


class JsonText(TypeDecorator[Any]):
    """A column of canonical JSON text; ``None`` is stored as JSON's ``null``."""

    impl = Text
    cache_ok = True
    coerce_to_is_types = ()

    def process_bind_param(self, value: Any, dialect: Dialect) -> str:
        """The stored text."""
        return canonical(value)

    def process_result_value(self, value: str | None, dialect: Dialect) -> Any:
        """The value again."""
        try:
            return None if value is None else json.loads(value)
        except ValueError:
            raise Unreadable(str(value)) from None
