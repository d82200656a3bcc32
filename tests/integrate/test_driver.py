"""The driver, without Spark: refresh after refresh, what it installs leaves every table as it would be filled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import pytest

from strandline.algebra.bag import SignedBag
from strandline.algebra.evaluate import evaluate
from strandline.algebra.plan import At, Bag, Operand, Plan
from strandline.engine.session import Engine
from strandline.integrate.algorithms import create
from strandline.integrate.asking import Traffic, answered
from strandline.integrate.driver import Driver, Run
from strandline.integrate.messages import Query
from strandline.integrate.workbench import Table, Workbench
from tests.integrate.simulation import case_for, options_for

BY_NAME = (
    "eca", "eca-key", "lca", "strobe", "c-strobe", "sweep", "grouped", "grouped-by-frequency", "parallel-groups",
    "keyed-groups",
)  # fmt: skip

Rows = Mapping[str, SignedBag]


class InMemory(Workbench):
    """All tables are small: *stored* has their rows, by the SELECT that stands for each."""

    def __init__(self, stored: Mapping[str, SignedBag]) -> None:
        super().__init__(Engine(), "")
        self._stored = stored

    def loaded(self, table: Table) -> SignedBag | None:
        return self._stored[table.select]


@dataclass
class Held:
    """Answers in one state of all relations."""

    relations: Rows
    traffic: Traffic

    def rows(self, plan: Plan, given: Mapping[Operand, SignedBag]) -> SignedBag:
        return evaluate(plan, lambda operand: given[operand] if operand in given else at(self.relations, operand))


def at(relations: Rows, operand: Operand) -> SignedBag:
    assert isinstance(operand, At)
    return relations[operand.relation]


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("whole", [True, False], ids=["one update a refresh", "one update a transaction"])
def test_tables_are_what_a_fill_would_make_them_after_every_refresh(name: str, whole: bool) -> None:
    for seed in range(60):
        random = Random(seed)
        case = case_for(name, random)
        options, relations = options_for(case, random), dict(case.relations)
        scripts = {source: list(script) for source, script in case.scripts.items()}
        kept = create(name, case.view, options=options).kept()

        def filled(now: Rows, kept: Mapping[Bag, Plan] = kept) -> dict[Bag, SignedBag]:
            return {bag: evaluate(plan, lambda operand: at(now, operand)) for bag, plan in kept.items()}

        tables = filled(relations)
        while any(scripts.values()):
            bench = InMemory({bag.name: rows for bag, rows in tables.items()})
            named = {bag: Table(bag.name, plan.columns, len(tables[bag])) for bag, plan in kept.items()}
            held = Held(relations, Traffic())

            def ask(query: Query, given: Mapping[Operand, SignedBag], held: Held = held) -> Mapping[str, SignedBag]:
                return answered(query, held, given)

            driver = Driver(create(name, case.view, options=options), named, bench, ask)
            for source, script in scripts.items():
                count = random.randint(0, len(script))
                for sequence, changes in enumerate(_updates(script[:count], whole), 1):
                    driver.update(source, sequence, changes)
                    relations.update({r: relations[r] + rows for r, rows in changes.items()})
                del script[:count]
            run = driver.settle()
            tables = {bag: rows + run.total(bag) for bag, rows in tables.items()}
            assert tables == filled(relations), (name, seed)
            _check_order(run)


def _updates(transactions: list[Rows], whole: bool) -> list[Rows]:
    if not whole or not transactions:
        return transactions
    total: dict[str, SignedBag] = {}
    for changes in transactions:
        for relation, rows in changes.items():
            total[relation] = total.get(relation, SignedBag()) + rows
    return [total]


def _check_order(run: Run) -> None:
    shown = [installed.upto for installed in run.installs]
    assert shown == sorted(shown)
