"""Values of expressions: columns of Arrow's, or one value for all rows."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeAlias

import pyarrow as pa

from strandline.columnar.types import NotHere, decimal

Array: TypeAlias = Any
"""A column of Arrow's, in one piece or several."""


@dataclass(frozen=True)
class Value:
    """A column, or one value for all rows; *written* if it is a number that stands in the text.

    One that is cast there may be *suffixed*, as in ``7L``: the parser does not tell, and to Spark that is written.
    """

    data: Any
    written: bool = False
    suffixed: bool = False

    @property
    def type(self) -> pa.DataType:
        return self.data.type

    @property
    def constant(self) -> bool:
        return isinstance(self.data, pa.Scalar)

    def cast(self, kind: pa.DataType) -> Value:
        """The same of another type, if all of it fits."""
        return self if self.type == kind else Value(self.data.cast(kind))


def constant(value: Any) -> Value:
    """A value that stands in a text."""
    match value:
        case None:
            return Value(pa.scalar(None))
        case bool():
            return Value(pa.scalar(value))
        case int():
            if not -(2**63) <= value < 2**63:
                raise NotHere("a number of more than 64 bits")
            return Value(pa.scalar(value, pa.int32() if -(2**31) <= value < 2**31 else pa.int64()), written=True)
        case Decimal():
            return Value(pa.scalar(value, written_type(value)), written=True)
        case str():
            return Value(pa.scalar(value))
        case _:
            raise NotHere(f"the constant {value!r}")


def written_type(value: Decimal) -> pa.DataType:
    """The type of a decimal that stands in a text."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or exponent > 0:
        raise NotHere(f"the constant {value}")
    return decimal(max(len(digits), -exponent), -exponent)
