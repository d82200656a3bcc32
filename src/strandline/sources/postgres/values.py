"""The values of PostgreSQL's columns in Python, for rows that are few enough to be worked on without Spark.

They are made of the text form that :mod:`~strandline.sources.postgres.types` defines, and are those that Spark makes
of it: a decimal has the scale of Spark's type, a ``timestamp`` is a moment in UTC, an array is a tuple. What Spark's
type cannot hold fails with SOURCE_VALUE, or becomes None where the source is declared so. Days before the year 1 and
after 9999 are held by Spark and not by Python: they fail in any case, for None would be another value than Spark's.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Context, Decimal
from typing import Any

from strandline.errors import SourceError
from strandline.sources.postgres.tables import PgType
from strandline.sources.postgres.types import SHOWN, Special, cannot_be_held

Value = Callable[[str], Any]
"""From the text form to the value."""

_EXACT = Context(prec=1000)
_LEAST, _MOST = -(2**63), 2**63 - 1
_TRUTHS = {"t": True, "true": True, "f": False, "false": False}


def value(pg: PgType, type_: str, *, special: Special, label: str) -> Value:
    """How values of a column of type *pg*, which has *type_* in Spark, are made; *label* is for messages."""
    policy = _Policy(label, special)
    inner = re.fullmatch("array<(.*)>", type_)
    if inner is None:
        return _scalar(pg, type_, policy)
    assert pg.element is not None
    return _array(_scalar(pg.element, inner[1], policy), type_, policy)


@dataclass(frozen=True)
class _Policy:
    """What becomes of a value that Spark's type cannot hold."""

    label: str
    special: Special

    def refuse(self, text: str, wanted: str) -> None:
        if self.special == "fail":
            raise SourceError("SOURCE_VALUE", f"{self.label}: {text[:SHOWN]}{cannot_be_held(wanted)}")

    def refuse_year(self, text: str) -> None:
        raise SourceError(
            "SOURCE_VALUE",
            f"{self.label}: {text[:SHOWN]} is not within the years 1 to 9999, which are all that a view over tables "
            "that are not copied can have; correct it in PostgreSQL, declare the column as string under `types`, or "
            "let the tables be copied.",
        )


def _scalar(pg: PgType, type_: str, policy: _Policy) -> Value:
    match type_:
        case "string":
            return str
        case "smallint" | "int" | "bigint" if pg.name != "numeric":
            return int
        case "bigint":
            return lambda text: _whole_number(text, policy)
        case "double":
            return (lambda text: _double(text, policy)) if pg.name == "numeric" else float
        case "float":
            return _single
        case "boolean":
            return _TRUTHS.__getitem__
        case "binary":
            return lambda text: bytes.fromhex(text[2:])
        case "date":
            return lambda text: _moment(text, type_, date.fromisoformat, policy)
        case "timestamp" | "timestamp_ntz":
            return lambda text: _moment(text, type_, datetime.fromisoformat, policy)
        case _:
            return _decimal(type_, policy)


def _array(element: Value, type_: str, policy: _Policy) -> Value:
    def made(text: str) -> tuple[Any, ...] | None:
        if text.startswith("[["):
            policy.refuse(text, type_)
            return None
        return tuple(None if item is None else element(item) for item in json.loads(text))

    return made


def _fits(before: int, behind: int) -> re.Pattern[str]:
    """Matches numbers with so many digits before and behind the point; zeros that change nothing do not count."""
    return re.compile(f"-?0*[0-9]{{0,{before}}}([.][0-9]{{0,{behind}}}0*)?")


def _decimal(type_: str, policy: _Policy) -> Value:
    precision, scale = map(int, type_.removeprefix("decimal(").removesuffix(")").split(","))
    fits, unit = _fits(precision - scale, scale), Decimal(1).scaleb(-scale)

    def made(text: str) -> Decimal | None:
        if fits.fullmatch(text) is None:
            policy.refuse(text, type_)
            return None
        return Decimal(text).quantize(unit, context=_EXACT)

    return made


_WHOLE = _fits(19, 0)


def _whole_number(text: str, policy: _Policy) -> int | None:
    if _WHOLE.fullmatch(text) is not None and _LEAST <= (number := int(Decimal(text))) <= _MOST:
        return number
    policy.refuse(text, "bigint")
    return None


def _double(text: str, policy: _Policy) -> float | None:
    """A double tells numbers of up to 15 digits apart, far from its limits."""
    digits = re.sub("[-.]", "", text).strip("0")
    number = float(text)
    if digits in ("", "NaN", "Infinity") or (len(digits) <= 15 and 1e-300 <= abs(number) <= 1e300):
        return number
    policy.refuse(text, "double")
    return None


def _single(text: str) -> float:
    """The nearest number of 32 bits."""
    (number,) = struct.unpack("f", struct.pack("f", float(text)))
    return float(number)


_HELD = re.compile(r"[0-9]{4,5}-.*[0-9]|.*-.* BC")
_IN_PYTHON = re.compile(r"[0-9]{4}-.*[0-9]")


def _moment(text: str, type_: str, made: Callable[[str], date], policy: _Policy) -> date | None:
    if _IN_PYTHON.fullmatch(text) is not None:
        return made(text)
    if _HELD.fullmatch(text) is not None:
        policy.refuse_year(text)
    policy.refuse(text, type_)
    return None
