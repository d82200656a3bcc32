"""One table of a PostgreSQL database, read once in one snapshot into Parquet files: a dump to compare with others."""

from __future__ import annotations

from uuid import uuid4

from strandline.engine.session import Engine
from strandline.sources.postgres.address import Address
from strandline.sources.postgres.source import PostgresSource
from strandline.sql.names import quoted


def dump(engine: Engine, address: Address, table: str, folder: str) -> tuple[str, ...]:
    """Write the rows of *table* as files at *folder*; the columns of its primary key.

    Nothing is changed in the database. Columns that Spark has no type for are left out.
    """
    source = PostgresSource("diff", address, owner="diff", tables={table: table})
    try:
        source.described_tables(strict=True)
        info = source.tables()[table]
        names = [column.name for column in info.columns]
        parsers = source.parsers(table)
        with source.baseline(table, names) as baseline, engine.step("diff", "dump", small=False):
            views = [f"strandline_dump_{uuid4().hex}" for _ in baseline.rows]
            for view, rows in zip(views, baseline.rows, strict=True):
                engine.jdbc_view(view, rows.options, rows.parts)
            shown = ", ".join(f"{parsers[name](quoted(name))} AS {quoted(name)}" for name in names)
            texts = " UNION ALL ".join(f"SELECT * FROM {view}" for view in views)
            engine.write_parquet(f"SELECT {shown} FROM ({texts})", folder)
            for view in views:
                engine.drop_view(view)
        return info.key
    finally:
        source.close()
