"""A database and a warehouse over it, and whether the one shows what the other holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import Connection

from strandline import StrandlineError, Warehouse
from strandline.engine.session import Engine
from strandline.ingest.copied import CopiedSource
from strandline.propagate.plan import RefreshPlan
from strandline.propagate.report import RefreshReport
from tests.conftest import bag, rows_of, rows_shown

ENVIRONMENT = "STRANDLINE_TEST_DSN"


@dataclass
class Live:
    """A database that is written to, and the warehouse that follows it; *shown* is by view what it must show."""

    writer: Connection[Any]
    warehouse: Warehouse
    shown: dict[str, str] = field(default_factory=dict)

    @property
    def source(self) -> CopiedSource:
        source = self.warehouse._sources["src"]
        assert isinstance(source, CopiedSource)
        return source

    def execute(self, *statements: str) -> None:
        """Each statement in a transaction of its own."""
        for statement in statements:
            self.writer.execute(statement.encode())

    def together(self, *statements: str) -> None:
        """All statements in one transaction."""
        with self.writer.transaction():
            self.execute(*statements)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.writer.execute(query.encode()).fetchall()

    def value(self, query: str) -> Any:
        return self.rows(query)[0][0]

    def follow(self, view: str, query: str, original: str | None = None) -> None:
        """Make a view over the source's tables; *original* is the same query in PostgreSQL's words."""
        self.warehouse.sql(f"CREATE MATERIALIZED VIEW {view} WITH NO DATA AS {query}")
        self.shown[view] = original or query.replace("src.", "")

    def refresh(self, *names: str | RefreshPlan, **options: Any) -> RefreshReport:
        """A refresh in which nothing goes wrong."""
        report = self.warehouse.refresh(*names, **options)
        assert report.ok, {name: view.problem for name, view in report.views.items()}
        return report

    def read(self, view: str) -> list[tuple[Any, ...]]:
        return rows_shown(self.warehouse, view)

    def assert_same(self, *views: str) -> None:
        """The views show what the database holds."""
        for view in views or self.shown:
            assert bag(self.read(view)) == bag(self.rows(self.shown[view])), view

    def copies(self, *tables: str) -> list[str]:
        return [f"src.{table}" for table in tables]

    def assert_copied(self, *tables: str) -> None:
        """The copies hold what the tables do, of the columns that they have."""
        for table in tables:
            node = self.source.node(table)
            base = self.warehouse._catalog.versions.baseline(node.record.id)
            assert base is not None, table
            shown = ", ".join('"' + column.name.replace('"', '""') + '"' for column in node.visible)
            held = rows_of(self.warehouse._engine, node.select(base.version))
            assert bag(held) == bag(self.rows(f"SELECT {shown} FROM {table}")), table

    def assert_verified(self, *views: str) -> None:
        for view in views or self.shown:
            assert self.warehouse.verify(view).ok, view


@contextmanager
def live(dsn: str, folder: Path, engine: Engine, **config: Any) -> Iterator[Live]:
    """A warehouse in *folder* over the database, as source ``src``; the environment holds the connection string."""
    with (
        pytest.MonkeyPatch.context() as patch,
        psycopg.connect(dsn, autocommit=True, client_encoding="UTF8") as writer,
        Warehouse.open(folder, spark=engine.spark) as warehouse,
    ):
        patch.setenv(ENVIRONMENT, dsn)
        if config:
            warehouse.add_source("src", kind="postgres", dsn_env=ENVIRONMENT, **config)
        yield Live(writer, warehouse)


def refused(action: Callable[[], object], code: str) -> str:
    """What the error with *code* says that *action* raises."""
    with pytest.raises(StrandlineError) as caught:
        action()
    assert caught.value.code == code, caught.value
    return str(caught.value)
