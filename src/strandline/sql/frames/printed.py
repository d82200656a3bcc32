"""Text of expressions and identifiers, with parentheses and quotes only where they are needed."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from sqlglot.tokenizer_core import TokenType

from strandline.sql.names import quoted
from strandline.sql.spans import tokenize

OR, AND, NOT, COMPARISON, SUM, PRODUCT, UNARY, ATOM = range(8)
"""How strongly an expression holds together; what holds less than its surroundings is put between parentheses."""

_SIMPLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Printed:
    """An expression as text."""

    sql: str
    rank: int = ATOM

    def within(self, rank: int) -> str:
        """The text as an operand of an operator of that rank."""
        return self.sql if self.rank > rank else f"({self.sql})"


def infix(operator: str, rank: int, left: Printed, right: Printed) -> Printed:
    """Two operands and what stands between them. Only chains of one kind go without parentheses, from the left."""
    chained = rank in (OR, AND, SUM, PRODUCT) and left.rank == rank
    return Printed(f"{left.sql if chained else left.within(rank)} {operator} {right.within(rank)}", rank)


def all_of(conditions: Iterable[Printed]) -> str:
    """Conditions joined by AND."""
    found = list(conditions)
    return " AND ".join(c.sql if c.rank == AND or len(found) == 1 else c.within(AND) for c in found)


def identifier(name: str) -> str:
    """*name*, between backticks if it is no plain word."""
    if _SIMPLE.fullmatch(name):
        tokens = tokenize(name, "<name>")
        if len(tokens) == 1 and tokens[0].token_type == TokenType.VAR and name.upper() not in _SPARKS_OWN:
            return name
    return quoted(name)


_SPARKS_OWN = {
    "AUTHORIZATION", "BOTH", "CHECK", "CLUSTER", "COLUMN", "CONSTRAINT", "DISTRIBUTE", "ESCAPE", "EXCLUDE", "EXECUTE",
    "FILTER", "FOREIGN", "GROUP", "LATERAL", "LEADING", "MINUS", "NATURAL", "OFFSET", "ONLY", "ORDER", "OVERLAPS",
    "PARTITION", "PRIMARY", "RECURSIVE", "REFERENCES", "SESSION_USER", "SETMINUS", "SORT", "SQL", "TIME",
    "TIMESTAMPADD", "TIMESTAMPDIFF", "TO", "TRAILING", "UNKNOWN", "USER", "WINDOW", "WITHIN",
}  # fmt: skip
"""Words of Spark's grammar that the tokenizer takes for names."""


def identifiers(parts: Iterable[str]) -> str:
    """A name of several parts."""
    return ".".join(identifier(part) for part in parts)


def parts_of(name: str) -> tuple[str, ...]:
    """The parts of a name as DataFrames write it: dots between them, except between backticks."""
    found = re.findall(r"`((?:[^`]|``)*)`(?:\.|$)|([^.`]+)(?:\.|$)", name)
    return tuple(inside.replace("``", "`") if inside else plain for inside, plain in found)
