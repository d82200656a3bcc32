"""A failing case made small: transactions and rows are left out as long as some order of events still fails."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from random import Random

from strandline.algebra.bag import Row, SignedBag
from strandline.integrate.algorithms import Options, create
from strandline.integrate.levels import Verdict, check
from strandline.integrate.network import Action, Network
from strandline.integrate.notation import show_bag, show_view
from strandline.integrate.schedules import run_at_random
from strandline.sql.statements import Consistency
from tests.integrate.random_cases import Case

Deltas = Mapping[str, SignedBag]


@dataclass(frozen=True)
class Failure:
    """A case, and an order of events in which it does not reach the level promised."""

    name: str
    case: Case
    actions: list[Action]
    verdict: Verdict

    def __str__(self) -> str:
        view, lines = self.case.view, [f"{self.name} fails: {self.verdict.witnesses}"]
        lines.append(f"  V = {show_view(view.plan)} where {', '.join(map(str, view.conditions)) or 'true'}")
        lines += [f"  {name} = {show_bag(rows)}" for name, rows in self.case.relations.items()]
        for source, script in self.case.scripts.items():
            for deltas in script:
                lines.append(f"  {source} commits {', '.join(f'{r} {show_bag(rows)}' for r, rows in deltas.items())}")
        return "\n".join([*lines, f"  {' '.join(f'{kind}:{source}' for kind, source in self.actions)}"])


def failure(name: str, case: Case, options: Options, promised: Consistency, tries: int = 200) -> Failure | None:
    """An order of events, among many random ones, that breaks the promise."""
    for seed in range(tries):
        network = Network(create(name, case.view, options=options), case.relations, case.scripts)
        actions = run_at_random(network, Random(seed))
        verdict = check(network.arrivals, network.warehouse.shown, show_bag)
        if not verdict.reaches(promised):
            return Failure(name, case, actions, verdict)
    return None


def shrunk(name: str, case: Case, options: Options, promised: Consistency) -> Failure | None:
    """The smallest failure that leaving things out leads to; None if no failure is found."""
    found = failure(name, case, options, promised)
    while found is not None:
        smaller = (failure(name, less, options, promised) for less in _less(found.case) if _valid(less))
        better = next((each for each in smaller if each is not None), None)
        if better is None:
            break
        found = better
    return found


def _less(case: Case) -> Iterator[Case]:
    """The case with one thing left out."""
    for source, script in case.scripts.items():
        for place, deltas in enumerate(script):
            yield _with(case, source, [*script[:place], *script[place + 1 :]])
            for fewer in _fewer(deltas):
                yield _with(case, source, [*script[:place], fewer, *script[place + 1 :]])
    for fewer in _fewer(case.relations):
        yield replace(case, relations={**dict.fromkeys(case.relations, SignedBag()), **fewer})


def _with(case: Case, source: str, script: list[Deltas]) -> Case:
    return replace(case, scripts={**case.scripts, source: script})


def _fewer(rows: Deltas) -> Iterator[dict[str, SignedBag]]:
    """The bags with one signed row left out; empty bags are left out too."""
    for name, bag in rows.items():
        for row, count in bag.items():
            less = bag - SignedBag([(row, 1 if count > 0 else -1)])
            yield {each: found for each, found in {**rows, name: less}.items() if found}


def _valid(case: Case) -> bool:
    """Whether nothing is deleted that is not there, and keys stay keys."""
    current = dict(case.relations)
    keys = {relation: len(scan.key) for relation, scan in zip(case.view.relations, case.view.scans, strict=True)}
    states = [dict(current)]
    for script in case.scripts.values():
        for deltas in script:
            for relation, rows in deltas.items():
                current[relation] = current[relation] + rows
            states.append(dict(current))
    return all(_is_keyed(rows, keys[relation]) for state in states for relation, rows in state.items())


def _is_keyed(rows: SignedBag, width: int) -> bool:
    if any(count < 0 for count in rows.values()):
        return False
    found: list[Row] = [row[:width] for row in rows.rows()]
    return width == 0 or len(found) == len(set(found))
