"""Random SQL, compiled and refreshed in memory, means what SQLite says it means.

``STRANDLINE_EXAMPLES`` sets the number of histories for longer campaigns.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
import sqlglot
from sqlglot.optimizer.qualify import qualify

from strandline.algebra.bag import SignedBag
from strandline.algebra.block import Block
from strandline.algebra.evaluate import NotEvaluable
from strandline.algebra.evaluate import compiled as evaluable
from strandline.algebra.plan import At, Partial, Scan, map_scans
from strandline.algebra.schema import Column, Schema
from strandline.errors import SqlError
from strandline.sources.memory import MemorySource
from strandline.sql.compile import compile_view
from strandline.sql.ddl import parse_select
from strandline.sql.relations import Relation
from tests.algebra.replay import computed, refreshed
from tests.campaign.random_parts import TABLES
from tests.campaign.random_sql import OPEN, Generator
from tests.sql.shop import Known
from tests.sql.sqlite_answers import SUFFICIENT, Answers

HISTORIES = int(os.environ.get("STRANDLINE_EXAMPLES", "30"))
BATCHES = 8

pytestmark = pytest.mark.skipif(not SUFFICIENT, reason="this SQLite has no FULL JOIN")


def all_bigint(sql: str) -> Schema:
    """The columns of a query over nothing but integers."""
    try:
        tree = qualify(sqlglot.parse_one(sql, dialect="spark"), dialect="spark")
    except Exception as error:
        raise SqlError("SPARK_REJECTS", str(error)) from error
    return tuple(Column(name, "bigint") for name in tree.named_selects)  # type: ignore[attr-defined]


class History:
    """Three tables, views over them and over each other, and changes."""

    def __init__(self, seed: int) -> None:
        self.generator = Generator(seed)
        self.source: MemorySource = self.generator.source()
        self.queries: dict[str, str] = {}
        self.blocks: dict[str, Block] = {}
        self.outcomes: Counter[str] = Counter()

    def add_view(self, name: str) -> None:
        """Draw a view; it stays if it is maintained and the evaluator knows all its functions."""
        query = self.generator.view(name)
        known = [
            Relation(table, tuple(Column(column, "bigint") for column in columns))
            for table, columns in self.generator.columns.items()
        ]
        compiled = compile_view(name, parse_select(query), Known(known), all_bigint)
        blocks = dict(self.blocks)
        for block in compiled.blocks:
            blocks[block.node] = replace(block, body=map_scans(block.body, lambda scan: self._whole(scan, blocks)))
        outcome = self._outcome(blocks) if compiled.reason is None else compiled.reason.code
        self.outcomes[outcome] += 1
        if outcome == "followed":
            self.blocks, self.queries[name] = blocks, query
            return
        assert outcome in OPEN | {"known to Spark only"}, (query, compiled.reason)
        del self.generator.columns[name]

    def follow(self, rounds: int) -> None:
        """Change the tables; each view, refreshed, is what SQLite answers."""
        blocks = list(self.blocks.values())
        contents = computed(blocks, self._leaves())
        self._compare(contents.visible)
        for _ in range(rounds):
            before = self._leaves()
            self.generator.change(self.source)
            after = self._leaves()
            changes = {name: after[name] - before[name] for name in after if after[name] != before[name]}
            contents = refreshed(blocks, contents, changes).after
            assert contents.stored == computed(blocks, after).stored, self.queries
            self._compare(contents.visible)

    def _outcome(self, blocks: Mapping[str, Block]) -> str:
        try:
            for block in blocks.values():
                for partial in block.partials:
                    _check_evaluable(partial, block.body.columns)
            computed(list(blocks.values()), self._leaves())
        except NotEvaluable:
            return "known to Spark only"
        return "followed"

    def _whole(self, scan: Scan, blocks: Mapping[str, Block]) -> Scan:
        """A scan of all columns: rows in memory are whole, and a compiled scan reads only what it needs."""
        assert isinstance(scan.operand, At)
        name = scan.operand.relation
        fields = (
            blocks[name].visible if name in blocks else tuple(Column(c, "bigint") for c in self.generator.columns[name])
        )
        return replace(scan, fields=fields)

    def _leaves(self) -> dict[str, SignedBag]:
        return {f"m.{table}": SignedBag.of(self.source.rows(table)) for table in TABLES}

    def _compare(self, visible: Mapping[str, SignedBag]) -> None:
        answers = Answers("m", {table: (columns, self.source.rows(table)) for table, columns in TABLES.items()})
        for name, query in self.queries.items():
            expected = answers.keep(name, self.generator.columns[name], query)
            assert visible[name] == expected, (name, query, self.queries)
        answers.close()


def _check_evaluable(partial: Partial, columns: Schema) -> None:
    """Raise NotEvaluable now, not when the first group comes."""
    if partial.kind == "opaque":
        raise NotEvaluable(partial.name)
    for scalar in (partial.argument, partial.where):
        if scalar is not None:
            evaluable(scalar, columns)


@pytest.mark.parametrize("batch", range(BATCHES))
def test_refreshed_views_are_what_another_engine_answers(batch: int) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(batch, HISTORIES, BATCHES):
        history = History(seed)
        for number in range(6):
            history.add_view(f"v{number}")
        history.follow(rounds=3)
        outcomes += history.outcomes
    assert outcomes["followed"] > sum(outcomes.values()) // 4, outcomes
