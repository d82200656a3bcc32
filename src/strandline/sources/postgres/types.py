"""How a PostgreSQL column becomes a Spark column.

Every value travels as text, in one form, whichever way it comes: the log has what the type prints, a copy SELECTs the
same (:attr:`ColumnType.read`), and one expression of Spark makes the value of it (:attr:`ColumnType.parse`). Arrays
alone are rewritten, as JSON, because Spark does not read PostgreSQL's notation: for a copy the server does it, for the
log :attr:`ColumnType.canonical`. Text has this form only in a session with the settings ``connect.SESSION``.

A value that Spark's type cannot hold fails with SOURCE_VALUE, or becomes NULL where the source is declared so. It is
never rounded.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from strandline.errors import SourceError
from strandline.sources.postgres.arrays import as_json
from strandline.sources.postgres.tables import PgColumn, PgType
from strandline.sql.names import literal

Special = Literal["fail", "null"]
"""What becomes of a value that Spark's type cannot hold."""

ANY_NUMERIC = (38, 18)
"""Precision and scale in Spark of ``numeric`` without any: 20 digits before the point, 18 behind it."""

_WIDEST = 38
"""Digits of Spark's widest decimal."""

SHOWN = 100
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class ColumnType:
    """A column's type in Spark, and the way of its values there.

    *read*, from a column to an expression of PostgreSQL's SQL, gives the text form. *parse*, from the text form to an
    expression of Spark's SQL, gives the value; its argument is repeated, so it should be a column. *canonical*, from
    what the log has to the text form, is None if they are the same.
    """

    type: str
    read: Callable[[str], str]
    parse: Callable[[str], str]
    canonical: Callable[[str], str] | None = None


@dataclass(frozen=True)
class Unsupported:
    """A column without a type in Spark; *message* names it and what to do."""

    message: str


def mapping(column: PgColumn, declared: str | None, *, special: Special, label: str) -> ColumnType | Unsupported:
    """The type of a column in Spark, or the one that is *declared* for it; *label* is ``source.table.column``."""
    guard = _Guard(label, special)
    wanted = None if declared is None else re.sub(r"\s", "", declared.lower())
    if wanted == "string":
        return ColumnType("string", _reader(column.resolved.name), _as_it_is)
    found = _column_type(column.resolved, wanted, guard)
    if found is not None:
        return found
    source, _, rest = label.partition(".")
    others = ["decimal(p,s) with p up to 38", "bigint", "double"] if column.resolved.name == "numeric" else []
    if wanted is not None:
        natural = _column_type(column.resolved, None, guard)
        possible = ", ".join([*([natural.type] if natural else []), *others, "string"])
        raise SourceError(
            "SOURCE_TYPE",
            f"{label} is of type {column.type} and declared as {declared}; it can be {possible}; "
            f"correct `types` in sources/{source}.yml.",
        )
    declaration = f"types: {{{rest.removesuffix('.' + column.name)}: {{{column.name}: string}}}}"
    fitting = f" (or {', '.join(others)}, if all values fit)" if others else ""
    return Unsupported(
        f"{label} is of type {column.type}, which has no counterpart in Spark; declare `{declaration}`{fitting} in "
        f"sources/{source}.yml to take it as the text that PostgreSQL prints, or leave the column out of the view."
    )


@dataclass(frozen=True)
class _Guard:
    """Lets through the values that Spark's type can hold."""

    label: str
    special: Special

    def cases(self, text: str, wanted: str, *held: tuple[str, str]) -> str:
        """Of the pairs of a condition and a value, the first whose condition holds."""
        branches = [f"WHEN {condition} THEN {value}" for condition, value in held]
        if self.special == "fail":
            branches.append(f"WHEN {text} IS NOT NULL THEN {self._refuse(text, wanted)}")
        return f"CASE {' '.join(branches)} END"

    def _refuse(self, text: str, wanted: str) -> str:
        """Fail; the message depends on the value, so that no engine computes it before it knows that it is needed."""
        before, after = f"[SOURCE_VALUE] {self.label}: ", cannot_be_held(wanted)
        return f"raise_error(concat({literal(before)}, substring({text}, 1, {SHOWN}), {literal(after)}))"


