"""Opening a catalog: made, upgraded, shared, refused."""

from __future__ import annotations

import subprocess
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import create_engine, text
from sqlalchemy.schema import CreateIndex

from strandline.catalog import Catalog
from strandline.catalog.models import Base
from strandline.catalog.upgrade import REVISION_TABLE, REVISIONS
from strandline.demo.server import PostgresServer
from strandline.errors import CatalogError


def test_a_warehouse_keeps_the_id_of_its_first_opening(new_url: str) -> None:
    with Catalog.open(new_url) as first:
        made = first.warehouse_id
    with Catalog.open(new_url) as second:
        assert second.warehouse_id == made


def test_settings_are_kept_and_replaced(catalog: Catalog) -> None:
    assert catalog.settings.get("engine") is None
    catalog.settings.put("engine", "spark")
    catalog.settings.put("engine", "sail")
    assert catalog.settings.get("engine") == "sail"


# Alembic cannot compare SQLite's indexes on expressions; the next test does.
@pytest.mark.filterwarnings("ignore:.*expression-based index")
def test_models_and_migrations_describe_the_same_tables(new_url: str) -> None:
    Catalog.open(new_url).close()
    engine = create_engine(new_url)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": REVISION_TABLE, "compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    engine.dispose()


def test_models_and_migrations_describe_the_same_indexes_on_sqlite(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/catalog.db"
    Catalog.open(url).close()
    engine = create_engine(url)
    with engine.connect() as connection:
        made = connection.scalars(text("select sql from sqlite_master where type = 'index' and sql is not null")).all()
    described = [
        str(CreateIndex(index).compile(dialect=engine.dialect))
        for table in Base.metadata.tables.values()
        for index in table.indexes
    ]
    assert sorted(made) == sorted(described)
    engine.dispose()


def test_the_listed_revisions_are_those_of_the_migrations() -> None:
    config = Config()
    config.set_main_option("script_location", "strandline.catalog:migrations")
    walked = ScriptDirectory.from_config(config).walk_revisions()
    assert tuple(one.revision for one in walked)[::-1] == REVISIONS


def test_a_catalog_of_a_newer_version_is_refused(new_url: str) -> None:
    Catalog.open(new_url).close()
    engine = create_engine(new_url)
    with engine.begin() as connection:
        connection.execute(text(f"update {REVISION_TABLE} set version_num = '9999'"))
    engine.dispose()
    with pytest.raises(CatalogError) as raised:
        Catalog.open(new_url)
    assert raised.value.code == "CATALOG_TOO_NEW"
    assert "revision 9999" in raised.value.message
    assert f"knows {', '.join(REVISIONS)}" in raised.value.message
    assert "upgrade strandline" in raised.value.message


def test_two_processes_may_make_the_same_catalog_at_once(
    new_url: str, python: Callable[..., subprocess.Popen[str]]
) -> None:
    code = """
import alembic.command
from strandline.catalog import Catalog
print("ready", flush=True)
input()
print(Catalog.open(sys.argv[1]).warehouse_id)
"""
    other = python(code, new_url)
    assert other.stdin is not None
    assert other.stdout is not None
    assert other.stdout.readline() == "ready\n"
    other.stdin.write("\n")
    other.stdin.flush()
    with Catalog.open(new_url) as catalog:
        assert other.communicate(timeout=20) == (f"{catalog.warehouse_id}\n", "")


def test_a_failed_migration_leaves_nothing_behind(new_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from strandline.catalog import upgrade

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(upgrade, "_create_single_rows", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Catalog.open(new_url)
    engine = create_engine(new_url)
    with engine.connect() as connection:
        assert not engine.dialect.has_table(connection, "sources")
    engine.dispose()
    monkeypatch.undo()
    Catalog.open(new_url).close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no database, " * 100)
    with pytest.raises(CatalogError, match="file is not a database") as raised:
        Catalog.open(f"sqlite:///{tmp_path}/notes.txt")
    assert raised.value.code == "CATALOG_UNAVAILABLE"


def test_a_folder_that_cannot_be_made_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CatalogError, match="its folder cannot be made") as raised:
        Catalog.open(f"sqlite:///{tmp_path}/file/catalog.db")
    assert raised.value.code == "CATALOG_UNAVAILABLE"


@pytest.mark.parametrize(
    "unusable",
    [
        "postgresql+psycopg://me:s3cr%24t@127.0.0.1:1/warehouse",
        "postgresql://me@127.0.0.1:1/warehouse?password=s3cr%24t",
        "postgresql+psycopg://me:s3cr%24t@127.0.0.1:1/warehouse?no_such_option=s3cr%24t",
        "mysql://me:s3cr%24t@127.0.0.1/warehouse",
        "postgresql+psycopg://me:s3cr%24t@127.0.0.1:port/warehouse",
        "me:s3cr%24t",
        "sqlite://",
        "sqlite:///:memory:",
    ],
)
def test_an_unusable_address_is_refused_without_showing_its_password(unusable: str) -> None:
    with pytest.raises(CatalogError) as raised:
        Catalog.open(unusable)
    assert raised.value.code == "CATALOG_UNAVAILABLE"
    shown = str(raised.value) + "".join(traceback.format_exception_only(raised.value))
    assert "s3cr" not in shown
    assert raised.value.__suppress_context__ or raised.value.__context__ is None


@pytest.mark.postgres
def test_a_catalog_shows_its_address_without_password(new_schema: Callable[[], str], server: PostgresServer) -> None:
    with Catalog.open(new_schema()) as catalog:
        assert repr(catalog) == f"Catalog(postgresql+psycopg://postgres:***@127.0.0.1:{server.port}/postgres)"
