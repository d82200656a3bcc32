"""The statements a warehouse understands, as values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sqlglot import exp

from strandline.errors import Origin
from strandline.sql.schedule import Schedule

Policy = Literal["AUTO", "INCREMENTAL", "INCREMENTAL STRICT", "FULL"]
Consistency = Literal["CONVERGENT", "STRONG", "COMPLETE"]


@dataclass(frozen=True)
class Query:
    """A SELECT: its tree, and the text the tree's positions refer to."""

    text: str
    tree: exp.Query = field(compare=False)
    start: int
    file: str = "<sql>"

    @property
    def sql(self) -> str:
        """The query as it was written."""
        return self.text[self.start :].rstrip().rstrip(";").rstrip()


@dataclass(frozen=True)
class CreateView:
    """CREATE MATERIALIZED VIEW."""

    name: str
    query: Query
    origin: Origin
    or_replace: bool = False
    if_not_exists: bool = False
    comment: str | None = None
    cluster_by: tuple[str, ...] = ()
    properties: tuple[tuple[str, str], ...] = ()
    policy: Policy = "AUTO"
    consistency: Consistency = "STRONG"
    with_no_data: bool = False
    schedule: Schedule | None = None


@dataclass(frozen=True)
class RefreshView:
    """REFRESH MATERIALIZED VIEW."""

    name: str
    full: bool = False


@dataclass(frozen=True)
class ExplainRefresh:
    """EXPLAIN [REFRESH] MATERIALIZED VIEW name."""

    name: str


@dataclass(frozen=True)
class ExplainCreate:
    """EXPLAIN CREATE MATERIALIZED VIEW ...: how the view would be maintained."""

    create: CreateView


@dataclass(frozen=True)
class DropView:
    """DROP MATERIALIZED VIEW."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class DescribeView:
    """DESCRIBE MATERIALIZED VIEW."""

    name: str


Statement = Query | CreateView | RefreshView | ExplainRefresh | ExplainCreate | DropView | DescribeView
