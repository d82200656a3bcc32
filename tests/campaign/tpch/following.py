"""The queries as views in a warehouse, compared with their recomputation after each cycle of changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from strandline import Warehouse
from strandline.engine.session import Engine
from strandline.propagate.report import RefreshReport
from tests.campaign.corpus.definitions import Definition, read_definitions
from tests.campaign.corpus.following import problems
from tests.campaign.together import different
from tests.campaign.tpch.tables import KEYS, Tables


def queries() -> list[Definition]:
    """The 22, with the strategy of each."""
    return read_definitions(Path(__file__).parent / "queries.sql")


def follow(
    folder: Path,
    engine: Engine,
    views: Sequence[Definition],
    scale: float,
    cycles: int,
    said: Callable[[str], None] = lambda _: None,
    *,
    policy: str = "INCREMENTAL STRICT",
    one_in: int | None = None,
) -> list[RefreshReport]:
    """Create *views*, change all tables so many times, and compare after each; what the refreshes did.

    With *one_in* only the large tables change, by one row in so many with each statement.
    """
    tables = Tables(folder / "lake", scale, seed=1)
    reports = []
    with Warehouse.open(folder / "project", spark=engine.spark) as warehouse:
        warehouse.add_source("tpch", kind="delta", path=str(folder / "lake"), keys=KEYS)
        for view in views:
            warehouse.sql(f"CREATE MATERIALIZED VIEW {view.name} REFRESH POLICY {policy} WITH NO DATA AS {view.query}")
        said("created")
        report = warehouse.refresh()
        assert report.ok, problems(report)
        said(f"filled in {report.seconds:.0f} s")
        for number in range(cycles):
            if one_in is None:
                tables.cycle(clustered=number % 2 == 0)
            else:
                tables.change(one_in, clustered=number % 2 == 0)
            report = warehouse.refresh()
            assert report.ok, problems(report)
            wrong = different(warehouse, [view.name for view in views])
            assert not wrong, wrong
            reports.append(report)
            said(f"cycle {number + 1} in {report.seconds:.0f} s: {len(views)} views equal their recomputation")
    return reports


def recomputed(report: RefreshReport) -> dict[str, str]:
    """Why views and hidden blocks were recomputed."""
    nodes = {**report.views, **report.hidden}
    return {name: str(node.reason) for name, node in nodes.items() if node.strategy == "full"}


def strategy_of(view: Definition, reports: Sequence[RefreshReport]) -> str:
    """The weakest strategy taken for a view's own block; a full refresh must be for its cost."""
    taken = [report.views[view.name] for report in reports]
    for report in taken:
        assert report.strategy != "full" or report.reason.code == "COST", (view.name, report.to_dict())
    kinds = {report.strategy for report in taken}
    return next(kind for kind in ("full", "affected", "incremental", "none") if kind in kinds)
