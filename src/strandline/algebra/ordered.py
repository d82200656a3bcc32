"""What is computed from the rows of a section together: window functions, or the first rows in an order.

Rows that tie in the order may come out either way, so what was stored is never computed again to be taken back: the
stored rows of a section are replaced by new ones.
"""

from __future__ import annotations

from dataclasses import dataclass

from strandline.algebra.plan import Filter, Limit, Output, Plan, Project, Window
from strandline.algebra.scalar import Scalar


@dataclass(frozen=True)
class Ordered:
    """Rows of one section at a time, all rows being one section if there are no *sections*.

    *windows* are columns that are computed over the rows of a section; *where* then chooses rows. With *order*, *limit*
    and *offset* the first rows are chosen. What is stored are the values of *sections* and *shown*.
    """

    shown: tuple[Output, ...]
    sections: tuple[Output, ...] = ()
    windows: tuple[Output, ...] = ()
    where: Scalar | None = None
    order: tuple[Scalar, ...] = ()
    limit: int | None = None
    offset: int = 0

    def rows(self, plan: Plan) -> Plan:
        """What is stored, from the rows of whole sections."""
        if self.windows:
            plan = Window(plan, tuple(section.value for section in self.sections), self.windows)
        if self.where is not None:
            plan = Filter(plan, self.where)
        if self.limit is not None or self.offset:
            plan = Limit(plan, self.order, self.limit, self.offset)
        return Project(plan, (*self.sections, *self.shown))
