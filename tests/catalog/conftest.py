"""Every test of the catalog runs on SQLite and on a real PostgreSQL."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import NullPool, create_engine, text

from strandline.catalog import Catalog, Lease
from strandline.catalog.models import Base
from strandline.demo.server import SUPERUSER, PostgresServer
from tests.catalog.clock import SetClock

SOURCES = Path(__file__).parents[2] / "src"


@pytest.fixture(scope="session")
def postgres(server: PostgresServer) -> str:
    """The URL of a PostgreSQL server that lives as long as the tests."""
    return f"postgresql+psycopg://{SUPERUSER}:{server.password}@127.0.0.1:{server.port}/postgres?connect_timeout=10"


@pytest.fixture(scope="session")
def new_schema(postgres: str) -> Iterator[Callable[[], str]]:
    """Make an empty schema, and say by which URL it is reached."""
    # Other tests restart the server.
    engine = create_engine(postgres, poolclass=NullPool)
    numbers = itertools.count(1)

    def make() -> str:
        schema = f"test_{next(numbers)}"
        with engine.begin() as connection:
            connection.execute(text(f"create schema {schema}"))
        return f"{postgres}&options=-csearch_path%3D{schema}"

    yield make
    engine.dispose()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def database(request: pytest.FixtureRequest) -> str:
    """The kind of database that a test runs on."""
    return str(request.param)


@pytest.fixture
def new_url(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a catalog can be made: nothing is there yet."""
    if database == "sqlite":
        return f"sqlite:///{tmp_path}/warehouse/catalog.db"
    make: Callable[[], str] = request.getfixturevalue("new_schema")
    return make()


@pytest.fixture(scope="session")
def made_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SQLite file with an empty catalog, to be copied: migrations take longer than most tests."""
    file = tmp_path_factory.mktemp("made") / "catalog.db"
    Catalog.open(f"sqlite:///{file}").close()
    return file


@pytest.fixture(scope="session")
def emptied_schema(new_schema: Callable[[], str]) -> Iterator[Callable[[], str]]:
    """Empty the one schema with a catalog that the tests share, and say by which URL it is reached."""
    url = new_schema()
    Catalog.open(url).close()
    engine = create_engine(url, poolclass=NullPool)
    kept = {"warehouse", "warehouse_lock"}
    others = ", ".join(name for name in Base.metadata.tables if name not in kept)

    def empty() -> str:
        with engine.begin() as connection:
            connection.execute(text(f"truncate {others} restart identity cascade"))
            connection.execute(text("update warehouse set newest_csn = 0"))
            connection.execute(text("update warehouse_lock set token = 0, pid = null"))
        return url

    yield empty
    engine.dispose()


@pytest.fixture
def url(database: str, request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a catalog is, made and empty."""
    if database == "sqlite":
        shutil.copy(request.getfixturevalue("made_file"), tmp_path / "catalog.db")
        return f"sqlite:///{tmp_path}/catalog.db"
    empty: Callable[[], str] = request.getfixturevalue("emptied_schema")
    return empty()


@pytest.fixture
def clock() -> SetClock:
    return SetClock()


@pytest.fixture
def catalog(url: str, clock: SetClock) -> Iterator[Catalog]:
    with Catalog.open(url, clock=clock) as opened:
        yield opened


@pytest.fixture
def lease(catalog: Catalog) -> Iterator[Lease]:
    with catalog.lock.acquire("a test") as held:
        yield held


@pytest.fixture
def execute(url: str) -> Iterator[Callable[..., None]]:
    """Run a statement behind the catalog's back."""
    engine = create_engine(url, poolclass=NullPool)

    def run(statement: str, **values: object) -> None:
        with engine.begin() as connection:
            connection.execute(text(statement), values)

    yield run
    engine.dispose()


@pytest.fixture
def python() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start other Python processes; those still alive at the end of the test are ended."""
    started: list[subprocess.Popen[str]] = []

    def start(code: str, *arguments: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(SOURCES)!r})\n{code}", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.communicate()
