"""Aggregate calls cut into partial aggregates that can be stored, and the expression that gives the result back."""

from __future__ import annotations

import re
from dataclasses import dataclass

from strandline.algebra.plan import COUNT, Partial, PartialKind
from strandline.algebra.scalar import Call, Col, Lit, Scalar, Text
from strandline.algebra.schema import Column
from strandline.sql.functions import COUNTED, SPREAD

_INTEGERS = frozenset({"tinyint", "smallint", "int", "bigint"})
_DECIMAL = re.compile(r"decimal\((\d+),(\d+)\)")


@dataclass(frozen=True)
class Measure:
    """An aggregate call of the query."""

    function: str
    argument: Scalar | None
    where: Scalar | None
    distinct: bool
    text: Scalar
    type: str = ""
    argument_type: str = ""


class Partials:
    """The partial aggregates of one grouping, each stored once."""

    def __init__(self, *, exact_floats: bool = False) -> None:
        """With *exact_floats* floating sums are computed anew, so that they are what Spark gives, to the last digit."""
        self._exact_floats = exact_floats
        self._found: dict[tuple[PartialKind, Scalar | None, Scalar | None], Partial] = {}
        self._add("count", None, None, "bigint", COUNT)

    @property
    def all(self) -> tuple[Partial, ...]:
        return tuple(self._found.values())

    def side(self, number: int) -> Scalar:
        """How many rows of a group came from the input that ``__side`` numbers so."""
        return Col(self._add("count", None, Call("=", (Col("__side"), Lit(number))), "bigint"))

    def result_of(self, measure: Measure) -> Scalar:
        """The measure's value, from stored columns."""
        argument, where = measure.argument, measure.where
        if measure.distinct:
            return Col(self._add("opaque", measure.text, None, measure.type))
        match measure.function:
            case "count":
                return Col(self._add("count", argument, where, "bigint"))
            case "min" | "max":
                return Col(self._add(measure.function, argument, where, measure.type))
            case "sum" if measure.argument_type in _INTEGERS or _adds_exactly(measure.type):
                counted = self._add("count", argument, where, "bigint")
                total = self._add("sum", argument, where, measure.type)
                return _if_any(counted, Col(total))
            case "avg" | "mean" if measure.argument_type in _INTEGERS:
                counted = self._add("count", argument, where, "bigint")
                total = self._add("sum", _cast(argument, "decimal(20,0)"), where, "decimal(30,0)")
                return _if_any(counted, Text(("CAST(", Col(total), " AS DOUBLE) / ", Col(counted))))
            case "avg" | "mean" if _divides_exactly(measure.argument_type):
                counted = self._add("count", argument, where, "bigint")
                total = self._add("sum", argument, where, _sum_type(measure.argument_type))
                quotient = ("CAST(", Col(total), " / CAST(", Col(counted), f" AS DECIMAL(20,0)) AS {measure.type})")
                return _if_any(counted, Text(quotient))
            case "sum" | "avg" | "mean" if measure.argument_type in ("double", "float") and not self._exact_floats:
                return self._floating(measure)
            case name if name in COUNTED and measure.argument_type == "boolean":
                return self._of_truth(measure)
            case name if name in SPREAD and _squares_exactly(measure.argument_type):
                return self._spread(measure)
            case _:
                return Col(self._add("opaque", measure.text, None, measure.type))

    def _of_truth(self, measure: Measure) -> Scalar:
        """Counts of values that are true or false."""
        argument, where = measure.argument, measure.where
        assert argument is not None
        is_true: Scalar = Text(("(", argument, ") = true"), Call("=", (argument, Lit(True))))
        is_false: Scalar = Text(("(", argument, ") = false"), Call("=", (argument, Lit(False))))
        chosen = [test if where is None else Call("and", (where, test)) for test in (is_true, is_false)]
        if measure.function == "count_if":
            return Col(self._add("count", None, chosen[0], "bigint"))
        counted = self._add("count", argument, where, "bigint")
        if measure.function in ("bool_and", "every"):
            return _if_any(counted, Call("=", (Col(self._add("count", None, chosen[1], "bigint")), Lit(0))))
        return _if_any(counted, Call(">", (Col(self._add("count", None, chosen[0], "bigint")), Lit(0))))

    def _spread(self, measure: Measure) -> Scalar:
        """Variance and standard deviation, from ``n``, ``Σx`` and ``Σx²``: ``n Σx² - (Σx)²`` is exact in decimals."""
        precision, scale = _digits(measure.argument_type)
        value = _cast(measure.argument, f"decimal({precision},{scale})")
        n = Col(self._add("count", measure.argument, measure.where, "bigint"))
        total = Col(self._add("sum", value, measure.where, f"decimal({precision + 10},{scale})"))
        squared = Text((value, " * ", value))
        squares = Col(self._add("sum", squared, measure.where, f"decimal({2 * precision + 11},{2 * scale})"))
        of_population = measure.function.endswith("_pop")
        root = "sqrt" if measure.function.startswith("std") else ""
        least, divisor = ("0", n) if of_population else ("1", Text(("(", n, " - 1)")))
        exact = ("CAST(", n, " AS DECIMAL(20,0)) * ", squares, " - ", total, " * ", total)
        quotient = ("CAST(", *exact, " AS DOUBLE) / (CAST(", n, " AS DOUBLE) * ", divisor, ")")
        return Text(("CASE WHEN ", n, f" > {least} THEN {root}(", *quotient, ") END"))

    def _floating(self, measure: Measure) -> Scalar:
        """Finite values are added; NaN and the infinities are counted apart, so that they can be taken out again."""
        argument = measure.argument
        assert argument is not None
        value = Text(("CAST(", argument, " AS DOUBLE)"))
        finite = Text(
            ("CASE WHEN NOT isnan(", value, ") AND abs(", value, ") < double('Infinity') THEN ", value, " END")
        )
        counted = self._add("count", argument, measure.where, "bigint")
        total = Col(self._add("sum", finite, measure.where, "double"))
        nan, plus, minus = (
            Col(
                self._add(
                    "count", Text(("CASE WHEN ", value, f" = double('{name}') THEN 1 END")), measure.where, "bigint"
                )
            )
            for name in ("NaN", "Infinity", "-Infinity")
        )
        result: tuple[str | Scalar, ...] = (
            "CASE WHEN ", nan, " > 0 OR (", plus, " > 0 AND ", minus, " > 0) THEN double('NaN') WHEN ", plus,
            " > 0 THEN double('Infinity') WHEN ", minus, " > 0 THEN double('-Infinity') ELSE ", total,
        )  # fmt: skip
        divisor: tuple[str | Scalar, ...] = () if measure.function == "sum" else (" / ", Col(counted))
        return _if_any(counted, Text((*result, *divisor, " END")))

    def _add(
        self, kind: PartialKind, argument: Scalar | None, where: Scalar | None, type_: str, name: str | None = None
    ) -> str:
        known = self._found.get((kind, argument, where))
        if known is None:
            name = name or f"__{kind}_{len(self._found)}"
            known = Partial(Column(name, type_), kind, argument, where)
            self._found[(kind, argument, where)] = known
        return known.name


