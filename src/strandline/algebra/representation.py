"""Two ways to store the rows of a plain view (WHIPS, 7.3.1).

DUP stores duplicates as rows. COUNT stores each row once, with the number of its copies: it is grouping by all columns,
read so that every row is seen as often as its count says. A view with a key has no duplicates and needs no count.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from strandline.algebra.block import Block
from strandline.algebra.plan import COUNT, Output, Partial
from strandline.algebra.scalar import Col
from strandline.algebra.schema import Column, matchable, names

Representation = Literal["groups", "keyed", "dup", "count"]


def representation(block: Block) -> Representation:
    """How the table of *block* holds its rows."""
    if block.counted:
        return "count"
    if block.grouped:
        return "groups"
    return "keyed" if block.key else "dup"


def may_count(block: Block) -> bool:
    """Whether the rows of *block* may be duplicates, and a count has a place beside their columns."""
    if representation(block) != "dup" or block.ordered is not None or not all(map(matchable, block.stored)):
        return False
    return COUNT not in {name.lower() for name in names(block.stored)}


def counted(block: Block) -> Block:
    """*block*, which is plain, with its rows stored each once with a count."""
    outputs = block.outputs or tuple(Output(column, Col(column.name)) for column in block.stored)
    return replace(
        block,
        keys=tuple(Output(column, Col(column.name)) for column in block.body.columns),
        partials=(Partial(Column(COUNT, "bigint", False), "count"),),
        outputs=outputs,
        times=Col(COUNT),
    )
