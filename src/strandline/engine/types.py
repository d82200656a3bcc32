"""Types as text: from Delta's schema JSON, and from Spark's, to the DDL that Spark reads back."""

from __future__ import annotations

import json
from typing import Any

from strandline.algebra.schema import Column, Schema

_PRIMITIVES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}


def columns_of(schema_json: str) -> Schema:
    """The columns of a schema that Spark or Delta wrote as JSON."""
    return tuple(
        Column(field["name"], type_of(field["type"]), field["nullable"]) for field in json.loads(schema_json)["fields"]
    )


def type_of(found: Any) -> str:
    """A type of a schema JSON as DDL; names of struct fields are quoted where they must be."""
    if isinstance(found, str):
        return _PRIMITIVES.get(found, found)
    match found["type"]:
        case "struct":
            inner = ",".join(_field(f["name"]) + ":" + type_of(f["type"]) for f in found["fields"])
            return f"struct<{inner}>"
        case "array":
            return f"array<{type_of(found['elementType'])}>"
        case "map":
            return f"map<{type_of(found['keyType'])},{type_of(found['valueType'])}>"
        case other:
            return str(other)


def _field(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else "`" + name.replace("`", "``") + "`"