def cannot_be_held(wanted: str) -> str:
    """What is said, after the value, of one that Spark's type cannot hold."""
    return (
        f" cannot be held by {wanted}; correct it in PostgreSQL, declare the column as string under `types`, "
        'or set special_values: "null".'
    )


_Parse = Callable[[str, _Guard], str]


def _column_type(pg: PgType, wanted: str | None, guard: _Guard) -> ColumnType | None:
    """The type to be used, None if there is none, or if the one *wanted* will not do."""
    if pg.element is not None:
        return _array(pg.element, wanted, guard)
    found = _scalar(pg, wanted)
    if found is None:
        return None
    type_, parse = found
    return ColumnType(type_, _reader(pg.name), lambda text: parse(text, guard))


def _array(element: PgType, wanted: str | None, guard: _Guard) -> ColumnType | None:
    inner = None if wanted is None else re.fullmatch("array<(.*)>", wanted)
    if element.element is not None or (wanted is not None and inner is None):
        return None
    found = _scalar(element, inner[1] if inner else None)
    if found is None:
        return None
    type_, parse = found
    whole = f"array<{type_}>"

    def parse_array(text: str) -> str:
        items = f"from_json({text}, 'array<string>', map('mode', 'FAILFAST'))"
        if parse is not _plain:
            items = f"transform({items}, x -> {parse('x', guard)})"
        # Any number of dimensions may come; with more than one, elements are arrays and no strings.
        return guard.cases(text, whole, (f"{text} NOT LIKE '[[%'", items))

    return ColumnType(whole, _array_reader(element.name), parse_array, _canonical_array(element.name))


def _scalar(pg: PgType, wanted: str | None) -> tuple[str, _Parse] | None:
    if pg.name == "numeric":
        natural = _numeric(pg.typmod, wanted)
    elif pg.kind == "e" or pg.name in _STRINGS or pg.name.endswith(".citext"):
        natural = "string", _plain
    else:
        natural = _TYPES.get(pg.name)
    if natural is not None and wanted == "string":
        return "string", _plain
    return natural if natural is not None and wanted in (None, natural[0]) else None


def _plain(text: str, guard: _Guard) -> str:
    return text


def _as_it_is(text: str) -> str:
    return text


def _cast(type_: str) -> tuple[str, _Parse]:
    return type_, lambda text, guard: f"CAST({text} AS {type_.upper()})"


# Numbers


def _numeric(typmod: int, wanted: str | None) -> tuple[str, _Parse] | None:
    """A decimal that holds what the column can; what is declared instead holds or refuses."""
    if wanted == "bigint":
        return wanted, _whole_number
    if wanted == "double":
        return wanted, _double
    declared = re.fullmatch(r"decimal\((\d+),(\d+)\)", wanted or "")
    precision, scale = (int(declared[1]), int(declared[2])) if declared else _precision(typmod)
    if not 1 <= precision <= _WIDEST or scale > precision:
        return None
    type_ = f"decimal({precision},{scale})"
    return type_, lambda text, guard: guard.cases(
        text, type_, (f"{text} RLIKE {_fits(precision - scale, scale)}", f"CAST({text} AS {type_.upper()})")
    )


def _precision(typmod: int) -> tuple[int, int]:
    """Precision and scale for Spark, whose scale is neither negative nor above the precision."""
    if typmod < 0:
        return ANY_NUMERIC
    precision, scale = (typmod - 4) >> 16 & 0xFFFF, ((typmod - 4 & 0x7FF) ^ 0x400) - 0x400
    return (precision - scale, 0) if scale < 0 else (max(precision, scale), scale)