def _if_any(counted: str, value: Scalar) -> Scalar:
    """NULL where nothing was aggregated, as SQL has it."""
    return Call("case", (Call(">", (Col(counted), Lit(0))), value))


def _cast(argument: Scalar | None, type_: str) -> Scalar:
    assert argument is not None
    return Text(("CAST(", argument, f" AS {type_})"), argument)


def _digits(type_: str) -> tuple[int, int]:
    """Precision and scale of a decimal that holds all values of an exact type."""
    return (10, 0) if type_ in _INTEGERS else _precision(type_)


def _squares_exactly(type_: str) -> bool:
    """Whether sums of squares of so many digits, times their number, stay within 38 digits."""
    if type_ in _INTEGERS:
        return type_ != "bigint"
    return bool(_DECIMAL.fullmatch(type_)) and _precision(type_)[0] <= 9


def _sum_type(type_: str) -> str:
    """The type that Spark adds decimals in: ten digits more, 38 at most."""
    precision, scale = _precision(type_)
    return f"decimal({min(38, precision + 10)},{scale})"


def _precision(type_: str) -> tuple[int, int]:
    found = _DECIMAL.fullmatch(type_)
    assert found is not None
    return int(found[1]), int(found[2])


def _adds_exactly(type_: str) -> bool:
    """Whether sums of this type can be added and subtracted: at 38 digits Spark gives up scale beyond six."""
    if not _DECIMAL.fullmatch(type_):
        return False
    precision, scale = _precision(type_)
    return precision < 38 or scale <= 6


def _divides_exactly(type_: str) -> bool:
    """Whether sum / count, rounded to avg's scale, is what Spark's own avg gives.

    Both round half up; the division rounds first to its own, larger scale. A quotient by a count n that is not a tie at
    scale s + 4 is at least 1 / (2 n 10^(s+4)) away from one, so the first rounding is harmless while n < 10^9 if it
    keeps nine digits more.
    """
    if not _DECIMAL.fullmatch(type_):
        return False
    precision, scale = _precision(type_)
    whole_digits = min(38, precision + 10) - scale
    division_scale = max(38 - whole_digits, 6) if whole_digits + scale + 21 > 38 else scale + 21
    return division_scale >= scale + 4 + 9 and precision + 4 <= 38
