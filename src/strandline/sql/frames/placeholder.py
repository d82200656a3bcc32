"""Empty relations that stand for the tables of a warehouse in a DataFrame's plan.

Spark can analyse them, so that a DataFrame over one has its columns; a comment says which table is meant.
"""

from __future__ import annotations

import re

from strandline.sql.relations import Relation, empty_select

_MARK = re.compile(r"/\* strandline table: (.*?) \*/ ")


def placeholder(relation: Relation) -> str:
    """A query without rows that stands for *relation*."""
    return f"/* strandline table: {relation.name} */ {empty_select(relation.columns)}"


def table_meant(query: str) -> str | None:
    """The table that a query stands for, if it is a placeholder."""
    mark = _MARK.match(query)
    return mark[1] if mark else None
