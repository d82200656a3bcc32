"""Types of Arrow and of Spark's SQL, one for the other, without either being started."""

from __future__ import annotations

import re

import pyarrow as pa

_SPARK: dict[pa.DataType, str] = {
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    # Parquet files that have these are read so by Spark.
    pa.uint8(): "smallint",
    pa.uint16(): "int",
    pa.uint32(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.date32(): "date",
    pa.string(): "string",
    pa.large_string(): "string",
    pa.string_view(): "string",
    pa.binary(): "binary",
    pa.large_binary(): "binary",
    pa.binary_view(): "binary",
}

_ARROW: dict[str, pa.DataType] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "date": pa.date32(),
    "string": pa.string(),
    "binary": pa.binary(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}

_OTHER_NAMES = {"integer": "int", "long": "bigint", "short": "smallint", "byte": "tinyint", "real": "float"}
_ARRAY = re.compile(r"array<([^<>]*)>")
_DECIMAL = re.compile(r"(?:decimal|numeric|dec)(?:\((\d+)(?:,(\d+))?\))?")

PLAIN_TYPES = (*_ARROW, "decimal(p,s)")
"""What :func:`plain_type` knows."""


def spark_type(kind: pa.DataType) -> str | None:
    """The type of Spark that holds values of *kind*, as its DDL has it; None if there is none."""
    if kind in _SPARK:
        return _SPARK[kind]
    if pa.types.is_dictionary(kind):
        return spark_type(kind.value_type)
    if pa.types.is_timestamp(kind):
        return "timestamp_ntz" if kind.tz is None else "timestamp"
    if pa.types.is_decimal128(kind):
        return f"decimal({kind.precision},{kind.scale})" if 0 <= kind.scale <= kind.precision else None
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _nested("array", kind.value_type)
    if pa.types.is_map(kind):
        return _nested("map", kind.key_type, kind.item_type)
    if pa.types.is_struct(kind):
        inner = [(field.name, spark_type(field.type)) for field in kind]
        if any(found is None for _, found in inner):
            return None
        return f"struct<{','.join(f'{_field(name)}:{found}' for name, found in inner)}>"
    return None


def plain_type(text: str) -> str | None:
    """A type without parts as Spark's DDL has it, from what a person wrote; None if there is no such type."""
    written = text.lower().replace(" ", "")
    written = _OTHER_NAMES.get(written, written)
    if written in _ARROW:
        return written
    found = _DECIMAL.fullmatch(written)
    if found is None:
        return None
    precision, scale = int(found[1] or 10), int(found[2] or 0)
    return f"decimal({precision},{scale})" if 0 < precision <= 38 and scale <= precision else None


def arrow_type(type_: str) -> pa.DataType:
    """The type of Arrow for a type of :func:`plain_type`, or for an array of such."""
    array = _ARRAY.fullmatch(type_)
    if array is not None:
        return pa.list_(arrow_type(array[1]))
    found = _DECIMAL.fullmatch(type_)
    return _ARROW[type_] if found is None else pa.decimal128(int(found[1]), int(found[2]))


def has_arrow_type(type_: str) -> bool:
    """Whether :func:`arrow_type` knows the type."""
    array = _ARRAY.fullmatch(type_)
    inner = type_ if array is None else array[1]
    return plain_type(inner) == inner


def _nested(outer: str, *parts: pa.DataType) -> str | None:
    found = [spark_type(part) for part in parts]
    return None if any(part is None for part in found) else f"{outer}<{','.join(map(str, found))}>"


def _field(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else "`" + name.replace("`", "``") + "`"
