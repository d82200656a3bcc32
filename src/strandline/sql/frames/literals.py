"""Literals and types of a DataFrame's plan as text. Each literal keeps the very type that it has in the plan."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from strandline.sql.frames.printed import ATOM, UNARY, Printed
from strandline.sql.frames.refusals import refused
from strandline.sql.names import literal as string_literal
from strandline.sql.names import quoted

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SUFFIXES = {"integer": "", "long": "L", "short": "S", "byte": "Y"}
_TYPES = {
    "null": "void",
    "integer": "int",
    "long": "bigint",
    "short": "smallint",
    "byte": "tinyint",
    **{name: name for name in ("binary", "boolean", "float", "double", "string", "date", "timestamp", "variant")},
    "timestamp_ntz": "timestamp_ntz",
}


def literal(value: Any) -> Printed:
    """A literal of the plan."""
    kind = value.WhichOneof("literal_type")
    match kind:
        case "null":
            typed = value.null.WhichOneof("kind") != "null"
            return Printed(f"CAST(NULL AS {type_text(value.null)})" if typed else "NULL")
        case "boolean":
            return Printed("true" if value.boolean else "false")
        case "integer" | "long" | "short" | "byte":
            number = getattr(value, kind)
            return Printed(f"{number}{_SUFFIXES[kind]}", UNARY if number < 0 else ATOM)
        case "double" | "float":
            return _floating(getattr(value, kind), kind)
        case "decimal":
            return Printed(f"CAST('{value.decimal.value}' AS {_decimal(value.decimal)})")
        case "string":
            return Printed(text(value.string))
        case "binary":
            return Printed(f"X'{value.binary.hex()}'")
        case "date":
            return Printed(f"DATE '{_day(value.date)}'")
        case "timestamp":
            return Printed(f"TIMESTAMP '{_moment(value.timestamp)}Z'")
        case "timestamp_ntz":
            return Printed(f"TIMESTAMP_NTZ '{_moment(value.timestamp_ntz)}'")
        case "day_time_interval":
            return Printed(_interval(value.day_time_interval))
        case "array":
            return Printed(f"array({', '.join(literal(element).sql for element in value.array.elements)})")
        case _:
            raise refused(f"a literal of kind {kind}")


def text(value: str) -> str:
    """A string literal on one line."""
    return string_literal(value).replace("\n", "\\n").replace("\r", "\\r")


def type_text(found: Any) -> str:
    """A type of the plan as DDL."""
    kind = found.WhichOneof("kind")
    match kind:
        case "decimal":
            return f"decimal({found.decimal.precision},{found.decimal.scale})"
        case "char":
            return f"char({found.char.length})"
        case "var_char":
            return f"varchar({found.var_char.length})"
        case "array":
            return f"array<{type_text(found.array.element_type)}>"
        case "map":
            return f"map<{type_text(found.map.key_type)},{type_text(found.map.value_type)}>"
        case "struct":
            fields = ",".join(f"{quoted(f.name)}:{type_text(f.data_type)}" for f in found.struct.fields)
            return f"struct<{fields}>"
        case "day_time_interval":
            return "interval day to second"
        case "unparsed":
            return str(found.unparsed.data_type_string)
        case _ if kind in _TYPES:
            return _TYPES[kind]
        case _:
            raise refused(f"the type {kind}")


def _floating(value: float, kind: str) -> Printed:
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
        return Printed(f"CAST('{name}' AS {kind})")
    return Printed(f"{value!r}{'D' if kind == 'double' else 'F'}", UNARY if value < 0 else ATOM)


def _decimal(value: Any) -> str:
    """The type that a Connect server gives a decimal: wide enough for the digits, and for what was declared."""
    number = Decimal(value.value).as_tuple()
    exponent = int(number.exponent)
    scale = max(0, -exponent)
    precision = max(len(number.digits) + max(0, exponent), scale)
    scale = max(scale, value.scale)
    return f"decimal({max(precision, value.precision, scale)},{scale})"


def _day(days: int) -> str:
    return (date(1970, 1, 1) + timedelta(days=days)).isoformat()


def _moment(microseconds: int) -> str:
    moment = _EPOCH + timedelta(microseconds=microseconds)
    return moment.replace(tzinfo=None).isoformat(" ")


def _interval(microseconds: int) -> str:
    sign = "-" if microseconds < 0 else ""
    seconds, fraction = divmod(abs(microseconds), 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"INTERVAL '{sign}{days} {hour:02}:{minute:02}:{second:02}.{fraction:06}' DAY TO SECOND"
