"""Views of the corpus in a warehouse, followed through rounds of changes; each is compared with its recomputation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from strandline import Warehouse
from strandline.engine.session import Engine
from strandline.propagate.report import RefreshReport
from strandline.sql.names import quoted
from tests.campaign.corpus.definitions import Definition
from tests.campaign.corpus.lake import KEYS, Lake
from tests.campaign.together import different

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Following:
    """A lake, a warehouse over it, and views."""

    def __init__(self, folder: Path, engine: Engine, seed: int, views: Sequence[Definition]) -> None:
        self.views = {view.name: view for view in views}
        self.lake = Lake(folder / "lake", engine, seed)
        self.warehouse = Warehouse.open(folder / "project", spark=engine.spark)
        self.warehouse.add_source("l", kind="delta", path=str(folder / "lake"), keys=KEYS)
        for view in views:
            policy = "INCREMENTAL" if view.full else "INCREMENTAL STRICT"
            self.warehouse.sql(
                f"CREATE MATERIALIZED VIEW {quoted(view.name)} REFRESH POLICY {policy} WITH NO DATA AS {view.query}"
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.warehouse.close()

    def fill(self) -> None:
        """The first refresh."""
        report = self.warehouse.refresh()
        assert report.ok, problems(report)
        self.check()

    def round(self, change: Callable[[], Iterable[str]]) -> RefreshReport:
        """Change tables, refresh, and compare; what the refresh did."""
        done = ", ".join(change())
        report = self.warehouse.refresh()
        assert report.ok, (done, problems(report))
        for name, view in self.views.items():
            expected = ("full", "none") if view.full else ("incremental", "affected", "none")
            found = report.views[name]
            assert found.strategy in expected, (done, name, found.to_dict())
            if view.full and found.strategy == "full":
                assert view.strategy == f"full {found.reason.code}", (done, name, found.to_dict())
        self.check(done)
        return report

    def check(self, done: str = "filled") -> None:
        """Every view equals its recomputation."""
        views = [view for view in self.views.values() if not view.arrays_sorted]
        wrong = different(self.warehouse, [view.name for view in views])
        for view in self.views.values():
            if view.arrays_sorted:
                wrong |= _with_sorted_arrays(self.warehouse, view)
        assert not wrong, (done, wrong)


def problems(report: RefreshReport) -> dict[str, str]:
    """What went wrong, by view or hidden block."""
    return {name: node.problem for name, node in {**report.views, **report.hidden}.items() if node.problem}


def _with_sorted_arrays(warehouse: Warehouse, view: Definition) -> dict[str, str]:
    found, expected = (_sorted(frame) for frame in (warehouse.read(view.name), warehouse.sql(view.query)))
    if found == expected:
        return {}
    return {view.name: f"is {found}, should be {expected}"}


def _sorted(frame: DataFrame) -> list[str]:
    rows = [[sorted(map(str, v)) if isinstance(v, list) else v for v in row] for row in frame.collect()]
    return sorted(map(str, rows))
