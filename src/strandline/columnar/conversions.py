"""Values as others: casts, parts of texts and dates."""

from __future__ import annotations

import calendar
import re
from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from strandline.columnar.arithmetic import narrow
from strandline.columnar.types import MOST_DIGITS, NotHere, arrow_type, as_decimal, decimal
from strandline.columnar.values import Value


def like(value: Value, pattern: Any) -> Value:
    """Whether a text is like a pattern, which stands in the text of the expression."""
    if not pa.types.is_string(value.type) or not isinstance(pattern, exp.Literal) or not pattern.is_string:
        raise NotHere("LIKE of what is not a text and a constant")
    return Value(pc.match_like(value.data, pattern.this))


def substring(value: Value, start: Any, length: Any) -> Value:
    """Some characters of a text, from the first on that is counted as 1."""
    found = [n.this for n in (start, length) if isinstance(n, exp.Literal) and not n.is_string and n.this.isdecimal()]
    if not pa.types.is_string(value.type) or len(found) < 2 or int(found[0]) < 1 or value.constant:
        raise NotHere("substring of what is not a column from a constant place on")
    first = int(found[0]) - 1
    return Value(pc.utf8_slice_codeunits(value.data, first, first + int(found[1])))


PARTS = {"YEAR": pc.year, "MONTH": pc.month, "DAY": pc.day, "QUARTER": pc.quarter}


def part_of_date(part: Callable[[Any], Any], value: Value) -> Value:
    """The year, or another part, of a date."""
    if not pa.types.is_date(value.type):
        raise NotHere(f"a part of {value.type}")
    return Value(part(value.data)).cast(pa.int32())


def moved(value: Value, by: exp.Interval, sign: int) -> Value:
    """A date that stands in the text, some days, months or years on."""
    number, unit = by.this, str(by.args.get("unit") or "").upper().removesuffix("S")
    if not value.constant or not pa.types.is_date(value.type) or not isinstance(number, exp.Literal):
        raise NotHere("an interval beside what is not a constant")
    text = number.this
    if not text.isdecimal() or unit not in ("DAY", "WEEK", "MONTH", "YEAR"):
        raise NotHere(f"an interval of {text} {unit}")
    count = sign * int(text)
    try:
        day = value.data.as_py()
        found = _months_on(day, count * (12 if unit == "YEAR" else 1)) if unit in ("MONTH", "YEAR") else None
        return Value(pa.scalar(found or day + timedelta(days=count * (7 if unit == "WEEK" else 1)), pa.date32()))
    except (ValueError, OverflowError) as error:
        raise NotHere(f"a date and an interval of {text} {unit}") from error


def _months_on(day: date, months: int) -> date:
    years, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    return date(years, month + 1, min(day.day, calendar.monthrange(years, month + 1)[1]))


def cast(value: Value, kind: str) -> Value:
    """A value as one of another type, where nothing of it is lost."""
    wanted = arrow_type(kind)
    if value.type == wanted or pa.types.is_null(value.type):
        return value.cast(wanted)
    if value.constant and pa.types.is_string(value.type) and pa.types.is_date(wanted):
        text = value.data.as_py()
        if text is None or not re.fullmatch(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
            raise NotHere(f"{text} as a date")
        return Value(pa.scalar(text).cast(wanted))
    if pa.types.is_decimal(wanted) and pa.types.is_decimal(value.type) and wanted.scale < value.type.scale:
        digits = value.type.precision
        room = (narrow(value) if digits == MOST_DIGITS else value).cast(
            decimal(min(digits + 1, MOST_DIGITS), value.type.scale)
        )
        return Value(pc.round(room.data, wanted.scale, "half_towards_infinity")).cast(wanted)
    exact = pa.types.is_signed_integer(wanted) or pa.types.is_decimal(wanted)
    if exact and (pa.types.is_signed_integer(value.type) or pa.types.is_decimal(value.type)):
        return value.cast(as_decimal(value.type)).cast(wanted)
    raise NotHere(f"{value.type} as {kind}")
