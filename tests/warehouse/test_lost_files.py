"""Files of tables that somebody removes: what is lost is named with what to do, and can be mended; the rest goes on."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from deltalake import DeltaTable

from strandline import StrandlineError, Warehouse
from strandline.algebra.bag import SignedBag
from strandline.engine.session import Engine
from strandline.propagate.progress import Event
from tests.conftest import bag
from tests.warehouse.shop import VIEWS, Shop, assert_verified, create_views, made_shop

pytestmark = pytest.mark.spark

SOME = ("big_orders", "by_product", "busiest")


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """The lakes of all tests."""
    return made_shop(tmp_path_factory.mktemp("lakes"))


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory, engine: Engine, shop: Shop) -> Path:
    """A join, an aggregate, and a view with a hidden block, filled; tests work on copies of it."""
    project = tmp_path_factory.mktemp("filled") / "project"
    with Warehouse.open(project, spark=engine.spark) as warehouse:
        shop.declare(warehouse)
        for name in SOME:
            text = f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL AS {VIEWS[name]};"
            (project / "views" / f"{name}.sql").write_text(text)
        assert warehouse.refresh().ok
    return project


@pytest.fixture
def filled(tmp_path: Path, engine: Engine, project: Path) -> Iterator[Warehouse]:
    with Warehouse.open(shutil.copytree(project, tmp_path / "project"), spark=engine.spark) as warehouse:
        yield warehouse


def folder(warehouse: Warehouse, name: str) -> Path:
    return Path(warehouse._refreshing.node(name).path)


def block(warehouse: Warehouse) -> str:
    (name,) = [record.name for record in warehouse._catalog.views.all() if record.kind == "block"]
    return name


def remove_data(table: Path) -> None:
    for file in table.glob("*.parquet"):
        file.unlink()


def rows(warehouse: Warehouse, name: str, state: int | None = None) -> SignedBag:
    return bag(tuple(row) for row in warehouse.read(name, state=state).collect())


def told(action: Callable[[], object]) -> StrandlineError:
    with pytest.raises(StrandlineError) as raised:
        action()
    return raised.value


@contextmanager
def moved_away(path: Path) -> Iterator[None]:
    """Within, something is not where it was."""
    aside = path.with_name(f"{path.name}.aside")
    path.rename(aside)
    yield
    aside.rename(path)


def test_a_file_of_a_view_is_missed_by_readers_and_refreshes_and_made_anew(filled: Warehouse, shop: Shop) -> None:
    before = {name: rows(filled, name) for name in SOME}
    remove_data(folder(filled, "big_orders"))
    for use in (lambda: filled.read("big_orders"), lambda: filled.sql("SELECT * FROM big_orders")):
        error = told(use)
        assert error.code == "FILES_GONE" and "files of big_orders" in error.message
    assert told(lambda: filled.verify("big_orders")).code == "FILES_GONE"
    assert rows(filled, "by_product") == before["by_product"]
    shop.place_orders()
    report = filled.refresh()
    problem = str(report.views["big_orders"].problem)
    assert "big_orders" in problem and "refresh --full big_orders" in problem, problem
    assert report.views["by_product"].problem is None and report.views["busiest"].problem is None
    assert filled.refresh("big_orders", full=True).ok
    assert_verified(filled)
    assert told(lambda: filled.read("big_orders", state=1)).code == "FILES_GONE"
    assert rows(filled, "by_product", 1) == before["by_product"]


def remove_folder(table: Path) -> None:
    shutil.rmtree(table)


def remove_newest_commit(table: Path) -> None:
    max((table / "_delta_log").glob("*.json")).unlink()


def remove_middle_commit(table: Path) -> None:
    sorted((table / "_delta_log").glob("*.json"))[1].unlink()


def spoil_newest_commit(table: Path) -> None:
    max((table / "_delta_log").glob("*.json")).write_text('{"add": {"pa')


def test_lost_tables_and_logs_are_replaced_and_old_states_are_not_mixed_up(filled: Warehouse, shop: Shop) -> None:
    damages = (remove_folder, remove_newest_commit, remove_middle_commit, spoil_newest_commit)
    damaged = {damage.__name__: damage for damage in damages}
    create_views(filled, dict.fromkeys(damaged, VIEWS["big_orders"]))
    for _ in range(2):
        shop.place_orders()
        state = refreshed(filled)
    before = rows(filled, "big_orders")
    for name, damage in damaged.items():
        damage(folder(filled, name))
        assert lost(filled, name)
    shop.place_orders(20)
    report = filled.refresh()
    for name in damaged:
        problem = str(report.views[name].problem)
        assert name in problem and f"refresh --full {name}" in problem, problem
    assert report.views["by_product"].problem is None and report.views["big_orders"].problem is None
    report = filled.refresh(*damaged, full=True)
    assert report.ok, report.to_dict()
    shop.place_orders()
    refreshed(filled)
    assert_verified(filled)
    for name in damaged:
        assert rows(filled, name) == rows(filled, "big_orders") != before
        # What was lost stays lost: another table's version of the same number is not taken for it.
        assert lost(filled, name, state)


def lost(warehouse: Warehouse, name: str, state: int | None = None) -> bool:
    """Whether a view is said to be lost when it is read."""
    return told(lambda: warehouse.read(name, state=state)).code == "FILES_GONE"


def refreshed(warehouse: Warehouse) -> int | None:
    """The number of the state that a refresh published."""
    report = warehouse.refresh()
    assert report.ok, report.to_dict()
    return report.state


def test_a_lost_hidden_block_names_the_view_that_it_is_a_part_of(filled: Warehouse, shop: Shop) -> None:
    remove_data(folder(filled, block(filled)))
    shop.place_orders()
    report = filled.refresh()
    problem = str(report.views["busiest"].problem)
    assert "busiest" in problem and "was removed" in problem, problem
    assert "refresh --full" in problem
    assert report.views["big_orders"].problem is None and report.views["by_product"].problem is None
    assert filled.refresh("busiest", full=True).ok
    shop.place_orders()
    assert filled.refresh().ok
    assert_verified(filled)


def test_a_lost_file_of_a_source_holds_back_its_views_until_it_is_back(filled: Warehouse, shop: Shop) -> None:
    shop.place_orders()
    newest = DeltaTable(shop.path("lines")).file_uris()
    lost = max((Path(file) for file in newest), key=lambda file: file.stat().st_mtime)
    with moved_away(lost):
        report = filled.refresh()
        problem = str(report.views["by_product"].problem)
        assert "INPUT_GONE: a file of the source table lake.lines was removed; put it back" in problem, problem
        assert report.views["big_orders"].problem is None
    assert filled.refresh().ok
    assert_verified(filled)


def test_a_source_that_goes_away_after_planning_holds_back_its_views_until_it_is_back(
    filled: Warehouse, shop: Shop
) -> None:
    shop.place_orders()
    away = Path(shop.path("lines"))
    aside = away.with_name("elsewhere")

    def move(event: Event) -> None:
        if (event.what, event.subject) == ("started", "lake.lines"):
            away.rename(aside)

    report = filled.refresh(watcher=move)
    assert "lake.lines" in str(report.views["by_product"].problem)
    assert report.views["big_orders"].problem is None
    report = filled.refresh()
    assert str(report.views["by_product"].problem).startswith("SOURCE_TABLE_GONE")
    aside.rename(away)
    assert filled.refresh().ok
    assert_verified(filled)


def test_a_stored_delta_that_is_lost_between_steps_is_computed_again_by_the_next_refresh(
    filled: Warehouse, shop: Shop
) -> None:
    shop.place_orders()

    def remove(event: Event) -> None:
        if (event.what, event.step, event.subject) == ("started", "install", "by_product"):
            shutil.rmtree(Path(filled._project.warehouse_root) / "deltas")

    report = filled.refresh(watcher=remove)
    problems = [str(view.problem) for view in report.views.values() if view.problem]
    assert problems and all("a stored delta of this refresh was removed; refresh again" in each for each in problems)
    assert filled.refresh().ok
    assert_verified(filled)