def _fits(before: int, behind: int) -> str:
    """Matches numbers with so many digits before and behind the point; zeros that change nothing do not count."""
    return literal(f"^-?0*[0-9]{{0,{before}}}([.][0-9]{{0,{behind}}}0*)?$")


def _whole_number(text: str, guard: _Guard) -> str:
    number = f"CAST({text} AS DECIMAL(38,0))"
    least, most = -(2**63), 2**63 - 1
    held = f"CASE WHEN {text} RLIKE {_fits(19, 0)} THEN {number} BETWEEN {least} AND {most} END"
    return guard.cases(text, "bigint", (held, f"CAST({number} AS BIGINT)"))


def _double(text: str, guard: _Guard) -> str:
    """A double tells numbers of up to 15 digits apart, far from its limits."""
    number = f"CAST({text} AS DOUBLE)"
    digits = f"regexp_replace(regexp_replace({text}, '[-.]', ''), {literal('^0+|0+$')}, '')"
    held = (
        f"{text} IN ('NaN', 'Infinity', '-Infinity') OR {digits} = '' "
        f"OR (length({digits}) <= 15 AND abs({number}) BETWEEN 1e-300 AND 1e300)"
    )
    return guard.cases(text, "double", (held, number))


# Days and times


def _moment(type_: str) -> tuple[str, _Parse]:
    """Years BC and up to 99999; Spark counts 1 BC as year 0. What is left is infinity, and six digits and more."""

    def parse(text: str, guard: _Guard) -> str:
        year = f"lpad(CAST(CAST(substring({text}, 1, 4) AS INT) - 1 AS STRING), 4, '0')"
        before_christ = f"concat('-', {year}, substring({text}, 5, length({text}) - 7))"
        return guard.cases(
            text,
            type_,
            (f"{text} RLIKE {literal('^[0-9]{4,5}-.*[0-9]$')}", f"CAST({text} AS {type_.upper()})"),
            (f"{text} LIKE '%-% BC'", f"CAST({before_christ} AS {type_.upper()})"),
        )

    return type_, parse


# All types but numeric, enums and citext

_TYPES: dict[str, tuple[str, _Parse]] = {
    "int2": _cast("smallint"),
    "int4": _cast("int"),
    "int8": _cast("bigint"),
    "oid": _cast("bigint"),
    "float4": _cast("float"),
    "float8": _cast("double"),
    "bool": _cast("boolean"),
    "date": _moment("date"),
    "timestamp": _moment("timestamp_ntz"),
    "timestamptz": _moment("timestamp"),
    "bytea": ("binary", lambda text, guard: f"unhex(substring({text}, 3))"),
}

_STRINGS = (
    frozenset({"text", "varchar", "bpchar", "char", "name", "json", "jsonb", "xml", "uuid", "bit", "varbit"})
    | frozenset({"inet", "cidr", "macaddr", "macaddr8"})
    | frozenset({"time", "timetz", "interval"})
)

_PRINTED_OTHERWISE = frozenset({"bool", "bpchar", "char", "inet", "cidr", "xml"})
"""Casting these to text gives something else than they print: true for t, no padding, 1.2.3.4/32 for 1.2.3.4."""

_CAST_TO_TEXT = (_STRINGS | _TYPES.keys() | {"numeric"}) - _PRINTED_OTHERWISE


def _reader(name: str) -> Callable[[str], str]:
    """What the type prints; a type of somebody else's may have a cast to text of its own."""
    if name in _CAST_TO_TEXT:
        return lambda column: f"{column}::text"
    return lambda column: f"CASE WHEN num_nulls({column}) = 0 THEN concat({column}) END"


def _array_reader(name: str) -> Callable[[str], str]:
    if name in _PRINTED_OTHERWISE - {"bool"}:
        return lambda column: f"array_to_json({column})::text"
    return lambda column: f"array_to_json({column}::text[])::text"


def _canonical_array(name: str) -> Callable[[str], str]:
    if name == "bool":
        return lambda text: as_json(text, {"t": "true", "f": "false"}.__getitem__)
    return as_json
