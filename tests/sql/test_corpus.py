"""How each definition of the corpus, and each query of TPC-H, is maintained."""

from __future__ import annotations

import pytest

from strandline.algebra.block import delta_of
from strandline.engine.session import Engine
from strandline.sql.compile import compile_view
from strandline.sql.ddl import parse_select
from tests.campaign.corpus.definitions import Definition, definitions
from tests.campaign.relations import RELATIONS
from tests.campaign.tpch.following import queries

pytestmark = pytest.mark.spark

VIEWS = [*definitions(), *queries()]


@pytest.mark.parametrize("view", VIEWS, ids=str)
def test_the_strategy_is_the_one_that_is_promised(small: Engine, view: Definition) -> None:
    compiled = compile_view(view.name, parse_select(view.query), RELATIONS, small.analyse)
    if compiled.reason is not None:
        assert f"full {compiled.reason.code}" == view.strategy, compiled.reason.text
        return
    found = {delta.strategy for block in compiled.blocks if (delta := delta_of(block, block.inputs, insert_only=False))}
    assert ("affected" if "affected" in found else "incremental") == view.strategy


def test_there_are_definitions_of_every_kind() -> None:
    assert len({view.name.lower() for view in VIEWS}) == len(VIEWS) >= 300
    assert len(queries()) == 22
    assert len([view for view in definitions() if view.tested]) >= 30
