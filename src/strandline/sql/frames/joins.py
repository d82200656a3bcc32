"""Joins of two SELECTs whose columns all stand in FROM."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from strandline.sql.frames.fields import Field
from strandline.sql.frames.printed import COMPARISON, Printed, all_of, infix
from strandline.sql.frames.select import Select


@dataclass(frozen=True)
class JoinWords:
    """A kind of join: how it is written, and on which sides a condition may as well be tested after it."""

    sql: str
    keeps_left: bool
    keeps_right: bool
    left_only: bool = False


JOINS = {
    1: JoinWords("JOIN", True, True),
    2: JoinWords("FULL JOIN", False, False),
    3: JoinWords("LEFT JOIN", True, False),
    4: JoinWords("RIGHT JOIN", False, True),
    5: JoinWords("LEFT ANTI JOIN", True, False, left_only=True),
    6: JoinWords("LEFT SEMI JOIN", True, False, left_only=True),
    7: JoinWords("CROSS JOIN", True, True),
}
"""By the number that the plan gives them."""


def joined(left: Select, right: Select, words: JoinWords, condition: Printed | None) -> Select:
    """A join by a condition, or of all rows with all rows."""
    inner = words.sql in ("JOIN", "CROSS JOIN")
    if condition is not None:
        sql, on = ("JOIN" if inner else words.sql), f" ON {condition.sql}"
    else:
        sql, on = ("CROSS JOIN", "") if inner else (words.sql, " ON true")
    return Select(
        left.fields if words.left_only else (*left.fields, *right.fields),
        f"{left.source}\n  {sql} {right.source}{on}",
        joined=True,
        whole=left.whole and (right.whole or words.left_only),
        where=(*left.where, *right.where),
    )


def on_names(left: Select, right: Select, words: JoinWords, pairs: Sequence[tuple[Field, Field]]) -> Select:
    """A join by columns of one name, of which one remains: first the keys, then what else either side has."""
    condition = Printed(all_of(infix("=", COMPARISON, one.sql, other.sql) for one, other in pairs), COMPARISON)
    together = joined(left, right, words, condition)
    if words.left_only:
        return together
    keys = [_key(words, one, other) for one, other in pairs]
    gone = {id(field) for pair in pairs for field in pair}
    rest = [field for field in (*left.fields, *right.fields) if id(field) not in gone]
    return replace(together, fields=(*keys, *rest), whole=False)


def _key(words: JoinWords, one: Field, other: Field) -> Field:
    match words.sql:
        case "RIGHT JOIN":
            return other
        case "FULL JOIN":
            return replace(one, sql=Printed(f"coalesce({one.sql.sql}, {other.sql.sql})"), column=None, qualifier=())
        case _:
            return one
