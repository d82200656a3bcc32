"""The blocks of a view over tables of which Spark knows the rows before and after a change, and the change."""

from __future__ import annotations

from collections.abc import Sequence

from strandline.algebra.block import Block, delta_of
from strandline.algebra.plan import At, Backing, Change, Net, Plan, Scan, State
from strandline.algebra.schema import Schema, names
from strandline.algebra.term import bind
from strandline.engine.session import Engine
from strandline.sql.names import quoted, quoted_list
from strandline.sql.render import SIGN, render
from tests.sql.shop import rows_sql


def show_change(
    engine: Engine, name: str, columns: Schema, kept: Sequence[str], deleted: Sequence[str], inserted: Sequence[str]
) -> None:
    """Make a relation known before and after a change: *kept*, *deleted* and *inserted* are rows, as SQL."""
    gained, lost = rows_sql(columns, inserted), rows_sql(columns, deleted)
    change = f"SELECT *, 1 AS {SIGN} FROM ({gained}) UNION ALL SELECT *, -1 AS {SIGN} FROM ({lost})"
    for part, sql in (
        ("pre", rows_sql(columns, [*kept, *deleted])),
        ("post", rows_sql(columns, [*kept, *inserted])),
        ("change", change),
    ):
        engine.run(f"CREATE OR REPLACE TEMPORARY VIEW {part_of(name, part)} AS {sql}")


def part_of(relation: str, part: object) -> str:
    """The view of Spark that holds a relation before a change (``pre``), after it (``post``), or the ``change``."""
    return quoted(f"{relation} {part}")


class View:
    """The blocks of a view before and after a change of all tables."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks = {block.node: block for block in blocks}
        self._own = blocks[-1]

    def rows(self, state: State) -> str:
        """The visible rows, as unit rows."""
        return render(self._visible(self._own, state), self._bind, signed=True)

    def delta(self) -> str:
        """The delta of the visible rows."""
        return render(self._own.reading(self._stored_delta(self._own)), self._bind, signed=True)

    def stored(self, block: Block, state: State) -> str:
        """The stored rows of one of the blocks."""
        return render(bind(block.contents, state, block.inputs), self._bind)

    def stored_delta(self, block: Block) -> str:
        """The delta of the stored rows of one of the blocks, as unit rows."""
        return render(self._stored_delta(block), self._bind, signed=True)

    def _visible(self, block: Block, state: State) -> Plan:
        return block.reading(bind(block.contents, state, block.inputs))

    def _stored_delta(self, block: Block) -> Plan:
        delta = delta_of(block, block.inputs, insert_only=False)
        assert delta is not None
        return delta.plan

    def _bind(self, scan: Scan) -> str:
        match scan.operand:
            case At(name, state):
                rows = part_of(name, state)
                if name in self._blocks:
                    rows = f"({render(self._visible(self._blocks[name], state), self._bind)})"
                return f"SELECT {quoted_list(names(scan.fields))} FROM {rows}"
            case Change(name):
                rows = part_of(name, "change")
                if name in self._blocks:
                    block = self._blocks[name]
                    rows = f"({render(Net(block.reading(self._stored_delta(block))), self._bind)})"
                return f"SELECT {quoted_list((*names(scan.fields), SIGN))} FROM {rows}"
            case Backing(name):
                return self.stored(self._blocks[name], "pre")
        raise AssertionError(f"a view reads {scan.operand}")
