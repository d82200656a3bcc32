"""Scalar expressions over the columns of a plan.

What a user wrote stays the user's text (:class:`Text`): functions are never printed again from a tree,
because a dialect printer may silently change them. Expressions that the algebra builds itself are small
trees.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

Value = None | bool | int | float | str | Decimal


@dataclass(frozen=True)
class Col:
    """A column of the input, by its name there."""

    name: str


@dataclass(frozen=True)
class Lit:
    """A constant."""

    value: Value


@dataclass(frozen=True)
class Call:
    """An operator of the closed set that the evaluator and the renderer both know (see ``OPERATORS``)."""

    op: str
    args: tuple[Scalar, ...]

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise ValueError(f"unknown operator {self.op!r}; known: {', '.join(sorted(OPERATORS))}")


@dataclass(frozen=True)
class Text:
    """The user's own text, cut at its column references.

    ``meaning`` is the same expression as a tree, where it lies in the evaluator's subset: the reference
    evaluator uses it, the renderer never does.
    """

    fragments: tuple[str | Scalar, ...]
    meaning: Scalar | None = None


Scalar = Col | Lit | Call | Text

COMPARISONS = frozenset({"=", "<>", "<", "<=", ">", ">="})
ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
OPERATORS = COMPARISONS | ARITHMETIC | {"<=>", "and", "or", "not", "is null", "is not null", "coalesce", "case", "cast"}


def columns(scalar: Scalar) -> frozenset[str]:
    """The names of the columns that *scalar* reads."""
    return frozenset(column.name for column in _columns(scalar))


def _columns(scalar: Scalar) -> Iterator[Col]:
    match scalar:
        case Col():
            yield scalar
        case Call(args=args):
            for arg in args:
                yield from _columns(arg)
        case Text(fragments=fragments):
            for fragment in fragments:
                if not isinstance(fragment, str):
                    yield from _columns(fragment)
        case Lit():
            pass


def replace(scalar: Scalar, by: Mapping[str, Scalar]) -> Scalar:
    """*scalar* with each column that *by* names replaced."""
    return transform(scalar, lambda column: by.get(column.name, column))


def rename(scalar: Scalar, by: Mapping[str, str]) -> Scalar:
    """*scalar* with columns renamed."""
    return transform(scalar, lambda column: Col(by.get(column.name, column.name)))


def transform(scalar: Scalar, on_column: Callable[[Col], Scalar]) -> Scalar:
    """*scalar* with *on_column* applied to each of its columns."""
    match scalar:
        case Col():
            return on_column(scalar)
        case Call(op, args):
            return Call(op, tuple(transform(arg, on_column) for arg in args))
        case Text(fragments, meaning):
            return Text(
                tuple(f if isinstance(f, str) else transform(f, on_column) for f in fragments),
                None if meaning is None else transform(meaning, on_column),
            )
        case Lit():
            return scalar


def conjunction(conditions: tuple[Scalar, ...]) -> Scalar | None:
    """All *conditions* at once, or None if there is none."""
    if not conditions:
        return None
    result = conditions[0]
    for condition in conditions[1:]:
        result = Call("and", (result, condition))
    return result


def conjuncts(condition: Scalar) -> tuple[Scalar, ...]:
    """The conditions that *condition* is the conjunction of; itself, if it is none."""
    if isinstance(condition, Call) and condition.op == "and":
        return tuple(each for arg in condition.args for each in conjuncts(arg))
    return (condition,)


def equality(left: str, right: str) -> Call:
    """``left = right``."""
    return Call("=", (Col(left), Col(right)))
