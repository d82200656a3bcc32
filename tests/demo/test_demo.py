"""The demonstration, end to end, on less data."""

from __future__ import annotations

import io
from contextlib import nullcontext
from pathlib import Path

import pytest
from rich.console import Console

from strandline.demo.rounds import ROUNDS
from strandline.demo.run import run
from strandline.demo.shop import Sizes
from strandline.engine.session import Engine
from strandline.propagate.progress import nobody
from strandline.warehouse import Warehouse

pytestmark = pytest.mark.spark

LITTLE_DATA = {
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
}
"""What the demonstration sets in a session of its own."""


def test_the_demo_shows_every_strategy_and_ends_with_verified_views(tmp_path: Path, engine: Engine) -> None:
    told = io.StringIO()
    spark = engine.spark.newSession()
    for name, value in LITTLE_DATA.items():
        spark.conf.set(name, value)
    sizes = Sizes(customers=100, products=40, orders=400)
    outcome = run(
        Console(file=told, width=200),
        lambda title: nullcontext(nobody),
        lambda project: Warehouse.open(project, spark=spark),
        folder=tmp_path / "demo",
        sizes=sizes,
        rounds=ROUNDS[:4],
    )
    assert outcome.ok
    assert len(outcome.verified) == 9
    strategies = [{view.strategy for view in one.report.views.values()} for one in outcome.rounds]
    assert strategies == [
        {"none", "incremental", "full"},
        {"none"},
        {"incremental", "affected", "full"},
        {"none"},
    ]
    reasons = {view.reason.code for one in outcome.rounds for view in one.report.views.values()}
    assert reasons == {"UNCHANGED", "CHANGES", "GROUPS_AFFECTED", "WINDOW_FUNCTION"}
    text = told.getvalue()
    assert "9 of 9 views equal their recomputation" in text
    assert f"strandline --project {tmp_path / 'demo' / 'project'} refresh" in text
    assert sorted(p.name for p in (tmp_path / "demo").iterdir()) == ["data", "project"]
